// What a chart should reach, and the first step at which it did: looked up among all points, whatever is drawn or zoomed to.
import { directionOf } from "./caption.js";
import { load } from "./loader.js";
import { goalOf } from "./pins.js";
import { toNumber } from "./series.js";

const BUCKETS = 2000;

export class Goal {
  constructor(figure) {
    this.figure = figure;
    this.asked = 0;
    this.about = "";
    this.step = null; // where it was reached
    this.isKnown = false;
    this.why = ""; // it is not known
  }

  // {value, label, better, step, isKnown, why}, or null where there is none
  get state() {
    const goal = goalOf(this.figure.key);
    if (!goal) return null;
    return { ...goal, better: directionOf(this.figure.key) ?? "max", step: this.step, isKnown: this.isKnown, why: this.why };
  }

  async look() {
    const goal = this.state;
    const about = JSON.stringify([goal?.value, goal?.better]);
    if (about === this.about && (this.step !== null || !goal)) return;
    const mine = (this.asked += 1);
    if (about !== this.about) Object.assign(this, { about, step: null, isKnown: false });
    if (!goal) return;
    try {
      const { job, key } = this.figure;
      const series = await load(job, key, { buckets: BUCKETS });
      const steps = await Promise.all(series.map((one) => firstStep(job, one, goal)));
      if (mine !== this.asked) return;
      this.reach(steps.filter((step) => step !== null));
      Object.assign(this, { isKnown: true, why: "" });
    } catch (error) {
      if (mine === this.asked) this.why = error.message; // the next time the chart is loaded it is asked again
    }
    this.figure.redraw();
  }

  // what comes live
  add(news) {
    const goal = this.state;
    if (!goal || news.key !== this.figure.key) return;
    this.reach(news.step.filter((_step, index) => meets(toNumber(news.value[index]), goal)));
  }

  reach(steps) {
    for (const step of steps) if (this.step === null || step < this.step) this.step = step;
  }
}

export function meets(value, { value: goal, better }) {
  return better === "min" ? value <= goal : value >= goal;
}

async function firstStep(job, series, goal) {
  const isBucketed = series.count !== undefined;
  const edge = isBucketed ? series[goal.better] : series.value; // of a bucket its least or its largest
  const at = edge.findIndex((value) => meets(toNumber(value), goal));
  if (at < 0) return null;
  if (!isBucketed || series.count[at] === 1) return series.step[at];
  const range = { from: at ? series.step[at - 1] + 1 : -(2 ** 53), to: series.step[at], attempt: series.attempt, rank: series.rank };
  const [points] = await load(job, series.key, { ...range, buckets: 0 });
  const first = points?.value.findIndex((value) => meets(toNumber(value), goal)) ?? -1;
  return first < 0 ? series.step[at] : points.step[first];
}
