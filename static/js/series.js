// The points of one metric on this page: buckets from REST, then what the socket brings, in order of step.
import { Curve, preview } from "./smooth.js";

const WORDS = { NaN: NaN, Infinity, "-Infinity": -Infinity };

export function toNumber(value) {
  return typeof value === "string" ? WORDS[value] : value;
}

export class Series {
  // step, time, value; low and high only where a bucket holds more than one point
  constructor(document, { x = "step" } = {}) {
    this.key = document.key;
    this.group = document.group;
    this.rank = document.rank;
    this.attempt = document.attempt;
    this.source = document.source;
    this.x = x; // what the curve is smoothed along: step or time
    this.step = document.step.slice();
    this.time = document.time.slice();
    this.value = (document.value || document.last).map(toNumber);
    this.low = document.min ? document.min.map(toNumber) : null;
    this.high = document.max ? document.max.map(toNumber) : null;
    this.bad = document.bad ? document.bad.slice() : null;
    this.count = document.bad ? document.count.slice() : null; // of a bucket
    this.total = document.total ?? this.step.length;
    this.lowest = document.lowest ?? null; // {step, value} of the range that was asked for
    this.highest = document.highest ?? null;
    const { smooth } = document;
    this.curve = smooth ? new Curve({ ...smooth, value: smooth.value.map(toNumber) }, this.axis.at(-1)) : null;
  }

  static empty(change, options) {
    return new Series({ ...change, step: [], time: [], value: [], total: 0 }, options);
  }

  get name() {
    return `${this.attempt}/${this.rank}`;
  }

  get axis() {
    return this.x === "step" ? this.step : this.time;
  }

  add(change) {
    for (let index = 0; index < change.step.length; index += 1) {
      this.put(change.step[index], change.time[index], toNumber(change.value[index]));
    }
  }

  put(step, time, value) {
    let at = this.step.length;
    const isNewest = !at || this.step[at - 1] < step;
    if (!isNewest) {
      // late or repeated: where it belongs; for an equal step the later one wins
      at = this.indexOf(step);
      if (this.step[at] === step) {
        this.set(at, time, value);
        return;
      }
      if (this.count && this.count[at] > 1) {
        this.widen(at, value); // inside a bucket, which may have it already
        return;
      }
    }
    this.step.splice(at, 0, step);
    this.time.splice(at, 0, time);
    this.value.splice(at, 0, value);
    if (this.low) this.low.splice(at, 0, value);
    if (this.high) this.high.splice(at, 0, value);
    if (this.bad) this.bad.splice(at, 0, Number.isFinite(value) ? 0 : 1);
    if (this.count) this.count.splice(at, 0, 1);
    if (this.curve && isNewest) this.curve.next(this.x === "step" ? step : time, value);
    else if (this.curve) this.curve.value.splice(at, 0, value); // until the server is asked again
    this.total += 1;
    this.extremes(step, value);
  }

  extremes(step, value) {
    if (!Number.isFinite(value)) return;
    if (!this.lowest || value < this.lowest.value) this.lowest = { step, value };
    if (!this.highest || value > this.highest.value) this.highest = { step, value };
  }

  set(at, time, value) {
    this.time[at] = time;
    this.value[at] = value;
    if (this.count && this.count[at] > 1) {
      this.widen(at, value);
    } else if (this.low) {
      this.low[at] = value;
      this.high[at] = value;
      this.bad[at] = Number.isFinite(value) ? 0 : 1;
    }
    this.extremes(this.step[at], value);
  }

  widen(at, value) {
    if (!Number.isFinite(value)) {
      this.bad[at] ||= 1;
      return;
    }
    this.low[at] = Number.isFinite(this.low[at]) ? Math.min(this.low[at], value) : value;
    this.high[at] = Number.isFinite(this.high[at]) ? Math.max(this.high[at], value) : value;
  }

  preview(weight, mode) {
    this.curve = preview(this.axis, this.value, this.count, { mode, weight });
  }

  get shown() {
    return this.curve ? this.curve.value : this.value;
  }

  get isBucketed() {
    return this.count !== null;
  }

  get badCount() {
    if (this.bad) return this.bad.reduce((sum, count) => sum + count, 0);
    return this.value.reduce((sum, value) => sum + (Number.isFinite(value) ? 0 : 1), 0);
  }

  indexOf(step) {
    let low = 0;
    let high = this.step.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.step[middle] < step) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
