// Marks in a text. The service counts code points, as Python does; strings here count UTF-16 units.

import { element } from "./dom.js";

/** The marks with offsets in UTF-16 units. */
export function inUnits(text, marks) {
  const wanted = [...new Set(marks.flatMap((mark) => [mark.start, mark.end]))].sort((a, b) => a - b);
  const units = new Map();
  let points = 0, unit = 0;
  for (const offset of wanted) {
    for (; points < offset && unit < text.length; points++) unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
    units.set(offset, unit);
  }
  return marks.map((mark) => ({ ...mark, start: units.get(mark.start), end: units.get(mark.end) }));
}

/** The text in pieces [start, end, mark or null]; of marks on one another a name is drawn, or the heaviest. */
export function pieces(text, marks) {
  const rank = (mark) => (mark.kind === "name" ? Infinity : Math.abs(mark.weight));
  const ends = [...new Set([0, text.length, ...marks.flatMap((mark) => [mark.start, mark.end])])].sort((a, b) => a - b);
  const events = [...marks].sort((a, b) => a.start - b.start), found = [];
  let open = [], next = 0;
  for (let i = 0; i + 1 < ends.length; i++) {
    while (next < events.length && events[next].start <= ends[i]) open.push(events[next++]);
    open = open.filter((mark) => mark.end > ends[i]);
    const top = open.reduce((best, mark) => (best && rank(best) >= rank(mark) ? best : mark), null);
    const last = found.at(-1);
    if (last && last[2] === top) last[1] = ends[i + 1];
    else found.push([ends[i], ends[i + 1], top]);
  }
  return found;
}

/** The text with its marks, as nodes. */
export function marked(text, marks, start = 0, end = text.length) {
  const heaviest = marks.reduce((most, mark) => Math.max(most, Math.abs(mark.weight)), 0);
  return pieces(text, marks).filter((piece) => piece[1] > start && piece[0] < end).map(([from, to, mark]) => {
    const shown = text.slice(Math.max(from, start), Math.min(to, end));
    if (mark === null) return document.createTextNode(shown);
    const side = mark.weight < 0 ? "against" : "for";
    const strong = Math.abs(mark.weight) > heaviest / 3 ? "strong" : "";
    return element("mark", { class: mark.kind === "name" ? "name" : `word ${side} ${strong}` }, shown);
  });
}

const AROUND = 60; // UTF-16 units before and after a mark
const LONGEST = 400; // UTF-16 units of a passage
const MOST = 6; // passages

/** The passages of the text around the marks, as lists of nodes, for where the text itself is out of sight. */
export function passages(text, marks) {
  const spans = [];
  for (const { start, end } of [...marks].sort((a, b) => a.start - b.start)) {
    const from = wordStart(text, start - AROUND), to = wordEnd(text, end + AROUND), last = spans.at(-1);
    if (!last || from > last[1]) spans.push([from, to]);
    else if (to - last[0] <= LONGEST) last[1] = Math.max(last[1], to);
    if (spans.length > MOST) break;
  }
  return spans.slice(0, MOST).map(([from, to]) => [
    ...(from > 0 ? ["… "] : []), ...marked(text, marks, from, to), ...(to < text.length ? [" …"] : []),
  ]);
}

function wordStart(text, from) {
  if (from <= 0) return 0;
  const space = text.slice(from, from + AROUND / 2).search(/\s/);
  return space < 0 ? whole(text, from) : from + space + 1;
}

function wordEnd(text, to) {
  if (to >= text.length) return text.length;
  const space = text.slice(to - AROUND / 2, to).search(/\s\S*$/);
  return space < 0 ? whole(text, to) : to - AROUND / 2 + space;
}

/** An offset that does not part a surrogate pair. */
function whole(text, offset) {
  const unit = text.charCodeAt(offset);
  return unit >= 0xdc00 && unit < 0xe000 ? offset - 1 : offset;
}
