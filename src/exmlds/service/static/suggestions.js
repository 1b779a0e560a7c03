// The list of suggestions: a row for each label, with its probability, its decision and, when asked for, why.

import { announce, bar, element, nameOf, percent } from "./dom.js";

export class Suggestions {
  #list;
  #rows = new Map(); // by the label's id, in the order of the list
  #threshold = 0;
  #changed;
  #explain;
  #open = null; // the row whose panel is open

  /** `changed()` is called after each decision; `explain(row, panel)` fills a panel, `explain(null)` ends it. */
  constructor(list, { changed, explain }) {
    [this.#list, this.#changed, this.#explain] = [list, changed, explain];
    list.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-does]");
      const row = button && this.#rows.get(button.closest("li.row").dataset.id);
      if (!row) return;
      if (button.dataset.does === "why") this.toggleWhy(row);
      else this.decide(button.dataset.does, row);
    });
  }

  /** Show the answer to a text. Decisions stay; a label with one that is not suggested any more stays too. */
  show(suggestions) {
    this.closeWhy();
    const before = this.#rows, suggested = new Set(suggestions.map(({ id }) => id));
    const kept = [...before.values()].filter((row) => row.decision && !suggested.has(row.id));
    this.#rows = new Map();
    for (const label of suggestions) this.#insert(label, before.get(label.id)?.decision ?? null);
    for (const row of kept) this.#insert({ ...row, score: null }, row.decision);
    this.#list.replaceChildren(...[...this.#rows.values()].map((row) => row.node));
    this.#redraw();
  }

  clear() {
    this.#rows = new Map();
    this.show([]);
  }

  /** Accept a label that was found by a search. */
  add(label) {
    let row = this.#rows.get(label.id);
    if (!row) {
      row = this.#insert({ ...label, score: null }, null);
      this.#list.append(row.node);
    }
    if (row.decision !== "accepted") this.decide("accepted", row);
  }

  setThreshold(threshold) {
    this.#threshold = threshold;
    this.#redraw();
  }

  /** Suggestions that reach the threshold, and how many there are in all. */
  get counts() {
    const scores = [...this.#rows.values()].filter((row) => row.score !== null).map((row) => row.score);
    return { above: scores.filter((score) => score >= this.#threshold).length, all: scores.length };
  }

  /** A lower threshold that shows up to `n` more suggestions, and how many it shows; null if all are shown. */
  lower(n) {
    const hidden = [...this.#rows.values()].filter((row) => row.node.hidden).map((row) => row.score).sort((a, b) => b - a);
    if (!hidden.length) return null;
    const threshold = hidden[Math.min(n, hidden.length) - 1];
    return { threshold, more: hidden.filter((score) => score >= threshold).length };
  }

  decided(decision) {
    return [...this.#rows.values()].filter((row) => row.decision === decision);
  }

  /** The row that has the focus, or had it last. */
  get current() {
    const node = document.activeElement.closest("li.row");
    if (node && this.#list.contains(node)) return this.#rows.get(node.dataset.id);
    return [...this.#rows.values()].find((row) => row.node.classList.contains("current")) ?? null;
  }

  /** Focus the next (1) or previous (-1) visible row. */
  move(step) {
    const visible = [...this.#rows.values()].filter((row) => !row.node.hidden);
    if (!visible.length) return;
    const inList = this.#list.contains(document.activeElement), at = visible.indexOf(this.current);
    const next = !inList && at >= 0 ? at : at < 0 ? 0 : Math.min(Math.max(at + step, 0), visible.length - 1);
    visible[next].button.focus();
    visible[next].node.scrollIntoView({ block: "nearest" });
  }

  /** Give a row this decision, or take it back if the row has it already. */
  decide(decision, row = this.current) {
    if (!row) return;
    row.decision = row.decision === decision ? null : decision;
    announce(`${row.label}: ${row.decision ?? "undecided"}`);
    this.#redraw();
    this.#changed();
  }

  toggleWhy(row = this.current) {
    const isOpen = row === this.#open;
    this.closeWhy();
    if (!row || isOpen) return;
    this.#open = row;
    row.button.setAttribute("aria-expanded", "true");
    row.panel.hidden = false;
    this.#explain(row, row.panel);
  }

  /** Close the panel that is open; false if none is. */
  closeWhy() {
    const row = this.#open;
    if (!row) return false;
    this.#open = null;
    if (row.panel.contains(document.activeElement)) row.button.focus();
    row.button.setAttribute("aria-expanded", "false");
    row.panel.hidden = true;
    row.panel.replaceChildren();
    this.#explain(null);
    return true;
  }

  #insert({ id, label, notation, score }, decision) {
    const panelId = `why-${this.#rows.size}`, chanceId = `chance-${this.#rows.size}`;
    const button = element(
      "button",
      {
        type: "button", class: "label", "data-does": "why",
        "aria-expanded": "false", "aria-controls": panelId, "aria-describedby": chanceId,
      },
      nameOf(label),
      notation ? element("span", { class: "notation" }, notation) : null,
    );
    button.addEventListener("focus", () => this.#mark(node));
    const chance = score === null
      ? [element("span", { id: chanceId, class: "chance added" }, "added by you")]
      : [bar(score), element("span", { id: chanceId, class: "chance" }, percent(score))];
    const decide = (does, sign, name) => element(
      "button",
      { type: "button", class: `decide ${does}`, "data-does": does, "aria-label": `${name} ${label}`, title: name },
      element("span", { "aria-hidden": "true" }, sign),
    );
    const panel = element("div", { id: panelId, class: "why", role: "region", "aria-label": `Why ${label}`, hidden: true });
    const node = element(
      "li", { class: "row", "data-id": id },
      element("div", { class: "line" }, button, ...chance, decide("accepted", "✓", "Accept"), decide("rejected", "✗", "Reject")),
      panel,
    );
    const row = { id, label, notation, score, decision, node, button, panel };
    this.#rows.set(id, row);
    return row;
  }

  #mark(node) {
    for (const row of this.#rows.values()) row.node.classList.toggle("current", row.node === node);
  }

  #redraw() {
    this.#list.style.setProperty("--threshold", this.#threshold);
    for (const { node, score, decision } of this.#rows.values()) {
      const hasFocus = node.contains(document.activeElement);
      node.hidden = score !== null && score < this.#threshold && !decision && !hasFocus;
      for (const name of ["accepted", "rejected"]) {
        node.classList.toggle(name, decision === name);
        node.querySelector(`.decide.${name}`).setAttribute("aria-pressed", String(decision === name));
      }
    }
  }
}
