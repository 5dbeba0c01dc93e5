// Links to a line and to a stretch of lines: #L5 and #L10-L20. A click on a number makes one, with shift up to there.
import { rawOf, seqOf } from "./lines.js";
import { toast } from "./toast.js";
import { gettext, said } from "./words.js";

export class LogLinks {
  constructor(view, { form, status }) {
    this.view = view;
    this.status = status;
    this.marked = null; // [from, to]
    view.box.addEventListener("click", (event) => this.clicked(event));
    window.addEventListener("hashchange", () => this.goToHash());
    const field = form.querySelector("[data-log-line]");
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      const range = rangeOf(field.value.normalize("NFKC").replaceAll(",", ""));
      if (range) this.go(...range);
    });
    form.querySelector("[data-log-link]").addEventListener("click", (event) => this.offer(event.currentTarget));
  }

  clicked(event) {
    const number = event.target.closest("a.n");
    if (!number || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const seq = seqOf(number.parentElement);
    const other = event.shiftKey && this.marked ? this.marked[0] : seq;
    getSelection()?.removeAllRanges(); // a shift-click selects text as well
    this.view.pause();
    this.set(Math.min(seq, other), Math.max(seq, other));
  }

  set(from, to) {
    this.marked = [from, to];
    history.replaceState(null, "", `${location.pathname}${location.search}#${hashOf(from, to)}`);
    for (const element of this.view.lines) this.mark(element);
  }

  mark(element) {
    const [from, to] = this.marked ?? [0, 0];
    const seq = seqOf(element);
    element.classList.toggle("marked", from <= seq && seq <= to);
  }

  async goToHash() {
    const range = rangeOf(location.hash.slice(1));
    if (range) await this.go(...range);
  }

  async go(from, to) {
    this.view.following = false;
    const element = await this.view.find(from);
    if (!element) {
      this.status.textContent = said(gettext("There is no line {number} here."), { number: from });
      return;
    }
    this.set(from, to);
    element.classList.add("marked"); // also where the line is inside a progress bar
    this.view.center(element);
    this.status.textContent = said(gettext("Line {number}: {text}"), { number: from, text: element.querySelector(".x").textContent.slice(0, 200) });
  }

  offer(button) {
    // what the page's copy buttons read; without a marked line it is the first in sight
    if (!this.marked) {
      const seen = this.view.firstSeen();
      if (!seen || !rawOf(seen)) {
        toast(gettext("There is no line to link to yet."));
        return;
      }
      this.view.pause();
      this.set(seqOf(seen), seqOf(seen));
    }
    button.dataset.copy = `${location.origin}${location.pathname}${location.search}#${hashOf(...this.marked)}`;
  }
}

function hashOf(from, to) {
  return from === to ? `L${from}` : `L${from}-L${to}`;
}

function rangeOf(text) {
  const match = text.trim().match(/^L?(\d{1,15})(?:\s*-\s*L?(\d{1,15}))?$/);
  if (!match) return null;
  const [from, to] = [Number(match[1]), Number(match[2] ?? match[1])];
  return from > 0 ? [Math.min(from, to), Math.max(from, to)] : null;
}
