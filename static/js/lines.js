// Lines of a log as elements, in runs: what a carriage return left to be overwritten gives its place to the worker's next line.
import { render } from "./ansi.js";
import { clock } from "./time.js";

const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/;

export function lineElement(line, job) {
  const element = document.createElement("div");
  element.className = "line";
  element.id = `L${line.seq}`;
  element.dataset.seq = line.seq;
  element.dataset.worker = line.worker;
  if (line.overwritten) element.dataset.overwritten = "1";
  const link = document.createElement("a");
  link.className = "n";
  link.tabIndex = -1; // thousands of stops would keep the keyboard in the log; a line is linked to with the mouse
  link.href = `/jobs/${job}/logs/#L${line.seq}`;
  link.textContent = line.seq;
  const text = document.createElement("span");
  text.className = "x";
  render(text, line.text);
  const time = part("t", clock(new Date(line.time * 1000)));
  element.append(link, " ", time, " ", part("w", line.worker), " ", text);
  return element;
}

function part(name, words) {
  const span = document.createElement("span");
  span.className = name;
  span.textContent = words;
  return span;
}

export function dress(element) {
  // what the server wrote is raw text: colours are put in here
  const text = element.querySelector(".x");
  if (!text || !CONTROL.test(text.textContent)) return;
  const raw = text.textContent;
  text.textContent = "";
  render(text, raw);
}

export class Run {
  // the elements of a stretch of lines, appended to `into`; `open` remembers whose last line will be overwritten
  constructor(into) {
    this.into = into;
    this.open = new Map();
  }

  take(element) {
    // true where the line made the log longer
    const { worker } = element.dataset;
    const before = this.open.get(worker);
    const inPlace = before && before.parentNode;
    if (inPlace) {
      element.dataset.from = fromOf(before);
      before.replaceWith(element);
    } else {
      this.into.append(element);
    }
    if (element.dataset.overwritten) this.open.set(worker, element);
    else this.open.delete(worker);
    return !inPlace;
  }
}

export function seqOf(element) {
  return Number(element.dataset.seq);
}

export function fromOf(element) {
  // the first of the lines that this element has shown
  return Number(element.dataset.from || element.dataset.seq);
}
