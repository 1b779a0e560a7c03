// Keys of the page. Single letters do nothing in text fields, and can be switched off (WCAG 2.1.4).

import { byId } from "./dom.js";
import { stored } from "./storage.js";

/** `actions` has a function for each letter or sign; `escape()` is called where Esc closes nothing else. */
export function listen(actions, escape) {
  const letters = byId("letters"), kept = stored("localStorage", "exmlds-letters");
  letters.checked = kept.get() !== "off";
  letters.addEventListener("change", () => kept.set(letters.checked ? "on" : "off"));
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") return escape();
    const action = actions[event.key];
    if (!action || !letters.checked || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    event.preventDefault(); // the letter is not typed into the field that gets the focus
    action();
  });
}

function isTyping(target) {
  return target.matches("textarea, select, input:not([type=range], [type=checkbox])");
}
