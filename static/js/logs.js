// A job's lines, live: follows the end until the reader scrolls up, goes back as far as there are lines, and links to each.
// At most KEEP lines are elements. Where the newest are not among them the box is `detached`, and reads on as one scrolls down.
import { Run, dress, fromOf, lineElement, seqOf } from "./lines.js";
import { ask, follow } from "./socket.js";

const KEEP = 4000;
const KEEP_SMALL = 30;
const PAGE = 1000;
const NEAR = 40; // pixels from an edge

export function start() {
  for (const box of document.querySelectorAll("[data-log]")) new LogBox(box);
  document.querySelector("[data-log-worker]")?.addEventListener("change", (event) => event.target.form.requestSubmit());
}

class LogBox {
  constructor(box) {
    this.box = box;
    this.id = document.querySelector("[data-job]").dataset.job;
    this.worker = box.dataset.worker || "";
    this.small = box.dataset.log === "tail";
    this.keep = this.small ? KEEP_SMALL : KEEP;
    this.pill = this.small ? null : document.querySelector("[data-log-pill]");
    this.following = true;
    this.detached = false;
    this.unseen = 0;
    this.generation = 0; // of what is on the page: an answer to an older one is dropped
    this.loading = -1; // the generation that is being added to
    this.ahead = []; // runs on the page that reach beyond `last`
    this.run = new Run(box);
    const served = [...box.querySelectorAll(".line")];
    this.first = served.length ? seqOf(served[0]) : 0;
    this.last = served.length ? seqOf(served.at(-1)) : 0;
    this.newest = this.last;
    served.forEach(dress);
    for (const line of served) this.run.take(line);
    const topic = this.worker ? `logs/${this.id}/${this.worker}` : `logs/${this.id}`;
    follow(topic, this.last || null, (type, data) => this.take(type, data), () => this.poll());
    box.addEventListener("scroll", () => this.scrolled(), { passive: true });
    box.addEventListener("keydown", (event) => {
      if (event.key !== "End" || event.ctrlKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      this.toEnd();
    });
    this.pill?.addEventListener("click", () => this.toEnd());
    window.addEventListener("hashchange", () => this.goToHash());
    this.scrollDown();
    this.goToHash();
  }

  take(type, data) {
    if (!data || !data.lines || !data.lines.length) return;
    const { lines } = data;
    if (type === "snapshot" && this.last) {
      const backwards = lines.at(-1).seq < this.last; // another database than before
      const gap = lines[0].seq > this.newest + 1;
      if (backwards || (gap && this.following)) {
        this.detached = false;
        this.reset(lines); // too far behind to be caught up: from the newest; what is between comes by scrolling up
        return;
      }
      if (gap) this.detached = true; // read on from where the reader is
    }
    this.arrive(lines.filter((line) => line.seq > this.newest));
  }

  arrive(lines) {
    if (!lines.length) return;
    this.newest = lines.at(-1).seq;
    if (!this.following && this.box.childElementCount + lines.length > this.keep) this.detached = true;
    if (this.detached) {
      this.unseen += lines.length;
    } else {
      const added = this.append(lines);
      if (this.following) {
        this.trimTop();
        this.scrollDown();
      } else {
        this.unseen += added;
      }
    }
    this.showPill();
  }

  append(lines) {
    this.box.querySelector("[data-log-empty]")?.remove();
    const fresh = document.createDocumentFragment();
    this.run.into = fresh;
    let added = 0;
    for (const line of lines) if (this.run.take(lineElement(line, this.id))) added += 1;
    this.box.append(fresh);
    this.run.into = this.box;
    if (!this.first) this.first = lines[0].seq;
    this.last = lines.at(-1).seq;
    return added;
  }

  reset(lines) {
    this.box.replaceChildren();
    this.generation += 1;
    this.run = new Run(this.box);
    this.ahead = [];
    this.noneBefore = false;
    this.first = 0;
    this.last = 0;
    this.append(lines);
    this.newest = Math.max(this.last, this.detached ? this.newest : 0);
    this.detached = this.last < this.newest;
    if (this.following) this.scrollDown();
  }

  trimTop() {
    let extra = this.box.childElementCount - this.keep;
    if (extra <= 0) return;
    for (; extra > 0; extra -= 1) this.box.firstElementChild.remove();
    this.first = [...this.box.children].reduce((least, line) => Math.min(least, fromOf(line)), Infinity);
    this.noneBefore = false;
  }

  trimEnd() {
    let extra = this.box.childElementCount - this.keep;
    if (extra <= 0) return;
    for (; extra > 0; extra -= 1) {
      const gone = this.box.lastElementChild;
      this.last = Math.min(this.last, fromOf(gone) - 1);
      gone.remove();
    }
    this.detached = true;
    const left = [...this.box.children];
    this.ahead = left.filter((line) => seqOf(line) > this.last).map((line) => ({ worker: line.dataset.worker, to: seqOf(line) }));
    this.run = new Run(this.box);
    for (const line of left) if (line.dataset.overwritten) this.run.open.set(line.dataset.worker, line);
  }

  scrollDown() {
    this.box.scrollTop = this.box.scrollHeight;
  }

  async toEnd() {
    this.following = true;
    this.unseen = 0;
    this.showPill();
    if (this.detached && !(await this.jumpToNewest())) return;
    this.trimTop();
    this.scrollDown();
  }

  async jumpToNewest() {
    const answer = await this.read({ before: this.newest + 1, limit: PAGE });
    if (!answer || !answer.lines.length) return false;
    this.reset(answer.lines);
    if (this.detached) await this.newer();
    return true;
  }

  scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.box;
    const fromEnd = scrollHeight - scrollTop - clientHeight;
    if (this.detached) {
      this.following = false;
      if (fromEnd < 10 * NEAR) this.newer();
    } else if (fromEnd < NEAR / 2) {
      if (!this.following) this.toEnd();
    } else {
      this.following = false;
    }
    if (!this.small && scrollTop < NEAR) this.older();
  }

  showPill() {
    if (!this.pill) return;
    this.pill.hidden = this.following || this.unseen === 0;
    this.pill.textContent = `↓ ${this.unseen.toLocaleString("en")} new line${this.unseen === 1 ? "" : "s"}`;
  }

  async read(query) {
    // null where the portal does not answer: the next scroll asks again
    if (this.worker) query.worker = this.worker;
    const { generation } = this;
    try {
      const answer = await ask(`/api/v1/jobs/${this.id}/logs/?${new URLSearchParams(query)}`);
      return generation === this.generation ? answer : null;
    } catch (error) {
      if (error instanceof TypeError || error.status) return null;
      throw error;
    }
  }

  async once(query) {
    // one page at a time, up or down
    if (this.loading === this.generation) return null;
    this.loading = this.generation;
    try {
      return await this.read(query);
    } finally {
      this.loading = -1;
    }
  }

  async older() {
    if (this.first <= 1 || this.noneBefore) return;
    const answer = await this.once({ before: this.first, limit: PAGE });
    if (!answer) return;
    this.noneBefore = answer.lines.length === 0;
    if (this.noneBefore) return;
    const anchor = this.box.firstElementChild;
    const fresh = document.createDocumentFragment();
    const run = new Run(fresh);
    for (const line of answer.lines) run.take(lineElement(line, this.id));
    for (const [worker, element] of run.open) {
      if (this.box.querySelector(`[data-worker="${CSS.escape(worker)}"]`)) element.remove(); // overwritten by one that is here
    }
    this.first = answer.lines[0].seq;
    this.keepPlace(anchor, () => {
      this.box.prepend(fresh);
      this.trimEnd();
    });
  }

  async newer() {
    const answer = await this.once({ after: this.last, limit: PAGE });
    if (!answer) return;
    const anchor = this.box.lastElementChild;
    const known = (line) => this.ahead.some((one) => one.worker === line.worker && line.seq <= one.to);
    const lines = answer.lines.filter((line) => !known(line));
    this.keepPlace(anchor, () => {
      if (lines.length) this.append(lines);
      if (answer.lines.length) this.last = answer.lines.at(-1).seq;
      this.trimTop();
    });
    this.detached = answer.lines.length > 0 && this.last < this.newest;
    if (this.detached) return;
    this.ahead = [];
    this.newest = Math.max(this.newest, this.last);
    this.unseen = 0;
    this.showPill();
    this.scrolled(); // whoever stands at the end follows again
  }

  keepPlace(anchor, change) {
    // what is being read stays where it is on the screen
    const before = anchor ? anchor.getBoundingClientRect().top : 0;
    change();
    if (anchor && anchor.isConnected) this.box.scrollTop += anchor.getBoundingClientRect().top - before;
  }

  async goToHash() {
    const seq = Number((location.hash.match(/^#L(\d+)$/) || [])[1]);
    if (!seq || this.small) return;
    let line = this.box.querySelector(`[data-seq="${seq}"]`);
    if (!line) {
      const answer = await this.read({ after: Math.max(0, seq - PAGE / 2), limit: PAGE });
      if (!answer || !answer.lines.length) return;
      this.following = false;
      this.detached = true; // until what was read turns out to reach the newest
      this.reset(answer.lines);
      line = [...this.box.children].find((one) => seqOf(one) >= seq);
    }
    if (!line) return;
    this.following = false;
    this.box.querySelector(".marked")?.classList.remove("marked");
    line.classList.add("marked");
    line.scrollIntoView({ block: "center" });
  }

  async poll() {
    const query = { after: this.newest, limit: 2000 };
    if (this.worker) query.worker = this.worker;
    const answer = await ask(`/api/v1/jobs/${this.id}/logs/?${new URLSearchParams(query)}`);
    this.arrive(answer.lines);
  }
}
