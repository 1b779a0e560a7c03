// Why a label was suggested: the words that speak for it, the training documents that voted, the evidence.

import { bar, element, nameOf, percent, plural, signed } from "./dom.js";
import { passages } from "./marks.js";

const LONG = 220; // UTF-16 units of a document's text, above which the rest is folded
const N_DOCUMENTS = 5;
const N_SIMILAR = 5;

/** The content of a panel. `about` is the label itself, `added` are documents that were added on this page. */
export function whyContent(text, why, about, { marks, added, accept }) {
  const parts = [summary(about, why, marks)], similar = about.similar.slice(0, N_SIMILAR);
  if (marks.length) parts.push(inText(text, marks));
  parts.push(words(why.words), documents(why.documents.slice(0, N_DOCUMENTS), added), evidence(why));
  if (similar.length) parts.push(similarLabels(similar, accept));
  return parts.filter((part) => part !== null);
}

function summary(about, why, marks) {
  const has = about.count === 1 ? "has" : "have";
  return element(
    "p", { class: "small" },
    `The score is ${percent(why.score)}. ${plural(about.count, "training document")} ${has} this label.`,
    marks.some(({ kind }) => kind === "name") ? " Its name stands in the text." : "",
  );
}

function part(title, ...content) {
  return element("section", {}, element("h3", {}, title), ...content);
}

/** The text around the marks, for screens on which the text itself is not beside the panel. */
function inText(text, marks) {
  const shown = passages(text, marks).map((nodes) => element("p", { dir: "auto" }, ...nodes));
  const made = part("In the text", ...shown);
  made.className = "in-text";
  return made;
}

function words(found) {
  if (!found.length) return null;
  const items = found.map(({ word, weight }) => element(
    "li", { class: weight < 0 ? "against" : "for" },
    nameOf(word), " ", element("span", { class: "small" }, signed(weight)),
  ));
  return part("Words for it (+) and against it (−)", element("ul", { class: "chips" }, ...items));
}

function documents(found, added) {
  if (!found.length) {
    return part("Training documents that voted", element("p", { class: "small" }, "None did."));
  }
  const most = Math.max(...found.map(({ share }) => share), 1e-9);
  return part("Training documents that voted", element("ol", { class: "documents" }, ...found.map((one) => {
    const id = element("span", { class: "id", title: one.id }, nameOf(one.id));
    const here = added.has(one.id) ? element("span", { class: "tag" }, "added here") : null;
    const labels = one.labels.map(({ label }) => element("li", {}, nameOf(label)));
    const share = `${(100 * one.share).toFixed(1)} % of the votes`;
    const votes = element("span", { class: "share" }, bar(one.share / most), share);
    return element(
      "li", {},
      element("p", { class: "small head" }, id, here, votes, `similarity ${one.similarity.toFixed(2)}`),
      one.text === null ? null : excerpt(one.text),
      element("ul", { class: "chips small", "aria-label": "Its labels" }, ...labels),
    );
  })));
}

function excerpt(text) {
  const shown = element("p", { class: "text", dir: "auto" }, text);
  if (text.length <= LONG) return shown;
  const button = element("button", { type: "button", class: "plain", "aria-expanded": "false" }, "Show all");
  button.addEventListener("click", () => {
    const open = shown.classList.toggle("folded") === false;
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "Show less" : "Show all";
  });
  shown.classList.add("folded");
  return element("div", {}, shown, button);
}

function evidence(why) {
  if (!why.log_odds.length) return null;
  const most = Math.max(...why.log_odds.map(({ value }) => Math.abs(value)), 1e-9);
  const total = why.log_odds.reduce((sum, { value }) => sum + value, 0);
  const rows = why.log_odds.map(({ name, value }) => element(
    "tr", {},
    element("th", { scope: "row" }, name),
    element("td", { class: "both" }, bar(Math.max(-value, 0) / most, "against"), bar(Math.max(value, 0) / most)),
    element("td", { class: "number" }, signed(value)),
  ));
  rows.push(element(
    "tr", { class: "total" },
    element("th", { scope: "row" }, "total"), element("td"), element("td", { class: "number" }, signed(total)),
  ));
  return part(
    "Evidence, in log-odds",
    element("table", { class: "evidence" }, element("tbody", {}, ...rows)),
    element("p", { class: "small" }, "Above 0 speaks for the label. The total is the score: 0 is 50 %."),
  );
}

function similarLabels(labels, accept) {
  const items = labels.map((label) => {
    const button = element("button", { type: "button", class: "pill" }, "+ ", nameOf(label.label));
    button.setAttribute("aria-label", `Accept ${label.label}`);
    button.addEventListener("click", () => accept(label));
    return element("li", {}, button);
  });
  return part("Similar labels", element("ul", { class: "pills" }, ...items));
}
