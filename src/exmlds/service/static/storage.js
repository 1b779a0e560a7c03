// What the browser keeps: in sessionStorage until the tab is closed, in localStorage beyond that.

/** A text under a key of one of the two; where the browser keeps nothing, it lasts as long as the page. */
export function stored(area, key) {
  let own = null;
  const use = (action) => {
    try {
      return action(window[area]);
    } catch {
      return own;
    }
  };
  return {
    get: () => use((storage) => storage.getItem(key)),
    set: (value) => {
      own = value;
      use((storage) => storage.setItem(key, value));
    },
    forget: () => {
      own = null;
      use((storage) => storage.removeItem(key));
    },
  };
}
