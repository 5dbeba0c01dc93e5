// Search in a job's whole log: the portal matches (RE2, which cannot hang), this side counts, goes from hit to hit and sets them off.
import { plainOf, rawOf, seqOf, setFound, whole } from "./lines.js";
import { ask } from "./socket.js";
import { gettext, ngettext, said } from "./words.js";

const PAUSE = 350; // ms after the last letter
const RECOUNT = 2000; // ms between two counts of new lines
const HITS = 200000; // numbers kept for "3 of 17"; beyond, only the count
const LONGEST = 1000; // characters of a line in which matches are set off

export class LogSearch {
  constructor(view, { form, state, changed }) {
    this.view = view;
    this.state = state; // {q, exact, literal, only}, of the URL
    this.changed = changed; // the URL is to say what the state is
    this.field = form.querySelector("[data-log-q]");
    this.says = form.querySelector("[data-log-found]");
    this.error = form.querySelector("[data-log-error]");
    this.toggles = [...form.querySelectorAll("[data-log-toggle]")];
    this.generation = 0;
    this.forget();
    this.field.addEventListener("input", (event) => !event.isComposing && this.soon());
    this.field.addEventListener("compositionend", () => this.soon());
    this.field.addEventListener("keydown", (event) => this.key(event));
    for (const toggle of this.toggles) toggle.addEventListener("click", () => this.turn(toggle));
    form.querySelector("[data-log-next]").addEventListener("click", () => this.step(true));
    form.querySelector("[data-log-previous]").addEventListener("click", () => this.step(false));
    view.box.addEventListener("log:arrived", () => this.recount());
    this.paint();
  }

  get query() {
    const { q, exact, literal } = this.state;
    return q ? { q, ...(exact ? {} : { case: "i" }), ...(literal ? { literal: 1 } : {}) } : null;
  }

  get active() {
    return Boolean(this.state.q) && !this.isWrong;
  }

  key(event) {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter") {
      event.preventDefault();
      if (this.field.value === this.state.q) this.step(!event.shiftKey);
      else this.run({ go: true });
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation(); // once empties the field, twice leaves it
      if (this.field.value) {
        this.field.value = "";
        this.run();
      } else this.view.box.focus();
    }
  }

  turn(toggle) {
    const name = toggle.dataset.logToggle;
    this.state[name] = !this.state[name];
    this.run();
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), PAUSE);
  }

  forget() {
    this.seqs = [];
    this.count = 0;
    this.searched = 0;
    this.complete = true; // seqs are all there are
    this.done = false;
    this.failed = false; // the portal was away: what is left is counted when the next lines come
    this.at = null; // the hit that one stands on
    this.note = ""; // how one came there
  }

  async run({ go = false } = {}) {
    clearTimeout(this.timer);
    const wasOnly = this.view.narrowed;
    this.state.q = this.field.value;
    this.generation += 1;
    this.forget();
    this.refuse("");
    this.pattern = this.state.q ? patternOf(this.state) : null;
    this.paint();
    this.changed();
    this.markAll();
    const only = this.state.only && this.query;
    const counting = this.query && this.counted();
    if (go && !only && !wasOnly) await this.step(true); // the first hit does not wait for the count of all
    if (counting && !(await counting)) return; // the pattern is not one: what was shown stays
    if (!only && !wasOnly) return;
    await this.view.narrow(only || null, only ? 0 : this.near());
    if (go) await this.step(true);
  }

  async filtered() {
    // other lines are chosen: what was counted and shown is of the ones before
    const near = this.near();
    this.generation += 1;
    this.forget();
    if (this.query) this.counted();
    await this.view.narrow((this.state.only && this.query) || null, near);
  }

  near() {
    // the line that stays in sight when all the others come back
    const seen = this.view.firstSeen();
    return this.at ?? (seen ? seqOf(seen) : 0);
  }

  async counted() {
    // false where the portal refused the pattern, or is away
    const { generation, done: isKnown } = this;
    this.done = this.failed = false;
    this.say();
    while (!this.done) {
      let answer;
      try {
        answer = await this.portal({ count: 1, after: this.searched });
      } catch (error) {
        if (generation !== this.generation) return false;
        if (!error.words) throw error;
        // of a recount all but the newest lines are known, and the search goes on with them
        this.done = isKnown && error.status !== 422;
        this.failed = !this.done;
        if (this.done) this.say();
        else this.refuse(error.words, { isWrong: error.status === 422 });
        return false;
      }
      if (generation !== this.generation) return false;
      this.count += answer.count;
      this.complete = this.complete && answer.seqs.length === answer.count && this.seqs.length < HITS;
      if (this.complete) for (const seq of answer.seqs) this.seqs.push(seq);
      this.searched = answer.searched;
      this.done = answer.done;
      this.refuse("");
      this.say();
    }
    return true;
  }

  recount() {
    // lines came: those are looked through, the others are known
    if (!this.mayCount || this.counting) return;
    this.counting = setTimeout(() => {
      this.counting = 0;
      if (this.mayCount) this.counted();
    }, RECOUNT);
  }

  get mayCount() {
    return this.active && (this.done || this.failed);
  }

  async portal(query) {
    const { filters, id } = this.view;
    const url = `/api/v1/jobs/${id}/logs/?${new URLSearchParams({ ...filters, ...this.query, ...query })}`;
    try {
      return await ask(url);
    } catch (error) {
      if (!(error instanceof TypeError) && !error.status) throw error;
      throw Object.assign(error, { words: await whyNot(url, error) });
    }
  }

  // --- from hit to hit ---

  async step(forward) {
    if (!this.query) {
      this.field.focus();
      return;
    }
    const { generation } = this;
    const from = this.at ?? this.startingPoint(forward);
    let wrapped = false;
    try {
      let seq = await this.seek(forward, from);
      if (seq === null) {
        wrapped = true;
        seq = await this.seek(forward, forward ? 0 : 2 ** 53 - 1);
      }
      if (generation !== this.generation || seq === null) return;
      this.at = seq;
      if (!this.failed) this.refuse("");
      await this.show(seq, wrapped && forward ? gettext("from the top again") : wrapped ? gettext("from the end again") : "");
    } catch (error) {
      if (!error.words) throw error;
      this.refuse(error.words, { isWrong: error.status === 422 });
    }
  }

  startingPoint(forward) {
    // who is at the end has not looked yet: the first hit of all, which is often the cause of the others
    const { view } = this;
    if (view.following) return forward ? 0 : 2 ** 53 - 1;
    const seen = view.firstSeen();
    return seen ? seqOf(seen) - (forward ? 1 : 0) : 0;
  }

  async seek(forward, from) {
    if (this.done && this.complete) return neighbour(this.seqs, forward, from);
    let reached = from;
    for (;;) {
      const answer = await this.portal({ [forward ? "after" : "before"]: reached, limit: 1 });
      if (answer.lines.length) return answer.lines.at(forward ? 0 : -1).seq;
      if (answer.done) return null;
      reached = answer.next;
    }
  }

  async show(seq, how) {
    const element = await this.view.find(seq);
    if (!element) return;
    this.view.box.querySelector(".line.at")?.classList.remove("at");
    element.classList.add("at");
    this.view.center(element);
    this.note = seqOf(element) === seq ? how : gettext("an earlier state of this progress bar");
    this.say();
    this.view.tell("hit", { seq, element });
  }

  // --- what is seen of it ---

  mark(element) {
    if (!this.state.q) return;
    if (this.at !== null && seqOf(element) === this.at) element.classList.add("at");
    if (!this.pattern || rawOf(element).length > 4 * LONGEST) return;
    const ranges = rangesOf(this.pattern, plainOf(element).slice(0, LONGEST));
    if (ranges.length) setFound(element, ranges);
  }

  markAll() {
    for (const element of this.view.lines) {
      if (element.querySelector("mark")) setFound(element, []);
      element.classList.remove("at");
      this.mark(element);
    }
  }

  paint() {
    const { exact, literal, only } = this.state;
    const on = { exact, literal: !literal, only };
    for (const toggle of this.toggles) {
      const name = toggle.dataset.logToggle;
      toggle.setAttribute("aria-pressed", Boolean(on[name]));
    }
    if (!this.state.q) this.says.textContent = "";
  }

  say() {
    if (!this.state.q || this.failed) return;
    const { at, count, done, note, seqs } = this;
    const place = at === null || !this.complete ? -1 : seqs.indexOf(at);
    let words;
    if (done && !count) words = gettext("No line matches");
    else if (!done) words = said(gettext("{count} so far…"), { count: whole(count) });
    else if (place >= 0) words = said(gettext("{place} of {count}"), { place: whole(place + 1), count: whole(count) });
    else words = said(ngettext("{count} hit", "{count} hits", count), { count: whole(count) });
    this.says.textContent = note ? `${words}, ${note}` : words;
    this.says.dataset.line = at ?? "";
  }

  refuse(words, { isWrong = false } = {}) {
    this.isWrong = isWrong; // the pattern is; else only the portal is away
    this.error.textContent = words;
    this.error.hidden = !words;
    this.field.setAttribute("aria-invalid", isWrong);
    if (words) this.says.textContent = "";
  }
}

async function whyNot(url, error) {
  // in the words of the portal, where it said any
  if (error.status === 422) {
    const answer = await fetch(url, { headers: { Accept: "application/json" }, credentials: "same-origin" });
    const problem = (await answer.json()).error;
    if (problem) return [problem.fields?.q ?? problem.message].flat().join(" ");
  }
  return gettext("The portal does not answer now. Search again in a moment.");
}

function neighbour(seqs, forward, from) {
  // the first above, or the last below
  let low = 0;
  let high = seqs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (forward ? seqs[middle] > from : seqs[middle] >= from) high = middle;
    else low = middle + 1;
  }
  return seqs[forward ? low : low - 1] ?? null;
}

export function patternOf({ q, exact, literal }) {
  // Only to set matches off: whether a line matches is the portal's word. What could take a browser long is left out
  // (a repeated group, several open repeats), and so is what only RE2 knows.
  const repeats = q.match(/[*+]|\{\d*,\}/g) ?? [];
  if (!literal && (repeats.length > 2 || /\)[*+{]/.test(q))) return null;
  const source = literal ? q.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&") : q.replace(/^\(\?[imsU]+\)/, "").replace(/\(\?P</g, "(?<");
  try {
    return new RegExp(source, exact && !/^\(\?[msU]*i/.test(q) ? "gu" : "giu");
  } catch {
    return null; // not a pattern here; the portal says whether it is one at all
  }
}

function rangesOf(pattern, text) {
  const ranges = [];
  for (const match of text.matchAll(pattern)) if (match[0]) ranges.push([match.index, match.index + match[0].length]);
  return ranges;
}
