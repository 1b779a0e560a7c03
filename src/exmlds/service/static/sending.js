// What is done with the labels that were accepted: copied, sent as feedback, added as a document.

import * as api from "./api.js";
import { byId, element, nameOf, plural } from "./dom.js";

export class Sending {
  added = new Set(); // ids of the documents that were added while this page is open
  #suggestions;
  #text;
  #attempt;
  #grown;
  #model = { growable: false, feedback: false };
  #feedback = null; // { id, content } of what was sent for this text
  #document = null;
  #isBusy = false;

  /** `text()` is the text, `attempt(action)` runs an action and shows its problem, `grown()` follows a change. */
  constructor(suggestions, { text, attempt, grown }) {
    [this.#suggestions, this.#text, this.#attempt, this.#grown] = [suggestions, text, attempt, grown];
    const buttons = {
      copy: () => this.copy(),
      "send-feedback": () => this.#sendFeedback(),
      "delete-feedback": () => this.#deleteFeedback(),
      "add-document": () => this.#addDocument(),
      "remove-document": () => this.#removeDocument(),
    };
    for (const [id, action] of Object.entries(buttons)) byId(id).addEventListener("click", () => this.#run(action));
    byId("document-id").addEventListener("keydown", (event) => {
      if (event.key === "Enter") byId("add-document").click();
    });
  }

  set model(model) {
    this.#model = model;
    byId("send-feedback").hidden = !model.feedback;
    byId("document-tools").hidden = !model.growable;
    byId("document-note").hidden = !model.growable;
    byId("feedback-note").hidden = !model.feedback_note;
    byId("feedback-note").textContent = model.feedback_note ?? "";
    this.refresh();
  }

  /** A new text: nothing was sent for it yet. */
  clear(documentId = "") {
    [this.#feedback, this.#document] = [null, null];
    byId("document-id").value = documentId;
    this.#say("");
    this.refresh();
  }

  /** Follow the decisions. */
  refresh() {
    const accepted = this.#suggestions.decided("accepted"), rejected = this.#suggestions.decided("rejected");
    const hasText = this.#text().trim() !== "", { feedback, growable, needs_write_token } = this.#model;
    byId("accepted").replaceChildren(...accepted.map(({ label }) => element("li", {}, nameOf(label))));
    byId("decided").textContent = accepted.length || rejected.length
      ? `${accepted.length} accepted, ${rejected.length} rejected` : "none yet";
    byId("copy").disabled = !accepted.length;
    byId("send-feedback").disabled = !hasText || !(accepted.length || rejected.length) || this.#isSent(this.#feedback);
    byId("add-document").disabled = !hasText || !accepted.length || this.#isSent(this.#document);
    byId("add-document").textContent = this.#document ? "Update" : "Add as document";
    byId("send-feedback").textContent = this.#feedback ? "Send again" : "Send as feedback";
    byId("delete-feedback").hidden = !this.#feedback;
    byId("remove-document").hidden = !this.#document;
    byId("document-id").readOnly = this.#document !== null;
    byId("needs-token").hidden = !(needs_write_token && (feedback || growable)) || api.token.get() !== null;
  }

  async copy() {
    const accepted = this.#suggestions.decided("accepted");
    if (!accepted.length) return;
    await copyText(accepted.map(({ id, label }) => (id === label ? label : `${label}\t${id}`)).join("\n"));
    this.#say(`Copied ${plural(accepted.length, "label")}, one a line.`);
  }

  get #decisions() {
    const ids = (decision) => this.#suggestions.decided(decision).map(({ id }) => id);
    return { text: this.#text(), accepted: ids("accepted"), rejected: ids("rejected") };
  }

  /** Run an action, one at a time: a second click adds no second document. */
  async #run(action) {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#say("One moment …");
    await this.#attempt(async () => {
      try {
        await action();
      } catch (error) {
        this.#say("");
        throw error;
      } finally {
        this.#isBusy = false;
      }
    }, () => this.#run(action));
  }

  #isSent(sent) {
    return sent !== null && sent.content === JSON.stringify(this.#decisions);
  }

  async #sendFeedback() {
    const decisions = this.#decisions, before = this.#feedback;
    const id = await api.sendFeedback({ ...decisions, document_id: this.#document?.id ?? null });
    this.#feedback = { id, content: JSON.stringify(decisions) };
    if (before) await api.deleteFeedback(before.id);
    this.refresh();
    this.#done("The feedback is kept.");
  }

  async #deleteFeedback() {
    await api.deleteFeedback(this.#feedback.id);
    this.#feedback = null;
    this.refresh();
    this.#done("The feedback is deleted.");
  }

  async #addDocument() {
    const decisions = this.#decisions, wanted = this.#document?.id ?? (byId("document-id").value.trim() || null);
    const id = await api.addDocument(wanted, decisions.text, decisions.accepted, this.#document !== null);
    this.#document = { id, content: JSON.stringify(decisions) };
    this.added.add(id);
    byId("document-id").value = id;
    this.refresh();
    await this.#attempt(this.#grown);
    this.#done(`Document ${id} is in the model.`);
  }

  async #removeDocument() {
    const { id } = this.#document;
    await api.removeDocument(id);
    this.#document = null;
    this.added.delete(id);
    byId("document-id").value = "";
    this.refresh();
    await this.#attempt(this.#grown);
    this.#done(`Document ${id} is removed, and its text is deleted.`);
  }

  /** Say what was done; the focus goes there, because the button that was pressed may be off now. */
  #done(message) {
    this.#say(message);
    byId("said").focus();
  }

  #say(message) {
    byId("said").textContent = message;
  }
}

async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = element("textarea", { class: "unseen" }); // a page over plain HTTP has no clipboard of its own
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
