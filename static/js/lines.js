// Lines of a log as elements, in runs: what a carriage return left to be overwritten gives its place to the worker's next line.
import { plain, render } from "./ansi.js";
import { gettext, ngettext, said } from "./words.js";

// what is worth a mark in the gutter, beside the level that the portal read from the line; the first that fits
const MARKS = [
  ["traceback", /Traceback \(most recent call last\)/],
  ["memory", /out of memory|oom-?kill/i],
  ["dropped", /^\[\d+ lines dropped by the rate limit\]$/],
  ["checkpoint", /\b(?:sav(?:ed|ing)|wrote)\b.{0,40}\bcheckpoint|\bcheckpoint\b.{0,60}\b(?:saved|written)\b/i],
];
const CUT = / … \[\d+ more bytes of this line were cut\]$/; // at its far end, where nobody looks
const data = new WeakMap(); // element -> the line as it was written
// one maker for all: asked for line by line, words of a time take longer than the rest of a line
const clocks = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
let second = { at: NaN, words: "" };
const wholes = new Intl.NumberFormat("en");

export function lineElement(line, job) {
  const element = document.createElement("div");
  element.className = "line";
  element.id = `L${line.seq}`;
  element.dataset.seq = line.seq;
  element.dataset.worker = line.worker;
  element.dataset.attempt = line.attempt;
  if (line.overwritten) element.dataset.overwritten = "1";
  if (line.level) element.dataset.said = line.level;
  const level = levelOf(line);
  if (level) element.dataset.level = level;
  const link = document.createElement("a");
  link.className = "n";
  link.tabIndex = -1; // thousands of stops would keep the keyboard in the log; the field "Line" gets there as well
  link.href = `/jobs/${job}/logs/#L${line.seq}`;
  link.textContent = line.seq;
  const time = part("time", "t", line.time ? clockOf(line.time) : "");
  const text = part("span", "x", "");
  render(text, line.text);
  data.set(element, line);
  element.append(link, " ", time, " ", part("span", "w", line.worker), " ", text);
  return element;
}

export function clockOf(time) {
  const at = Math.floor(time);
  if (second.at !== at) second = { at, words: clocks.format(new Date(at * 1000)) };
  return second.words;
}

function part(tag, name, words) {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = words;
  return element;
}

export function levelOf({ text, level = "", continues = false }) {
  const words = plain(text.length > 2000 ? text.slice(0, 2000) : text);
  const mark = continues ? "" : (MARKS.find(([, pattern]) => pattern.test(words))?.[0] ?? "");
  return mark || (!continues && ["error", "warning"].includes(level) ? level : "") || (CUT.test(text.slice(-80)) ? "cut" : "");
}

export function written(element) {
  // a line that the server put on the page, as the data it was made of
  const { seq, worker, attempt, time, overwritten, said: level, continues } = element.dataset;
  return {
    seq: Number(seq), worker, attempt: Number(attempt), time: Number(time),
    overwritten: Boolean(overwritten), level, continues: Boolean(continues), text: element.querySelector(".x").textContent,
  };
}

export function rawOf(element) {
  return data.get(element)?.text ?? "";
}

export function timeOf(element) {
  return data.get(element)?.time ?? 0;
}

export function momentOf(element) {
  const time = timeOf(element);
  return time ? new Date(time * 1000).toLocaleString([], { hour12: false, timeZoneName: "short" }) : "";
}

export function plainOf(element) {
  return plain(rawOf(element));
}

export function setFound(element, ranges) {
  render(element.querySelector(".x"), rawOf(element), ranges);
}

export class Run {
  // the elements of a stretch of lines, appended to `into`; `open` remembers whose last line will be overwritten
  constructor(into, { attempt = 0, counted = true } = {}) {
    this.into = into;
    this.open = new Map();
    this.attempt = attempt; // of the line before
    this.counted = counted;
  }

  take(element) {
    // true where the line made the log longer
    const key = keyOf(element);
    const before = this.open.get(key);
    const inPlace = before && before.parentNode;
    if (inPlace) {
      const expanded = before.nextElementSibling?.matches(".line-history");
      before.replaceWith(element);
      this.collapse(element, fromOf(before), updatesOf(before) + 1, expanded);
    } else {
      const attempt = Number(element.dataset.attempt);
      if (this.attempt && attempt !== this.attempt) this.into.append(boundary(attempt));
      this.attempt = attempt;
      this.into.append(element);
    }
    if (element.dataset.overwritten) this.open.set(key, element);
    else this.open.delete(key);
    return !inPlace;
  }

  collapse(element, from, updates, expanded = false) {
    element.dataset.from = from;
    element.dataset.updates = updates;
    if (!this.counted) return;
    let button = element.querySelector(".updates");
    if (!button) {
      button = part("button", "updates", "");
      button.type = "button";
      element.append(" ", button);
    }
    button.setAttribute("aria-expanded", expanded);
    button.textContent = said(ngettext("{count} update collapsed", "{count} updates collapsed", updates), { count: whole(updates) });
  }
}

export function boundary(attempt) {
  const element = part("div", "boundary", said(gettext("Attempt {number} starts here"), { number: attempt }));
  element.dataset.attempt = attempt;
  return element;
}

export function whole(number) {
  return wholes.format(number);
}

export function keyOf(element) {
  return `${element.dataset.attempt}/${element.dataset.worker}`;
}

export function seqOf(element) {
  return Number(element.dataset.seq);
}

export function fromOf(element) {
  // the first of the lines that this element has shown
  return Number(element.dataset.from || element.dataset.seq);
}

export function updatesOf(element) {
  return Number(element.dataset.updates || 0);
}
