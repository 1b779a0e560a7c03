// Text files that are chosen or dropped.

import { Problem } from "./api.js";
import { count } from "./dom.js";

const MOST = 1_000_000; // bytes of a file, characters of a text: a book of some hundred pages

/** Refuse a text that the service would refuse. */
export function checkLength(text) {
  if (text.length > MOST) {
    throw new Problem("The text is too long", `It has ${count(text.length)} characters; ${count(MOST)} are possible. Take a part of it.`);
  }
}

/** The text of a file. Files of other kinds, too large or not in UTF-8 are refused. */
export async function textOf(file) {
  if (!/\.txt$/i.test(file.name) && file.type !== "text/plain") {
    throw new Problem(`${file.name} is not a text file`, "Save it as plain text (.txt), or copy its text and paste it.");
  }
  if (file.size > MOST) {
    throw new Problem(`${file.name} is too large`, `It has ${count(file.size)} bytes; ${count(MOST)} are possible. Paste a part of its text.`);
  }
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    text = "\0";
  }
  if (text.includes("\0")) {
    throw new Problem(`${file.name} is not in UTF-8`, "Save it as plain text in UTF-8, or copy its text and paste it.");
  }
  return text;
}

/** Call `given(file)` for a file that is dropped anywhere on the page; `over` is marked meanwhile. */
export function onDrop(over, given) {
  const hasFiles = (event) => [...event.dataTransfer.types].includes("Files");
  const mark = (on) => over.classList.toggle("dropping", on);
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(true);
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) mark(false); });
  document.addEventListener("drop", (event) => {
    mark(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    given(event.dataTransfer.files[0]);
  });
}
