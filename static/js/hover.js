// One crosshair over all charts: the pointer, a finger or the keys on one of them, and each says what it has there.
import { number } from "./row.js";
import { announce } from "./toast.js";
import { gettext, ngettext, said } from "./words.js";

const ROWS = 8; // of a tooltip
const STRIDE = 10; // points of a step with Shift
const all = new Set();
let pass = 0;
let at = null; // {x, from}: where the crosshair is, in what is drawn, and on whose chart

export class Crosshair {
  constructor(figure) {
    this.figure = figure;
    this.line = document.createElement("div");
    this.line.className = "cross";
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.line.hidden = true;
    this.tip.hidden = true;
    const { plot } = figure;
    plot.parentElement.append(this.line, this.tip);
    plot.addEventListener("pointermove", (event) => this.point(event));
    plot.addEventListener("pointerdown", (event) => event.pointerType !== "mouse" && this.point(event)); // a tap is a hover
    plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && move(null));
    plot.addEventListener("keydown", (event) => this.key(event));
    plot.addEventListener("blur", () => move(null));
  }

  start() {
    all.add(this);
  }

  stop() {
    all.delete(this);
    this.hide();
  }

  get axes() {
    return this.figure.plot._fullLayout;
  }

  point(event) {
    if (!this.figure.drawn || (event.buttons && event.pointerType === "mouse")) return; // a drag is a zoom
    const x = this.axes.xaxis.p2c(event.clientX - this.figure.plot.getBoundingClientRect().left - this.axes.xaxis._offset);
    if (Number.isFinite(x)) move({ x, from: this, y: event.clientY - this.figure.plot.getBoundingClientRect().top });
  }

  key(event) {
    const strides = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    if (event.key === "Escape" && at) {
      move(null);
      event.stopPropagation();
      return;
    }
    if (!(event.key in strides) || event.ctrlKey || event.metaKey || event.altKey || !this.figure.drawn) return;
    event.preventDefault();
    const lead = this.figure.lines[0];
    if (!lead || !lead.x.length) return;
    const [first, last] = this.within(lead.x);
    const here = at ? nearest(lead.x, at.x) : strides[event.key] > 0 ? first - 1 : last + 1;
    const there = Math.min(last, Math.max(first, here + strides[event.key] * (event.shiftKey ? STRIDE : 1)));
    move({ x: lead.x[there], from: this, y: 0 });
    announce(this.words(lead.x[there]));
  }

  within(x) {
    // the first and the last point that can be seen
    const { xaxis } = this.axes;
    const edges = [xaxis.p2c(0), xaxis.p2c(xaxis._length)];
    const seen = [nearest(x, edges[0]), nearest(x, edges[1])];
    return x[seen[0]] < edges[0] && seen[0] < seen[1] ? [seen[0] + 1, seen[1]] : seen;
  }

  values(x) {
    // of every line what it has nearest to x, the largest first
    const reach = 0.02 * Math.abs(this.axes.xaxis.p2c(this.axes.xaxis._length) - this.axes.xaxis.p2c(0));
    return this.figure.lines
      .map(({ series, look, x: xs }) => {
        const index = nearest(xs, x);
        if (index < 0) return null;
        const beyond = Math.abs(xs[index] - x);
        const step = Math.max(Math.abs(xs[index] - (xs[index - 1] ?? xs[index])), Math.abs(xs[index] - (xs[index + 1] ?? xs[index])));
        if (beyond > Math.max(reach, step)) return null; // this line is not here
        return { look, index, series, x: xs[index], value: series.shown[index], raw: series.value[index] };
      })
      .filter(Boolean)
      .sort((a, b) => b.value - a.value);
  }

  words(x) {
    const found = this.values(x);
    const values = found.map(({ look, raw }) => (found.length > 1 ? said(gettext("{line}: {value}"), { line: look.label, value: number(raw) }) : number(raw)));
    return said(gettext("{x}: {values}"), { x: this.figure.axis.words(found.length ? found[0].x : x), values: values.join(", ") });
  }

  show({ x, from, y }) {
    if (!this.figure.drawn || !this.figure.visible) return;
    const { xaxis, _size: size } = this.axes;
    const place = xaxis.c2p(x);
    if (!(place >= 0 && place <= xaxis._length)) {
      this.hide();
      return;
    }
    const found = this.values(x);
    const snapped = from === this && found.length ? xaxis.c2p(found[0].x) : place;
    this.line.style.transform = `translateX(${Math.round(xaxis._offset + snapped)}px)`;
    this.line.style.top = `${size.t}px`;
    this.line.style.height = `${size.h}px`;
    this.line.hidden = false;
    this.write(found, x, from === this ? y : null);
    const width = this.figure.plot.clientWidth;
    const left = xaxis._offset + snapped;
    const right = left > width / 2;
    this.tip.style.left = right ? "auto" : `${left + 8}px`;
    this.tip.style.right = right ? `${width - left + 8}px` : "auto";
    this.tip.hidden = false;
  }

  write(found, x, y) {
    const { yaxis } = this.axes;
    let near = null;
    if (y !== null) near = found.reduce((best, one) => (!best || Math.abs(yaxis.c2p(one.value) + yaxis._offset - y) < Math.abs(yaxis.c2p(best.value) + yaxis._offset - y) ? one : best), null);
    let rows = found;
    if (found.length > ROWS) {
      const middle = Math.max(0, found.indexOf(near));
      const start = Math.min(found.length - ROWS, Math.max(0, middle - ROWS / 2));
      rows = found.slice(start, start + ROWS);
    }
    const head = document.createElement("b");
    head.textContent = this.figure.axis.words(found.length ? found[0].x : x);
    const lines = rows.map((one) => this.row(one, { hasName: found.length > 1, isNear: one === near, isShort: y === null }));
    if (found.length > rows.length) {
      const more = document.createElement("i");
      const left = found.length - rows.length;
      more.textContent = said(ngettext("and {count} more", "and {count} more", left), { count: left });
      lines.push(more);
    }
    this.tip.replaceChildren(head, ...lines);
  }

  row({ look, series, index, value, raw }, { hasName, isNear, isShort }) {
    const row = document.createElement("span");
    row.className = isNear && hasName ? "near" : "";
    row.style.color = look.colour;
    const text = document.createElement("span");
    const parts = [number(raw)];
    if (!isShort && series.curve && value !== raw && Number.isFinite(raw)) parts.push(said(gettext("smoothed {value}"), { value: number(value) }));
    if (!isShort && series.count && series.count[index] > 1) {
      parts.push(said(gettext("{low} to {high}"), { low: number(series.low[index]), high: number(series.high[index]) }));
      if (series.bad[index]) parts.push(said(gettext("{count} not finite"), { count: series.bad[index] }));
    }
    text.textContent = `${hasName ? `${look.label} ` : ""}${parts.join(" · ")}`;
    row.append(text);
    return row;
  }

  hide() {
    this.line.hidden = true;
    this.tip.hidden = true;
  }
}

function move(where) {
  at = where;
  pass ||= requestAnimationFrame(() => {
    pass = 0;
    for (const one of all) if (at) one.show(at);
      else one.hide();
  });
}

export function nearest(sorted, x) {
  let low = 0;
  let high = sorted.length - 1;
  if (high < 0) return -1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= x) low = middle;
    else high = middle;
  }
  return Math.abs(sorted[low] - x) <= Math.abs(sorted[high] - x) ? low : high;
}
