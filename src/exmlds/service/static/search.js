// The search of the vocabulary: a field with a list below it (the combobox pattern of WAI-ARIA).

import { element, nameOf, plural } from "./dom.js";

const PAUSE = 120; // milliseconds without a key before the service is asked

export class LabelSearch {
  #input;
  #list;
  #status;
  #search;
  #chosen;
  #labels = [];
  #at = -1;
  #timer = 0;
  #asked = null; // the AbortController of the request that is under way

  /** `search(text, signal)` finds labels, `chosen(label)` is called with the one taken. */
  constructor({ input, list, status }, { search, chosen }) {
    [this.#input, this.#list, this.#status] = [input, list, status];
    [this.#search, this.#chosen] = [search, chosen];
    input.addEventListener("input", () => this.#later());
    input.addEventListener("focus", () => { if (input.value.trim()) this.#later(); });
    input.addEventListener("blur", () => this.close());
    input.addEventListener("keydown", (event) => this.#key(event));
    list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.#take(this.#labels[[...list.children].indexOf(option)]);
    });
  }

  close() {
    clearTimeout(this.#timer);
    this.#asked?.abort();
    this.#draw([], "");
  }

  #later() {
    clearTimeout(this.#timer);
    this.#asked?.abort();
    if (!this.#input.value.trim()) this.#draw([], "");
    else this.#timer = setTimeout(() => this.#find(), PAUSE);
  }

  async #find() {
    this.#asked = new AbortController();
    const { signal } = this.#asked;
    try {
      const labels = await this.#search(this.#input.value.trim(), signal);
      if (!signal.aborted) this.#draw(labels, labels.length ? `${plural(labels.length, "label")} found` : "No label matches");
    } catch (error) {
      if (error.name !== "AbortError") this.#draw([], `${error.message}. ${error.detail ?? ""}`);
    }
  }

  #draw(labels, status) {
    this.#labels = labels;
    this.#status.textContent = status;
    this.#list.replaceChildren(...labels.map(({ label, notation, count, alternatives }, i) => element(
      "li", { role: "option", id: `found-${i}` },
      element("span", {}, nameOf(label), notation ? element("span", { class: "notation" }, notation) : null),
      element("span", { class: "small" }, plural(count, "document")),
      alternatives.length ? element("span", { class: "small also" }, ...joined(alternatives)) : null,
    )));
    this.#list.hidden = !labels.length;
    this.#input.setAttribute("aria-expanded", String(labels.length > 0));
    this.#point(labels.length ? 0 : -1);
  }

  #point(at) {
    this.#at = at;
    [...this.#list.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    if (at < 0) return this.#input.removeAttribute("aria-activedescendant");
    this.#input.setAttribute("aria-activedescendant", `found-${at}`);
    this.#list.children[at].scrollIntoView({ block: "nearest" });
  }

  #key(event) {
    const n = this.#labels.length, step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && n) this.#point((this.#at + step + n) % n);
    else if (event.key === "Enter" && this.#at >= 0) this.#take(this.#labels[this.#at]);
    else if (event.key === "Escape" && n) this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #take(label) {
    this.#input.value = "";
    this.close();
    this.#chosen(label);
  }
}

function joined(names) {
  return ["also: ", ...names.flatMap((name, i) => (i ? [", ", nameOf(name)] : [nameOf(name)]))];
}
