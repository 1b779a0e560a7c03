// Requests to the service. Errors are Problems: what happened, and what to do.

import { stored } from "./storage.js";

export class Problem extends Error {
  /** `status` is that of the answer, 0 if there was none, and null for a problem that was found here. */
  constructor(title, detail, status = null, type = "") {
    super(title);
    [this.detail, this.status, this.type] = [detail, status, type];
  }

  /** Whether the same request may succeed when it is sent again. */
  get mayPass() {
    return [0, 401, 429].includes(this.status) || this.status >= 500;
  }
}

export const token = {
  ...stored("sessionStorage", "exmlds-token"),
  /** Ask the person for a token and say why; the page replaces this. Resolves to null if there is none. */
  ask: async () => null,
};

/** The JSON that the service answers; null where it answers without one. */
export async function call(method, path, body = undefined, signal = undefined) {
  const response = await send(method, path, body, signal);
  if (response.ok) return response.status === 204 ? null : response.json();
  const problem = await problemOf(response), reason = whyToken(problem);
  if (reason === null) throw problem;
  const given = await token.ask(reason);
  if (given === null) throw new Problem("A token is needed", "Try again, and give a token of this service.", 401);
  token.set(given);
  return call(method, path, body, signal);
}

/** Why another token is needed; null if the problem is another one. */
function whyToken({ status, type }) {
  if (type.endsWith(":forbidden")) return "This needs a token for writing, and yours is for reading.";
  if (status !== 401) return null;
  return token.get() ? "The service does not know this token." : "The service asks for a token.";
}

async function send(method, path, body, signal) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  try {
    return await fetch(path, { method, headers, signal, cache: "no-store", body: JSON.stringify(body, wellFormed) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The service does not answer", "Look whether exmlds serve is still running, then try again.", 0);
  }
}

/** The service refuses halves of surrogate pairs, which no encoding can write. */
function wellFormed(_, value) {
  return typeof value === "string" ? value.toWellFormed() : value;
}

async function problemOf(response) {
  const type = response.headers.get("Content-Type") ?? "";
  if (type.includes("json")) {
    const { title, detail, type } = await response.json();
    return new Problem(title ?? `Error ${response.status}`, detail ?? "", response.status, type ?? "");
  }
  return new Problem(`The service answered with error ${response.status}`, "Try again in a moment.", response.status);
}

export const getModel = () => call("GET", "v1/model");

export async function suggest(text, limit, language, signal) {
  const { results } = await call("POST", "v1/suggest", { text, limit, threshold: 0, language }, signal);
  return results[0].suggestions;
}

export const explain = (text, label, language, signal) =>
  call("POST", "v1/explain", { text, label, limit: 8, language }, signal);

export async function searchLabels(search, limit, language, signal) {
  const query = new URLSearchParams({ search, limit, ...(language ? { language } : {}) });
  return (await call("GET", `v1/labels?${query}`, undefined, signal)).labels;
}

/** The beginning of a training document; null if the model keeps no texts. */
export async function exampleText(language) {
  const [label] = await searchLabels("", 1, language);
  return label ? (await getLabel(label.id, language)).documents[0]?.text ?? null : null;
}

export function getLabel(id, language, signal) {
  const query = language ? `?${new URLSearchParams({ language })}` : "";
  return call("GET", `v1/labels/${encodeURIComponent(id)}${query}`, undefined, signal);
}

export async function addDocument(id, text, labels, replace) {
  try {
    const { ids } = await call("POST", "v1/documents", { documents: [{ id, text, labels }], replace });
    return ids[0];
  } catch (error) {
    // The page never replaces a document that it has not added.
    if (error.type?.endsWith(":document-exists")) error.detail = "Give another id, or none.";
    throw error;
  }
}

/** Remove a document; its text leaves the model folder too. */
export const removeDocument = (id) => call("DELETE", `v1/documents/${encodeURIComponent(id)}?purge=true`);

export const sendFeedback = async (feedback) => (await call("POST", "v1/feedback", feedback)).id;

export const deleteFeedback = (id) => call("DELETE", `v1/feedback/${encodeURIComponent(id)}`);
