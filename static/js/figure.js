// One metric's card: its points by REST in buckets, then live; zooming asks again until true points come.
import { inOrder, layout, looks, traces } from "./drawing.js";
import { Legend } from "./legend.js";
import { CONFIG, plotly } from "./plotly.js";
import { number } from "./row.js";
import { Series } from "./series.js";
import { ask } from "./socket.js";
import { PointsTable } from "./table.js";

const BUCKETS = 800;
const REFETCH_AT = 4 * BUCKETS; // points a line, before the server is asked for buckets again
const MARGIN = 0.05; // read beyond what is looked at, so that lines go on to the edge

export class Figure {
  constructor(card, { options, redraw }) {
    this.card = card;
    this.key = card.dataset.key;
    this.job = card.dataset.job;
    this.options = options; // shared by all: {smoothing, log, x}
    this.redraw = () => redraw(this);
    this.series = new Map();
    this.range = null; // [from, to] of x while zoomed
    this.visible = false;
    this.mounted = false;
    this.asked = 0;
    this.missed = null; // what came while the server was asked
    this.legend = new Legend(this);
    this.table = new PointsTable(this);
  }

  get isReady() {
    return this.mounted && this.series.size > 0 && window.Plotly !== undefined;
  }

  get place() {
    return this.card.querySelector(".plot");
  }

  async mount() {
    if (this.mounted) return;
    this.mounted = true;
    this.reload();
    try {
      await plotly();
      this.redraw();
    } catch (error) {
      this.note(error.message);
    }
  }

  unmount() {
    if (!this.mounted) return;
    this.mounted = false;
    this.asked += 1;
    this.missed = null;
    this.range = null;
    this.series.clear();
    if (this.drawn) {
      window.Plotly.purge(this.place);
      this.place.replaceChildren();
      this.place.classList.remove("js-plotly-plot");
    }
    this.drawn = false;
    this.card.classList.remove("zoomed");
  }

  async reload() {
    if (!this.mounted) return;
    const mine = (this.asked += 1);
    this.missed = [];
    try {
      const answer = await ask(`/api/v1/jobs/${this.job}/series/?${this.query()}`);
      if (mine !== this.asked) return; // asked again since, for more or for another range
      this.series = new Map(answer.series.map((one) => [`${one.attempt}/${one.rank}`, new Series(one)]));
      for (const change of this.missed) this.take(change);
    } catch (error) {
      if (mine !== this.asked) return;
      if (!this.series.size) this.note(`Could not be loaded: ${error.message}`);
    }
    this.missed = null;
    this.redraw();
  }

  query() {
    const query = new URLSearchParams({ key: this.key, buckets: BUCKETS, attempt: "all", x: this.options.x });
    if (this.range) {
      const [from, to] = this.range;
      const more = (to - from) * MARGIN;
      const whole = this.options.x === "step";
      query.set("from", whole ? Math.floor(from - more) : from - more);
      query.set("to", whole ? Math.ceil(to + more) : to + more);
    }
    return query;
  }

  add(change) {
    this.showLatest(change, change.value.at(-1));
    if (!this.mounted) return;
    if (this.missed) this.missed.push(change);
    this.take(change);
    const points = [...this.series.values()].reduce((most, one) => Math.max(most, one.step.length), 0);
    if (points > REFETCH_AT && !this.range && !this.missed) this.reload();
    else this.redraw();
  }

  take(change) {
    const name = `${change.attempt}/${change.rank}`;
    if (!this.series.has(name)) this.series.set(name, Series.empty(change));
    const series = this.series.get(name);
    if (!this.range) series.add(change);
    // a zoomed view stands still; the reset brings what came meanwhile
  }

  showLatest({ attempt, rank }, value) {
    const place = this.card.querySelector(".val");
    const shown = this.shown || { attempt: 0, rank: Infinity };
    if (!place || attempt < shown.attempt || (attempt === shown.attempt && rank > shown.rank)) return;
    this.shown = { attempt, rank };
    place.textContent = number(value);
  }

  paint() {
    const style = getComputedStyle(document.documentElement);
    this.revision = (this.revision || 0) + 1;
    const about = { key: this.key, options: this.options, hidden: this.legend.hidden, style, revision: this.revision };
    window.Plotly.react(this.place, traces(this.series, about), layout(about), CONFIG);
    this.legend.show(looks(this.series, about));
    this.caption();
    this.table.refresh();
    if (this.drawn) return;
    this.drawn = true;
    this.place.on("plotly_relayout", (event) => this.relayout(event));
  }

  relayout(event) {
    if (event["xaxis.autorange"]) {
      if (!this.range) return;
      this.range = null;
    } else if (event["xaxis.range[0]"] !== undefined) {
      this.range = [event["xaxis.range[0]"], event["xaxis.range[1]"]].map((edge) => this.edge(edge));
    } else {
      return;
    }
    this.card.classList.toggle("zoomed", Boolean(this.range));
    this.reload(); // true points of what is looked at
  }

  edge(value) {
    // plotly tells a moment as local time with a space
    return this.options.x === "time" ? new Date(String(value).replace(" ", "T")).getTime() / 1000 : Number(value);
  }

  resetZoom() {
    this.range = null;
    this.card.classList.remove("zoomed");
  }

  caption() {
    const lines = inOrder(this.series);
    if (!lines.length || !lines[0].step.length) return;
    const one = lines[0];
    const finite = one.value.filter(Number.isFinite);
    const bad = one.bad ? one.bad.reduce((sum, count) => sum + count, 0) : one.value.length - finite.length;
    const drawn = lines.reduce((sum, each) => sum + each.step.length, 0);
    const total = lines.reduce((sum, each) => sum + each.total, 0);
    const least = (one.low || finite).reduce((low, value) => (value < low ? value : low), Infinity);
    const most = (one.high || finite).reduce((high, value) => (value > high ? value : high), -Infinity);
    const parts = [`${this.key}, steps ${number(one.step[0])} to ${number(one.step.at(-1))}`];
    if (finite.length) parts.push(`from ${number(finite[0])} to ${number(finite.at(-1))}, least ${number(least)}, most ${number(most)}`);
    if (bad) parts.push(`${bad} not finite`);
    if (drawn < total && !this.range) parts.push(`${number(drawn)} of ${number(total)} points drawn`);
    this.note(`${parts.join("; ")}.`);
  }

  note(words) {
    const caption = this.card.querySelector("figcaption");
    if (caption) caption.textContent = words;
  }
}
