// What stands along x: steps, epochs, time since the job's first point, or the clock; and back again, to ask for what is zoomed.
import { load } from "./loader.js";
import { view } from "./view_state.js";

const UNITS = [[7200, 3600, "h"], [180, 60, "min"], [0, 1, "s"]]; // from so many seconds on, so many in one, its sign

export class Axis {
  constructor({ job, firstTime, epochKey }) {
    this.job = job;
    this.firstTime = firstTime; // of the job, so that charts agree on where time begins
    this.epochKey = epochKey;
    this.epochs = null; // {step, epoch}, both rising, of one attempt and rank
    this.reading = null; // one read for all charts that wait for it
    this.missed = null; // what came meanwhile
  }

  // what the server sorts and cuts by
  get source() {
    return view.x === "time" || view.x === "relative" ? "time" : "step";
  }

  get unit() {
    const [, size, sign] = UNITS.find(([from]) => this.span >= from);
    return { size, sign };
  }

  get span() {
    return view.range ? view.range[1] - view.range[0] : this.whole || 0;
  }

  fit(series) {
    // the longest that is on the page decides the unit for all
    for (const one of series) {
      const last = one.time.at(-1);
      if (last - this.firstTime > (this.whole || 0)) this.whole = last - this.firstTime;
    }
  }

  async ready() {
    if (view.x !== "epoch" || !this.epochKey) return;
    this.reading ||= this.read();
    await this.reading;
  }

  async read() {
    const missed = (this.missed = []);
    try {
      const found = await load(this.job, this.epochKey, { buckets: 2000 });
      const one = found.sort((a, b) => b.attempt - a.attempt || a.rank - b.rank)[0];
      this.epochs = { step: [], epoch: [], attempt: one?.attempt ?? 0, rank: one?.rank ?? Infinity };
      if (one) this.append(one.step, one.value ?? one.last);
    } catch (error) {
      this.reading = null; // whoever waits next asks again
      throw error;
    }
    if (this.missed === missed) this.missed = null; // else read once more meanwhile
    for (const news of missed) this.add(news);
  }

  // the next chart that asks its points anew has the epochs read again; until then those known are drawn
  forget() {
    this.reading = null;
  }

  add(news) {
    if (news.key !== this.epochKey) return;
    this.missed?.push(news);
    const { epochs } = this;
    if (!epochs || news.attempt < epochs.attempt || (news.attempt === epochs.attempt && news.rank > epochs.rank)) return;
    if (news.attempt > epochs.attempt || news.rank < epochs.rank) {
      this.epochs = { step: [], epoch: [], attempt: news.attempt, rank: news.rank };
      this.forget();
    }
    this.append(news.step, news.value);
  }

  append(steps, values) {
    const { step, epoch } = this.epochs;
    values.forEach((value, index) => {
      if (typeof value !== "number" || (epoch.length && (value < epoch.at(-1) || steps[index] <= step.at(-1)))) return;
      step.push(steps[index]);
      epoch.push(value);
    });
  }

  of(series) {
    if (view.x === "step") return series.step;
    if (view.x === "epoch") return series.step.map((step) => between(this.epochs?.step, this.epochs?.epoch, step));
    return series.time.map((time) => this.shown(time));
  }

  // where something that happened stands in what is drawn; null where nothing was reported that could place it
  place({ step, time }) {
    if (view.x === "time" || view.x === "relative") return this.shown(time);
    if (step === null) return null;
    return view.x === "epoch" ? between(this.epochs?.step, this.epochs?.epoch, step) : step;
  }

  // from what a view says (steps, epochs, seconds since 1970) to what is drawn, and back
  shown(at) {
    if (view.x === "time") return at * 1000 - new Date(at * 1000).getTimezoneOffset() * 60000; // plotly's clock has no zone
    if (view.x === "relative") return (at - this.firstTime) / this.unit.size;
    return at;
  }

  real(drawn) {
    if (view.x === "time") {
      const near = new Date(drawn);
      return (drawn + new Date(drawn + near.getTimezoneOffset() * 60000).getTimezoneOffset() * 60000) / 1000;
    }
    if (view.x === "relative") return drawn * this.unit.size + this.firstTime;
    return drawn;
  }

  // the range of the view as the server is asked for it
  asked() {
    if (!view.range) return null;
    if (view.x !== "epoch") return view.range;
    return view.range.map((epoch) => between(this.epochs?.epoch, this.epochs?.step, epoch));
  }

  words(drawn) {
    if (view.x === "time") return new Date(this.real(drawn) * 1000).toLocaleString([], { hour12: false });
    if (view.x === "relative") return `${trim(drawn)} ${this.unit.sign}`;
    return trim(drawn);
  }
}

function trim(value) {
  return Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(6)));
}

function between(from, to, at) {
  // `at` is looked up in `from` (rising); beyond its ends the line goes on as it was
  if (!from || !from.length) return at;
  if (from.length === 1) return to[0];
  let low = 0;
  let high = from.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (from[middle] <= at) low = middle;
    else high = middle;
  }
  const width = from[high] - from[low];
  return width ? to[low] + ((at - from[low]) / width) * (to[high] - to[low]) : to[high];
}
