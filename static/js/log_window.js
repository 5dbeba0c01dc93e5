// The lines of a log that are elements: added at either end, `keep` at most. Where the newest are not among them it is `detached`.
import { Run, boundary, fromOf, keyOf, lineElement, seqOf, updatesOf, written } from "./lines.js";

export class LogWindow {
  constructor(box, { id, keep, small = false }) {
    Object.assign(this, { box, id, keep, small });
    this.lines = box.getElementsByClassName("line");
    this.only = null; // a search whose matches are all that is shown; empty where only a part of the lines is chosen
    this.narrowed = false; // to the matches of a search
    this.decorate = () => {}; // puts marks on an element that is new on the page
    this.following = true;
    this.detached = false;
    this.unseen = 0;
    this.generation = 0; // of what is on the page: an answer to an older one is dropped
    this.ahead = []; // runs on the page that reach beyond `last`
    const served = [...box.querySelectorAll(".line")].map(written);
    this.run = this.newRun(box);
    this.first = 0;
    this.last = 0;
    this.newest = 0;
    if (served.length) {
      box.replaceChildren();
      this.append(served);
      this.newest = this.last;
    }
  }

  newRun(into, attempt = 0) {
    return new Run(into, { attempt, counted: !this.small });
  }

  make(line) {
    const element = lineElement(line, this.id);
    this.decorate(element);
    return element;
  }

  get atStart() {
    return this.first <= 1 || Boolean(this.noneBefore);
  }

  tell(name, detail = null) {
    this.box.dispatchEvent(new CustomEvent(`log:${name}`, { detail }));
  }

  append(lines) {
    this.box.querySelector("[data-log-empty]")?.remove();
    const fresh = document.createDocumentFragment();
    this.run.into = fresh;
    let added = 0;
    for (const line of lines) if (this.run.take(this.make(line))) added += 1;
    this.box.append(fresh);
    this.run.into = this.box;
    if (!this.first) this.first = lines[0].seq;
    this.last = lines.at(-1).seq;
    return added;
  }

  prepend(lines) {
    const fresh = document.createDocumentFragment();
    const run = this.newRun(fresh);
    for (const line of lines) run.take(this.make(line));
    const below = new Map();
    for (const element of [...this.lines].reverse()) below.set(keyOf(element), element);
    for (const [key, element] of run.open) {
      const later = below.get(key); // which overwrote it
      if (!later) continue;
      element.remove();
      run.collapse(later, fromOf(element), updatesOf(later) + updatesOf(element) + 1, isExpanded(later));
    }
    const anchor = this.lines[0];
    const attempt = Number(anchor?.dataset.attempt ?? 0);
    if (attempt && run.attempt && attempt !== run.attempt && !anchor.previousElementSibling) fresh.append(boundary(attempt));
    this.first = lines[0].seq;
    this.keepPlace(anchor, () => {
      this.box.prepend(fresh);
      this.trimEnd();
    });
  }

  reset(lines) {
    this.box.replaceChildren();
    this.generation += 1;
    this.run = this.newRun(this.box);
    this.ahead = [];
    this.noneBefore = false;
    this.first = 0;
    this.last = 0;
    if (lines.length) this.append(lines);
    this.newest = Math.max(this.last, this.newest);
    this.detached = !this.only && this.last < this.newest;
    if (this.following) this.scrollDown();
    this.tell("window");
  }

  trimTop() {
    let extra = this.lines.length - this.keep;
    if (extra <= 0) return;
    while (extra > 0 || !this.box.firstElementChild.matches(".line")) {
      const gone = this.box.firstElementChild;
      if (gone.matches(".line")) extra -= 1;
      gone.remove();
    }
    this.first = [...this.lines].reduce((least, line) => Math.min(least, fromOf(line)), Infinity);
    this.noneBefore = false;
  }

  trimEnd() {
    let extra = this.lines.length - this.keep;
    if (extra <= 0) return;
    while (extra > 0 || !this.box.lastElementChild.matches(".line")) {
      const gone = this.box.lastElementChild;
      if (gone.matches(".line")) {
        extra -= 1;
        this.last = Math.min(this.last, fromOf(gone) - 1);
      }
      gone.remove();
    }
    this.detached = true;
    const left = [...this.lines];
    this.ahead = left.filter((line) => seqOf(line) > this.last).map((line) => ({ key: keyOf(line), to: seqOf(line) }));
    this.run = this.newRun(this.box, Number(left.at(-1).dataset.attempt));
    for (const line of left) if (line.dataset.overwritten) this.run.open.set(keyOf(line), line);
  }

  keepPlace(anchor, change) {
    // what is being read stays where it is on the screen
    const before = anchor ? anchor.getBoundingClientRect().top : 0;
    change();
    if (anchor && anchor.isConnected) this.box.scrollTop += anchor.getBoundingClientRect().top - before;
  }

  scrollDown() {
    this.box.scrollTop = this.box.scrollHeight;
  }

  firstSeen() {
    const { top } = this.box.getBoundingClientRect();
    return [...this.lines].find((line) => line.getBoundingClientRect().bottom > top + 1) ?? null;
  }

  textOf(elements, { times, workers }) {
    return elements
      .map((line) => [times && line.querySelector(".t").textContent, workers && line.dataset.worker, line.querySelector(".x").textContent])
      .map((parts) => parts.filter(Boolean).join(" "))
      .join("\n");
  }
}

function isExpanded(element) {
  return Boolean(element.nextElementSibling?.matches(".line-history"));
}
