// A window on a job's lines, live: follows the end until the reader scrolls up, and reads on at either edge as one scrolls.
import { fromOf, keyOf, seqOf } from "./lines.js";
import { LogWindow } from "./log_window.js";
import { ask, follow } from "./socket.js";

const PAGE = 1000;
const LARGEST = 5000; // of one answer
const NEAR = 60; // pixels from an edge
const ROUNDS = 8; // pages that one gesture reads where each collapses into a line or two
const AGAIN = 700; // ms between two questions for new matches

export class LogView extends LogWindow {
  constructor(box, { filters = {}, ...rest }) {
    super(box, rest);
    this.filters = filters; // in the words of the portal's REST
    this.only = this.sparse;
    this.loading = -1; // the generation that is being added to
    box.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.scrollDown();
  }

  start() {
    // once its marks are known: lines come from here on
    const { worker } = this.filters;
    const topic = worker ? `logs/${this.id}/${worker}` : `logs/${this.id}`;
    follow(topic, this.last || null, (type, data) => this.take(type, data), () => this.poll());
    if (this.only && !this.lines.length) this.reload();
    else if (!this.small) this.fill();
  }

  get sparse() {
    // long stretches may have nothing of what is chosen: the portal says how far it looked, as for a search
    const { level, from, to } = this.filters;
    return level || from || to ? {} : null;
  }

  mine(line) {
    const { worker, attempt, level, from, to } = this.filters;
    return (
      (!worker || line.worker === worker) && (!attempt || line.attempt === Number(attempt)) &&
      (!level || level.split(",").includes(line.level ?? "plain")) &&
      (!from || line.time * 1000 >= Date.parse(from)) && (!to || line.time * 1000 < Date.parse(to))
    );
  }

  // --- lines that arrive ---

  take(type, data) {
    if (!data || !data.lines || !data.lines.length) return;
    this.tell("heard");
    const lines = data.lines.filter((line) => this.mine(line));
    if (type === "snapshot" && this.last && !this.only && lines.length) {
      const backwards = lines.at(-1).seq < this.last; // another database than before
      const gap = lines[0].seq > this.newest + 1;
      if (backwards || (gap && this.following)) {
        this.detached = false;
        this.newest = 0;
        this.reset(lines); // too far behind to be caught up: from the newest; what is between comes by scrolling up
        this.fill();
        return;
      }
      if (gap) this.detached = true; // read on from where the reader is
    }
    this.arrive(lines.filter((line) => line.seq > this.newest));
  }

  arrive(lines) {
    if (!lines.length) return;
    this.newest = lines.at(-1).seq;
    this.tell("arrived", lines);
    if (this.only) {
      this.matchSoon();
      return;
    }
    if (!this.following && this.lines.length + lines.length > this.keep) this.detached = true;
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
    this.tell("window");
  }

  matchSoon() {
    // which of the new lines match is for the portal to say
    if (this.matching || this.detached) return;
    this.matching = setTimeout(async () => {
      const { newest } = this;
      await this.newer();
      if (this.following) this.scrollDown();
      this.matching = 0;
      if (this.only && newest < this.newest) this.matchSoon();
    }, AGAIN);
  }

  async poll() {
    const limit = 2000;
    const query = { after: this.newest, limit, ...this.filters };
    const answer = await ask(`/api/v1/jobs/${this.id}/logs/?${new URLSearchParams(query)}`);
    if (answer.lines.length === limit && this.following) await this.reload(); // a flood: from the newest
    else this.arrive(answer.lines);
  }

  // --- moving ---

  scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.box;
    const fromEnd = scrollHeight - scrollTop - clientHeight;
    const was = this.following;
    if (this.detached) {
      this.following = false;
      if (fromEnd < 10 * NEAR) this.newer();
    } else if (fromEnd < NEAR / 3) {
      if (!this.following) this.toEnd();
    } else {
      this.following = false;
    }
    if (!this.small && scrollTop < 4 * NEAR && fromEnd > 0) this.older();
    if (was !== this.following) this.tell("window");
  }

  pause() {
    this.following = false;
    this.tell("window");
  }

  async toEnd() {
    this.following = true;
    this.unseen = 0;
    if (this.detached && !(await this.reload())) return;
    this.trimTop();
    this.scrollDown();
    this.tell("window");
  }

  async toStart() {
    this.following = false;
    if (!this.atStart) {
      const answer = await this.read({ after: 0, limit: PAGE });
      if (!answer) return;
      this.show(answer);
      this.noneBefore = true;
      await this.fill();
    }
    this.box.scrollTop = 0;
    this.tell("window");
  }

  async reload() {
    // the newest there are
    const answer = await this.read({ before: 2 ** 53 - 1, limit: PAGE });
    if (!answer) return false;
    this.newest = Math.max(this.newest, answer.lines.at(-1)?.seq ?? 0);
    this.reset(answer.lines);
    if (this.only) this.last = this.newest;
    else if (this.detached) await this.newer();
    this.emptyAbove(answer);
    await this.fill();
    this.tell("window");
    return true;
  }

  show(answer) {
    // a page from anywhere
    this.reset(answer.lines);
    this.last = Math.max(this.last, answer.next ?? 0);
    this.detached = this.last < this.newest || (this.only && answer.done === false);
  }

  async around(seq) {
    const answer = await this.read({ after: Math.max(0, seq - 1 - PAGE / 2), limit: PAGE });
    if (!answer || !answer.lines.length) return null;
    this.following = false;
    this.show(answer);
    await this.fill();
    return answer;
  }

  async find(seq) {
    // the element that shows a line, read from the portal where it is not here; null where there is no such line
    const here = this.box.querySelector(`.line[data-seq="${seq}"]`);
    if (here) return here;
    const answer = await this.around(seq);
    if (!answer) return null;
    const line = answer.lines.find((one) => one.seq >= seq);
    if (!line) return null;
    return (
      this.box.querySelector(`.line[data-seq="${line.seq}"]`) ??
      [...this.lines].find((one) => keyOf(one) === `${line.attempt}/${line.worker}` && fromOf(one) <= line.seq && line.seq <= seqOf(one)) ??
      null
    );
  }

  center(element) {
    this.following = false;
    const box = this.box.getBoundingClientRect();
    const line = element.getBoundingClientRect();
    this.box.scrollTop += line.top - box.top - (box.height - Math.min(line.height, box.height / 2)) / 2;
    element.scrollIntoView({ block: "nearest", inline: "nearest" }); // on a low screen the page moves too
    this.tell("window");
  }

  // --- reading ---

  async narrow(only, near) {
    // only the lines that match, or all that are chosen again; `near` is the line that stays in sight
    this.narrowed = Boolean(only);
    this.only = only ?? this.sparse;
    this.unseen = 0;
    this.generation += 1;
    if (near && !this.following) {
      const answer = await this.around(near);
      if (answer) {
        const line = [...this.lines].find((one) => seqOf(one) >= near);
        if (line) this.center(line);
        return;
      }
    }
    this.following = true;
    await this.reload();
  }

  async read(query) {
    // null where the portal does not answer: the next scroll asks again
    const { generation } = this;
    try {
      const answer = await ask(`/api/v1/jobs/${this.id}/logs/?${new URLSearchParams({ ...this.filters, ...this.only, ...query })}`);
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

  async older(rounds = ROUNDS) {
    for (; rounds > 0 && !this.atStart; rounds -= 1) {
      const answer = await this.once({ before: this.first || this.last || 2 ** 53 - 1, limit: PAGE });
      if (!answer) return;
      if (answer.lines.length) this.prepend(answer.lines);
      this.emptyAbove(answer);
      this.tell("window");
      if (this.box.scrollTop >= NEAR) return;
    }
  }

  emptyAbove(answer) {
    if (this.only) {
      this.noneBefore = answer.done !== false;
      if (!this.noneBefore) this.first = answer.next;
    } else if (!answer.lines.length) this.noneBefore = true;
  }

  async newer(limit = PAGE) {
    const answer = await this.once({ after: this.last, limit });
    if (!answer) return;
    const anchor = this.lines[this.lines.length - 1];
    const known = (line) => this.ahead.some((one) => one.key === `${line.attempt}/${line.worker}` && line.seq <= one.to);
    const lines = answer.lines.filter((line) => !known(line));
    this.keepPlace(anchor, () => {
      if (lines.length) this.append(lines);
      this.last = Math.max(this.last, answer.next ?? 0, answer.lines.at(-1)?.seq ?? 0);
      this.trimTop();
    });
    this.detached = this.only ? answer.done === false : answer.lines.length > 0 && this.last < this.newest;
    if (this.detached) return;
    this.ahead = [];
    this.newest = Math.max(this.newest, this.last);
    this.unseen = 0;
    this.tell("window");
    this.scrolled(); // whoever stands at the end follows again
  }

  async fill() {
    // until there is something to scroll: pages of a progress bar become one line each
    const isShort = () => this.box.scrollHeight <= this.box.clientHeight;
    if (isShort()) await this.older();
    for (let rounds = ROUNDS; rounds > 0 && this.detached && isShort(); rounds -= 1) await this.newer(LARGEST);
    if (this.following) this.scrollDown();
  }
}
