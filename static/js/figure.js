// One metric's card: its series drawn by plotly as SVG, never more than 2,000 buckets a line, drawn at most once a frame.
import { CONFIG, plotly } from "./plotly.js";
import { number } from "./row.js";
import { Series } from "./series.js";
import { smooth } from "./smooth.js";
import { ask } from "./socket.js";

const BUCKETS = 800;
const REFETCH_AT = 3200; // points drawn before the server is asked for buckets again
const DASHES = ["solid", "dash", "dot", "dashdot"];

export class Figure {
  constructor(card, options) {
    this.card = card;
    this.key = card.dataset.key;
    this.job = card.dataset.job;
    this.options = options; // shared: {smoothing, log, x}
    this.series = new Map();
    this.pending = [];
    this.range = null; // [from, to] while zoomed
    this.drawn = false;
    this.frame = 0;
  }

  async mount() {
    if (this.mounted) return;
    this.mounted = true;
    try {
      await this.fetch();
      this.draw();
    } catch (error) {
      this.mounted = false;
      this.note(`Could not be loaded: ${error.message}`);
    }
  }

  async fetch() {
    const query = new URLSearchParams({ key: this.key, buckets: BUCKETS, attempt: "all" });
    if (this.range) {
      query.set("from", Math.floor(this.range[0]));
      query.set("to", Math.ceil(this.range[1]));
    }
    const answer = await ask(`/api/v1/jobs/${this.job}/series/?${query}`);
    this.series = new Map(answer.series.map((one) => [`${one.attempt}/${one.rank}`, new Series(one)]));
    for (const change of this.pending.splice(0)) this.take(change);
    this.loaded = true;
  }

  add(change) {
    this.latest(change);
    if (!this.mounted) return;
    if (!this.loaded) this.pending.push(change);
    else {
      this.take(change);
      this.draw();
    }
  }

  take(change) {
    const name = `${change.attempt}/${change.rank}`;
    if (!this.series.has(name)) this.series.set(name, Series.empty(change));
    const series = this.series.get(name);
    if (!this.range) series.add(change);
    else series.total += change.step.length; // a zoomed view stands still; the reset brings what came meanwhile
  }

  latest(change) {
    const value = this.card.querySelector(".val");
    const newest = Math.max(change.attempt, ...[...this.series.values()].map((one) => one.attempt));
    if (value && change.attempt >= newest && change.rank === 0) value.textContent = number(change.value.at(-1));
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  async paint() {
    const Plotly = await plotly();
    const total = [...this.series.values()].reduce((sum, one) => sum + one.step.length, 0);
    if (this.loaded && !this.range && total > REFETCH_AT * Math.max(1, this.series.size)) {
      this.loaded = false;
      await this.fetch();
    }
    const place = this.card.querySelector(".plot");
    const style = getComputedStyle(document.documentElement);
    await Plotly.react(place, this.traces(style), this.layout(style), CONFIG);
    this.caption();
    if (!this.drawn) {
      this.drawn = true;
      place.on("plotly_relayout", (event) => this.relayout(event));
    }
  }

  traces(style) {
    const traces = [];
    const order = [...this.series.values()].sort((a, b) => b.attempt - a.attempt || a.rank - b.rank);
    const newest = order.length ? order[0].attempt : 1;
    order.forEach((one, index) => {
      const colour = style.getPropertyValue(`--c${(one.rank % 6) + 1}`).trim();
      const x = this.options.x === "time" ? one.time.map((time) => new Date(time * 1000)) : one.step;
      const faint = one.attempt < newest;
      const name = order.length > 1 ? `rank ${one.rank}${faint || one.attempt > 1 ? `, attempt ${one.attempt}` : ""}` : this.key;
      const line = { color: colour, width: 1.8, dash: DASHES[(newest - one.attempt) % 4], simplify: false };
      if (one.low && one.total > one.step.length) {
        const edge = { x, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
        traces.push({ ...edge, y: one.low }, { ...edge, y: one.high, fill: "tonexty", fillcolor: `${colour}33` });
      }
      const weight = this.options.smoothing;
      if (weight) traces.push({ x, y: one.value, mode: "lines", line: { ...line, width: 1 }, opacity: 0.3, hoverinfo: "skip", showlegend: false });
      const single = one.step.length === 1;
      traces.push({
        x, y: smooth(one.value, weight), name, line, opacity: faint ? 0.55 : 1,
        mode: single ? "markers" : "lines", marker: { color: colour, size: 6 }, connectgaps: false,
        hovertemplate: "%{x}: %{y:.5g}<extra>%{fullData.name}</extra>", showlegend: order.length > 1 && index < 12,
      });
      traces.push(...this.badMarkers(one, x, style));
    });
    return traces;
  }

  badMarkers(one, x, style) {
    // a loss that became NaN is a fact, not a gap: a mark at the foot of the chart
    const at = one.value.map((value, index) => (!Number.isFinite(value) || (one.bad && one.bad[index]) ? index : -1)).filter((index) => index >= 0);
    if (!at.length) return [];
    const finite = one.value.filter((value) => Number.isFinite(value));
    const foot = finite.length ? Math.min(...finite) : 1;
    return [{
      x: at.map((index) => x[index]), y: at.map(() => foot), mode: "markers", showlegend: false,
      marker: { symbol: "triangle-up", size: 9, color: style.getPropertyValue("--failed").trim() },
      text: at.map((index) => String(one.value[index])), hovertemplate: "%{x}: %{text}<extra>not finite</extra>",
    }];
  }

  layout(style) {
    const muted = style.getPropertyValue("--muted").trim();
    const line = style.getPropertyValue("--line").trim();
    const axis = { gridcolor: line, zeroline: false, tickfont: { size: 10, color: muted }, automargin: true, nticks: 5 };
    return {
      height: 144, margin: { l: 44, r: 8, t: 6, b: 24 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: style.getPropertyValue("--font"), size: 11, color: muted },
      xaxis: { ...axis, showgrid: false, type: this.options.x === "time" ? "date" : "linear" },
      yaxis: { ...axis, type: this.options.log ? "log" : "linear", exponentformat: "power" },
      legend: { orientation: "h", y: -0.22, font: { size: 10 } }, hovermode: "x unified", dragmode: "zoom",
      hoverlabel: { bgcolor: style.getPropertyValue("--surface").trim(), font: { color: style.getPropertyValue("--text").trim(), size: 12 } },
      showlegend: this.series.size > 1,
      uirevision: `${this.options.x}-${this.options.log}`, // streaming keeps the zoom
    };
  }

  async relayout(event) {
    const from = event["xaxis.range[0]"];
    const to = event["xaxis.range[1]"];
    if (event["xaxis.autorange"]) this.range = null;
    else if (from !== undefined && this.options.x !== "time") this.range = [Number(from), Number(to)];
    else return;
    this.card.classList.toggle("zoomed", Boolean(this.range));
    this.loaded = false;
    await this.fetch(); // true points of what is looked at
    this.draw();
  }

  caption() {
    const caption = this.card.querySelector("figcaption");
    const lines = [...this.series.values()].sort((a, b) => b.attempt - a.attempt || a.rank - b.rank);
    if (!caption || !lines.length || !lines[0].step.length) return;
    const one = lines[0];
    const finite = one.value.filter((value) => Number.isFinite(value));
    const bad = one.bad ? one.bad.reduce((sum, count) => sum + count, 0) : one.value.length - finite.length;
    const drawn = lines.reduce((sum, each) => sum + each.step.length, 0);
    const total = lines.reduce((sum, each) => sum + each.total, 0);
    const low = Math.min(...(one.low || finite).filter(Number.isFinite));
    const high = Math.max(...(one.high || finite).filter(Number.isFinite));
    const parts = [`${this.key}, steps ${number(one.step[0])} to ${number(one.step.at(-1))}`];
    if (finite.length) parts.push(`from ${number(finite[0])} to ${number(finite.at(-1))}, least ${number(low)}, most ${number(high)}`);
    if (bad) parts.push(`${bad} not finite`);
    if (drawn < total) parts.push(`${number(drawn)} of ${number(total)} points drawn`);
    caption.textContent = `${parts.join("; ")}.`;
  }

  note(words) {
    const caption = this.card.querySelector("figcaption");
    if (caption) caption.textContent = words;
  }
}
