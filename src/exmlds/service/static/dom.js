// Nodes are made from text only: a name or a text from a user is never read as HTML.

export const byId = (id) => document.getElementById(id);

/** An element with attributes; null and false leave an attribute out. Children are nodes or texts. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** A name on its own: the writing direction of one name does not change that of what follows. */
export function nameOf(label) {
  // A URI may be broken after its slashes, so that its last part is not; the report does the same.
  const parts = /:[/]{2}/.test(label) ? label.split(/(?<=[/#])(?![/#])/) : [label];
  return element("bdi", {}, ...parts.flatMap((part, i) => (i ? [element("wbr"), part] : [part])));
}

export const count = (n) => n.toLocaleString("en");
export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** A share in percent, small ones with a decimal; one that is not exactly 0 or 1 never reads so. */
export function percent(share) {
  if (share > 0 && share < 0.0005) return "<0.1 %";
  if (share > 0 && share < 0.0095) return `${(100 * share).toFixed(1)} %`;
  const whole = Math.round(100 * share);
  return whole === 100 && share < 1 ? ">99 %" : `${whole} %`;
}

/** A bar whose filled part is `share` of it. */
export function bar(share, kind = "") {
  const filled = element("i");
  filled.style.width = `${100 * Math.min(Math.max(share, 0), 1)}%`;
  return element("span", { class: `bar ${kind}`, "aria-hidden": "true" }, filled);
}

export const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

const announcer = byId("announcer");

/** Say something to who does not see the page. */
export function announce(text) {
  announcer.textContent = text;
}
