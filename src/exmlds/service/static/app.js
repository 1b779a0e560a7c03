// The page of a service: a text, its suggestions, and what a person decides about them.

import * as api from "./api.js";
import { announce, byId, count, element, nameOf, percent, plural } from "./dom.js";
import { checkLength, onDrop, textOf } from "./files.js";
import { listen } from "./keys.js";
import { inUnits, marked } from "./marks.js";
import { LabelSearch } from "./search.js";
import { Sending } from "./sending.js";
import { Suggestions } from "./suggestions.js";
import { whyContent } from "./why.js";

const N_SUGGESTIONS = 20;
const N_FOUND = 12; // labels that a search shows
const N_MORE = 5; // suggestions that the button below the list adds

const text = byId("text"), language = byId("language"), slider = byId("threshold");
let model = { name: "", languages: [], default_threshold: null };
let threshold = 0;
let suggestedFor = null; // the text that the suggestions are for
let asked = new AbortController(); // of the request for suggestions
let explained = new AbortController(); // of the request for why
let focusBefore = null; // what had the focus when a problem came up

const suggestions = new Suggestions(byId("rows"), {
  changed: () => {
    sending.refresh();
    showCounts();
  },
  explain: (row, panel) => {
    if (row) attempt(() => explain(row, panel), () => suggestions.toggleWhy(row));
    else endExplanation();
  },
});
const sending = new Sending(suggestions, { text: () => text.value, attempt, grown });
const search = new LabelSearch(
  { input: byId("search"), list: byId("found"), status: byId("search-says") },
  {
    search: (wanted, signal) => api.searchLabels(wanted, N_FOUND, chosenLanguage(), signal),
    chosen: (label) => suggestions.add(label),
  },
);

// ---- problems and tokens

/** Run an action; its problem is shown, with a button to try again where that can help. */
async function attempt(action, again = () => attempt(action)) {
  byId("problem").hidden = true;
  try {
    await action();
  } catch (error) {
    if (error.name !== "AbortError") showProblem(error, again);
  }
}

function showProblem(problem, again) {
  const retry = byId("problem-retry");
  byId("problem-title").textContent = problem.message;
  byId("problem-detail").textContent = problem.detail ?? "Reload the page.";
  retry.hidden = !problem.mayPass;
  retry.onclick = () => {
    closeProblem();
    again();
  };
  if (byId("problem").hidden) focusBefore = document.activeElement;
  byId("problem").hidden = false;
}

function closeProblem() {
  const hadFocus = byId("problem").contains(document.activeElement);
  byId("problem").hidden = true;
  if (hadFocus) focusBefore.focus();
}

api.token.ask = (reason) => new Promise((resolve) => {
  const dialog = byId("token"), field = byId("token-value");
  byId("token-why").textContent = reason;
  field.value = "";
  dialog.returnValue = "";
  dialog.addEventListener("close", () => {
    const given = field.value.trim();
    field.value = "";
    const isGiven = dialog.returnValue === "use" && given !== "";
    resolve(isGiven ? given : null);
    byId("token-kept").hidden = !isGiven && api.token.get() === null;
  }, { once: true });
  dialog.showModal();
});

function forgetToken() {
  api.token.forget();
  byId("token-kept").hidden = true;
  sending.refresh();
}

// ---- the model

async function showModel() {
  model = await api.getModel();
  document.title = `${model.name} · label suggestions`;
  byId("name").replaceChildren(nameOf(model.name));
  byId("facts").textContent = [model.method, plural(model.n_labels, "label"), plural(model.n_documents, "document")].join(" · ");
  sending.model = model;
  byId("token-kept").hidden = api.token.get() === null;
}

async function start() {
  await showModel();
  byId("language-choice").hidden = model.languages.length < 2;
  language.replaceChildren(...model.languages.map((code) => element("option", { value: code }, languageName(code))));
  byId("own-threshold").textContent = `Back to ${percent(model.default_threshold ?? 0)}`;
  setThreshold(model.default_threshold ?? 0);
}

function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code);
  } catch {
    return code; // a name of its own, not a code
  }
}

const chosenLanguage = () => (model.languages.length > 1 ? language.value : null);

/** The model has another document, or one less: count anew, and suggest anew. */
async function grown() {
  await showModel();
  if (suggestedFor !== null) await suggest();
}

// ---- suggestions

async function suggest() {
  asked.abort();
  asked = new AbortController();
  if (!text.value.trim()) {
    text.focus();
    throw new api.Problem("There is no text yet", "Paste a text, or choose a file.");
  }
  checkLength(text.value);
  const wanted = text.value, { signal } = asked;
  byId("rows").setAttribute("aria-busy", "true");
  byId("count").textContent = "Asking the model …";
  try {
    suggestions.show(await api.suggest(wanted, N_SUGGESTIONS, chosenLanguage(), signal));
    suggestedFor = wanted;
    byId("nothing-yet").hidden = true;
    sending.refresh();
    const { top } = byId("suggested").getBoundingClientRect();
    if (top > 0.7 * innerHeight) byId("suggested").scrollIntoView(); // on a narrow screen it is below the text
  } finally {
    if (!signal.aborted) {
      byId("rows").removeAttribute("aria-busy");
      showCounts();
    }
  }
}

function setThreshold(value) {
  threshold = value;
  slider.value = value;
  slider.setAttribute("aria-valuetext", percent(value));
  byId("threshold-value").textContent = percent(value);
  byId("own-threshold").hidden = [null, value].includes(model.default_threshold);
  suggestions.setThreshold(value);
  showCounts();
}

function showCounts() {
  const { above, all } = suggestions.counts, lower = suggestions.lower(N_MORE);
  const isStale = suggestedFor !== null && text.value !== suggestedFor;
  const reach = above === 1 ? "reaches" : "reach";
  byId("count").textContent = isStale ? "The text was changed: suggest again."
    : suggestedFor === null ? ""
    : !all ? "None: the model knows no word of this text." : `${above || "None"} of ${all} ${reach} ${percent(threshold)}`;
  byId("threshold-tools").hidden = !all;
  byId("nothing-found").hidden = suggestedFor === null || all > 0;
  byId("more").hidden = lower === null;
  if (lower) byId("more").textContent = `Show ${lower.more} more, down to ${percent(lower.threshold)}`;
}

function lowerThreshold() {
  const { threshold: lower } = suggestions.lower(N_MORE);
  setThreshold(lower);
  if (byId("more").hidden) slider.focus();
}

/** Another text begins: no decision is about it yet. */
function begin(name = "") {
  asked.abort();
  byId("rows").removeAttribute("aria-busy");
  suggestedFor = null;
  suggestions.clear();
  sending.clear(name);
  byId("nothing-yet").hidden = false;
  edited();
}

function edited() {
  const isEmpty = text.value === "";
  byId("length").textContent = isEmpty ? "" : `${count([...text.value].length)} characters.`;
  suggestions.closeWhy();
  sending.refresh();
  showCounts();
}

async function takeExample() {
  const example = await api.exampleText(chosenLanguage());
  if (example === null) throw new api.Problem("There is no example", "This model keeps no texts; paste a text.");
  text.value = example;
  begin();
  await suggest();
  suggestions.move(1); // the button that was pressed is gone
}

async function openFile(file) {
  if (!file) return;
  const content = await textOf(file);
  text.value = content;
  begin(file.name.replace(/\.txt$/i, ""));
  await suggest();
}

// ---- why

async function explain(row, panel) {
  explained = new AbortController();
  const { signal } = explained, explainedText = suggestedFor ?? text.value;
  panel.replaceChildren(element("p", { class: "small" }, "Asking the model …"));
  try {
    const [why, about] = await Promise.all([
      api.explain(explainedText, row.id, chosenLanguage(), signal), api.getLabel(row.id, chosenLanguage(), signal),
    ]);
    if (signal.aborted) return;
    const marks = inUnits(explainedText, why.marks);
    const accept = (label) => suggestions.add({ notation: null, ...label });
    panel.replaceChildren(...whyContent(explainedText, why, about, { marks, added: sending.added, accept }));
    announce(`Why ${row.label}: shown below it.`);
    drawMarks(row.label, explainedText, marks);
  } catch (error) {
    if (error.status === 404 && !signal.aborted) {
      const reason = "The model knows this label by its name only: no training document has it.";
      panel.replaceChildren(element("p", { class: "small" }, reason));
      return;
    }
    if (!signal.aborted) suggestions.closeWhy();
    throw error;
  }
}

function endExplanation() {
  explained.abort();
  drawMarks("", "", []);
}

/** Draw the marks behind the text, and say below what they mean. */
function drawMarks(label, of, marks) {
  const key = byId("marks-key");
  const kinds = {
    for: marks.some((mark) => mark.kind === "word" && mark.weight >= 0),
    against: marks.some((mark) => mark.kind === "word" && mark.weight < 0),
    name: marks.some((mark) => mark.kind === "name"),
  };
  byId("marked").replaceChildren();
  if (marks.length && text.value === of) {
    for (const node of marked(of, marks)) byId("marked").append(node); // too many for the arguments of one call
    byId("marked").append("\n");
  }
  byId("marked").scrollTop = text.scrollTop;
  key.hidden = !marks.length;
  key.querySelector("b").replaceChildren(nameOf(label));
  for (const [kind, isThere] of Object.entries(kinds)) key.querySelector(`span.${kind}`).hidden = !isThere;
}

// ---- events

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(suggest);
});
text.addEventListener("input", edited);
text.addEventListener("scroll", () => { byId("marked").scrollTop = text.scrollTop; });
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) attempt(suggest);
});
text.addEventListener("paste", () => {
  // A text that is pasted over all of another is another text.
  if (text.value && text.selectionStart === 0 && text.selectionEnd === text.value.length) begin();
});
language.addEventListener("change", () => { if (suggestedFor !== null) attempt(suggest); });
slider.addEventListener("input", () => setThreshold(Number(slider.value)));
byId("own-threshold").addEventListener("click", () => {
  setThreshold(model.default_threshold);
  slider.focus(); // the button is gone
});
byId("more").addEventListener("click", lowerThreshold);
byId("example").addEventListener("click", () => attempt(takeExample));
byId("choose").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", (event) => {
  const [file] = event.target.files;
  attempt(() => openFile(file));
  event.target.value = ""; // the same file can be chosen again
});
onDrop(document.querySelector(".paper"), (file) => attempt(() => openFile(file)));
byId("clear").addEventListener("click", () => {
  text.value = "";
  begin();
  text.focus();
});
byId("keys").addEventListener("click", () => byId("help").showModal());
byId("problem-close").addEventListener("click", closeProblem);
byId("forget-token").addEventListener("click", forgetToken);

listen(
  {
    j: () => suggestions.move(1),
    k: () => suggestions.move(-1),
    a: () => suggestions.decide("accepted"),
    r: () => suggestions.decide("rejected"),
    e: () => suggestions.toggleWhy(),
    c: () => attempt(() => sending.copy()),
    t: () => text.focus(),
    "/": () => byId("search").focus(),
    "?": () => byId("help").showModal(),
  },
  () => {
    if (!byId("problem").hidden) closeProblem();
    else if (!suggestions.closeWhy()) {
      search.close();
      document.activeElement.blur();
    }
  },
);

await attempt(start);
document.documentElement.dataset.ready = "";
