// A job's lines, live: follows the end until the reader scrolls up, goes back as far as there are lines, and links to each.
import { render } from "./ansi.js";
import { ask, follow } from "./socket.js";
import { clock } from "./time.js";

const KEEP = 4000; // line elements on the page
const PAGE = 1000;

export function start() {
  for (const box of document.querySelectorAll("[data-log]")) new LogBox(box);
}

class LogBox {
  constructor(box) {
    this.box = box;
    this.page = document.querySelector("[data-job]");
    this.id = this.page.dataset.job;
    this.worker = box.dataset.worker || "";
    this.small = box.dataset.log === "tail";
    this.following = true;
    this.unseen = 0;
    this.loading = false;
    this.open = new Map(); // worker -> the element a carriage return left to be overwritten
    this.pill = document.querySelector("[data-log-pill]");
    for (const line of box.querySelectorAll(".line")) this.dress(line);
    this.last = this.seqOf(box.querySelector(".line:last-of-type"));
    const topic = this.worker ? `logs/${this.id}/${this.worker}` : `logs/${this.id}`;
    follow(topic, this.last || null, (type, data) => this.take(type, data), () => this.poll());
    box.addEventListener("scroll", () => this.scrolled(), { passive: true });
    if (this.pill) this.pill.addEventListener("click", () => this.toEnd());
    box.addEventListener("keydown", (event) => {
      if (event.key === "End") this.toEnd();
    });
    if (!this.goToHash()) this.toEnd();
  }

  seqOf(line) {
    return line ? Number(line.dataset.seq) : 0;
  }

  dress(line) {
    // what the server wrote is raw text: colours are put in here
    const text = line.querySelector(".x");
    if (text && text.textContent.includes("\x1b")) {
      const raw = text.textContent;
      text.textContent = "";
      render(text, raw);
    }
    if (line.dataset.overwritten) this.open.set(line.dataset.worker, line);
  }

  take(type, data) {
    if (!data || !data.lines) return;
    if (type === "snapshot" && data.lines.length && this.last && data.lines[0].seq > this.last + 1 && !this.worker) {
      this.box.replaceChildren(); // too far behind to be caught up: begin again from the newest
      this.open.clear();
      this.last = 0;
    }
    this.append(data.lines.filter((line) => line.seq > this.last));
  }

  append(lines) {
    if (!lines.length) return;
    const fresh = document.createDocumentFragment();
    let added = 0;
    for (const line of lines) {
      const before = this.open.get(line.worker);
      const element = this.element(line);
      if (before) {
        before.replaceWith(element);
      } else {
        fresh.append(element);
        added += 1;
      }
      if (line.overwritten) this.open.set(line.worker, element);
      else this.open.delete(line.worker);
    }
    this.last = lines[lines.length - 1].seq;
    this.box.append(fresh);
    this.box.querySelector("[data-log-empty]")?.remove();
    if (this.following) {
      this.trim();
      this.toEnd();
    } else {
      this.unseen += added;
      this.showPill();
    }
  }

  element(line) {
    const element = document.createElement("div");
    element.className = "line";
    element.id = `L${line.seq}`;
    element.dataset.seq = line.seq;
    element.dataset.worker = line.worker;
    const link = document.createElement("a");
    link.className = "n";
    link.tabIndex = -1; // thousands of stops would keep the keyboard in the log; a line is linked to with the mouse
    link.href = `/jobs/${this.id}/logs/#L${line.seq}`;
    link.textContent = line.seq;
    const time = document.createElement("span");
    time.className = "t";
    time.textContent = clock(new Date(line.time * 1000));
    const worker = document.createElement("span");
    worker.className = "w";
    worker.textContent = line.worker;
    const text = document.createElement("span");
    text.className = "x";
    render(text, line.text);
    element.append(link, " ", time, " ", worker, " ", text);
    return element;
  }

  trim() {
    const extra = this.box.querySelectorAll(".line").length - (this.small ? 30 : KEEP);
    for (let count = 0; count < extra; count += 1) this.box.querySelector(".line").remove();
  }

  toEnd() {
    this.following = true;
    this.unseen = 0;
    this.showPill();
    this.box.scrollTop = this.box.scrollHeight;
  }

  scrolled() {
    const atEnd = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 24;
    if (atEnd && !this.following) this.toEnd();
    else if (!atEnd) this.following = false;
    if (!this.small && this.box.scrollTop < 40) this.older();
  }

  showPill() {
    if (!this.pill) return;
    this.pill.hidden = this.following || this.unseen === 0;
    this.pill.textContent = `↓ ${this.unseen} new lines`;
  }

  async older() {
    const first = this.box.querySelector(".line");
    if (this.loading || !first || this.seqOf(first) <= 1 || this.noneBefore) return;
    this.loading = true;
    try {
      const query = new URLSearchParams({ before: this.seqOf(first), limit: PAGE });
      if (this.worker) query.set("worker", this.worker);
      const answer = await ask(`/api/v1/jobs/${this.id}/logs/?${query}`);
      this.noneBefore = answer.lines.length === 0;
      const height = this.box.scrollHeight;
      const older = document.createDocumentFragment();
      const hidden = new Map();
      for (const line of answer.lines) {
        const element = this.element(line);
        if (hidden.has(line.worker)) hidden.get(line.worker).remove();
        older.append(element);
        if (line.overwritten) hidden.set(line.worker, element);
        else hidden.delete(line.worker);
      }
      first.before(older);
      this.box.scrollTop += this.box.scrollHeight - height; // what was read stays where it was
    } finally {
      this.loading = false;
    }
  }

  goToHash() {
    const seq = Number((location.hash.match(/^#L(\d+)$/) || [])[1]);
    if (!seq || this.small) return false;
    const line = this.box.querySelector(`[data-seq="${seq}"]`);
    if (!line) return false;
    this.following = false;
    line.classList.add("marked");
    line.scrollIntoView({ block: "center" });
    return true;
  }

  async poll() {
    const query = new URLSearchParams({ after: this.last, limit: 2000 });
    if (this.worker) query.set("worker", this.worker);
    const answer = await ask(`/api/v1/jobs/${this.id}/logs/?${query}`);
    this.append(answer.lines);
  }
}
