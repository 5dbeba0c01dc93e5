// What plotly is given for one card: a line a series with the band of its buckets, marks for what cannot be drawn, the axes.
import { view } from "./view_state.js";

const COLOURS = 6;
const DASHES = ["solid", "dash", "dot", "dashdot"];
const MARKS = 200; // of one kind on a chart
const OUTLIER = 5; // the largest over the 95th percentile, from where on the axis is cut
const CUT = 2; // times that percentile, where it is cut

export function inOrder(series) {
  return [...series.values()].sort((a, b) => a.place - b.place || b.attempt - a.attempt || a.rank - b.rank);
}

export function looks(series, { key, style }) {
  // of each line its name, words, colour and dash: a rank, or a metric laid over another, has its own; earlier attempts are faint
  const order = inOrder(series);
  const newest = Math.max(1, ...order.map((one) => one.attempt));
  const metrics = new Set(order.map((one) => one.key));
  const ranks = new Set(order.map((one) => one.rank));
  return order.map((one) => {
    const slot = metrics.size > 1 ? one.place : one.rank;
    const words = [];
    if (metrics.size > 1) words.push(one.key);
    if (ranks.size > 1 || (metrics.size === 1 && order.length > 1)) words.push(`rank ${one.rank}`);
    if (newest > 1) words.push(`attempt ${one.attempt}`);
    return {
      id: metrics.size > 1 ? `${one.key} ${one.name}` : one.name,
      label: order.length > 1 ? words.join(", ") : key,
      colour: style.getPropertyValue(`--c${(slot % COLOURS) + 1}`).trim(),
      dash: DASHES[((metrics.size > 1 ? slot + one.rank : slot) + newest - one.attempt) % DASHES.length],
      faint: one.attempt < newest,
    };
  });
}

// lines: [{series, look, x}] of what is not hidden; about: {key, style, axis, logY, cut}
export function traces(lines, about) {
  return lines.flatMap((line) => linesOf(line, about));
}

function linesOf({ series, look, x }, about) {
  const { colour, dash, faint, label } = look;
  const found = [];
  const beside = { x, mode: "lines", hoverinfo: "skip" };
  const line = { color: colour, width: 1.8, dash, simplify: false };
  if (series.isBucketed) {
    const edge = { ...beside, line: { width: 0, simplify: false } };
    found.push({ ...edge, y: series.low }, { ...edge, y: series.high, fill: "tonexty", fillcolor: `${colour}33` });
  }
  if (series.curve) found.push({ ...beside, y: series.value, line: { ...line, width: 1 }, opacity: 0.3 });
  found.push({
    x, y: series.shown, name: label, line, opacity: faint ? 0.55 : 1, hoverinfo: "skip", connectgaps: false,
    mode: series.step.length === 1 ? "markers" : "lines", marker: { color: colour, size: 6 },
  });
  found.push(...marks(series, x, about));
  return found;
}

function marks(series, x, { style, logY, cut }) {
  // a loss that became NaN is a fact, not a gap; so are values that the axis cannot show: a mark at the edge of the chart
  const failed = style.getPropertyValue("--failed").trim();
  const muted = style.getPropertyValue("--muted").trim();
  const found = [];
  const put = (at, y, symbol, color) => {
    if (!at.length) return;
    const some = at.length > MARKS ? at.filter((_index, place) => place % Math.ceil(at.length / MARKS) === 0) : at;
    found.push({ x: some.map((index) => x[index]), y: some.map(() => y), yaxis: "y2", mode: "markers", hoverinfo: "skip", marker: { symbol, size: 8, color } });
  };
  put(where(series, (value, index) => value === Infinity), 0.95, "triangle-up", failed);
  put(where(series, (value, index) => value !== Infinity && (!Number.isFinite(value) || (series.bad && series.bad[index]))), 0.05, "triangle-down", failed);
  if (logY) put(where(series, (value, index) => lowest(series, index) <= 0), 0.05, "line-ns-open", muted);
  if (cut) put(where(series, (value, index) => highest(series, index) > cut.high), 0.97, "triangle-up-open", muted);
  if (cut) put(where(series, (value, index) => lowest(series, index) < cut.low), 0.03, "triangle-down-open", muted);
  return found;
}

function where(series, holds) {
  const at = [];
  for (let index = 0; index < series.value.length; index += 1) if (holds(series.value[index], index)) at.push(index);
  return at;
}

function lowest(series, index) {
  return series.low && Number.isFinite(series.low[index]) ? series.low[index] : series.value[index];
}

function highest(series, index) {
  return series.high && Number.isFinite(series.high[index]) ? series.high[index] : series.value[index];
}

export function notPositive(lines) {
  return lines.reduce((sum, { series }) => sum + where(series, (_value, index) => lowest(series, index) <= 0).length, 0);
}

export function cutOf(lines, { logY }) {
  // a few very large values would press everything else flat: the axis ends before them, and says how many they are
  if (!view.clips || logY) return null;
  const values = lines.flatMap(({ series }) => series.value.filter(Number.isFinite)).sort((a, b) => a - b);
  if (values.length < 20) return null;
  const [low, high] = [values[Math.floor(values.length * 0.05)], values[Math.floor(values.length * 0.95)]];
  const least = lines.reduce((all, { series }) => Math.min(all, series.lowest?.value ?? all), Infinity);
  const most = lines.reduce((all, { series }) => Math.max(all, series.highest?.value ?? all), -Infinity);
  const cutsHigh = high > 0 && most > OUTLIER * high;
  const cutsLow = low < 0 && least < OUTLIER * low;
  if (!cutsHigh && !cutsLow) return null;
  const cut = { high: cutsHigh ? CUT * high : Infinity, low: cutsLow ? CUT * low : -Infinity };
  const inside = (value) => Math.min(cut.high, Math.max(cut.low, value));
  const count = (holds) => lines.reduce((sum, { series }) => sum + where(series, (_value, index) => holds(series, index)).length, 0);
  const [bottom, top] = [inside(least), inside(most)];
  const room = 0.05 * (top - bottom || 1);
  return {
    ...cut, range: [bottom - room, top + room],
    above: count((series, index) => highest(series, index) > cut.high),
    below: count((series, index) => lowest(series, index) < cut.low),
  };
}

// a goal is a line over the whole width, and stands inside the axis also where the data does not reach it
function goalOf({ goal, logY, style }) {
  if (!goal || (logY && goal.value <= 0)) return [];
  const line = { color: style.getPropertyValue("--succeeded").trim(), width: 1.5, dash: "dash" };
  return [{ type: "line", layer: "above", xref: "paper", x0: 0, x1: 1, yref: "y", y0: goal.value, y1: goal.value, line }];
}

function withGoal([low, high], goal) {
  const room = 0.05 * (high - low);
  return goal ? [Math.min(low, goal.value - room), Math.max(high, goal.value + room)] : [low, high];
}

export function layout(about) {
  const { key, axis, style, revision, logY, cut, width, height, goal, flags } = about;
  const take = (name) => style.getPropertyValue(name).trim();
  const muted = take("--muted");
  const usual = { gridcolor: take("--line"), zeroline: false, tickfont: { size: 10, color: muted }, automargin: true };
  const drawn = (edge, isLog) => (isLog ? Math.log10(edge) : edge);
  const logX = view.logX && view.x !== "time";
  const x = { ...usual, showgrid: false, type: view.x === "time" ? "date" : logX ? "log" : "linear", nticks: Math.max(3, Math.round(width / 90)) };
  const shown = view.range && view.range.map((edge) => axis.shown(edge));
  if (shown && !(logX && shown[0] <= 0)) x.range = shown.map((edge) => drawn(edge, logX));
  else x.autorange = true;
  if (view.x === "relative") x.ticksuffix = ` ${axis.unit.sign}`;
  // a power is written as a style attribute, which the CSP forbids
  const y = { ...usual, type: logY ? "log" : "linear", exponentformat: "e", nticks: 5 };
  const own = view.y.get(key) ?? (cut && withGoal(cut.range, goal));
  if (own && !(logY && own[0] <= 0)) y.range = own.map((edge) => drawn(edge, logY));
  else y.autorange = true;
  return {
    height, margin: { l: 44, r: 8, t: flags ? 18 : 6, b: 24 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: take("--font"), size: 11, color: muted }, xaxis: x, yaxis: y,
    yaxis2: { overlaying: "y", range: [0, 1], fixedrange: true, visible: false },
    shapes: goalOf(about),
    showlegend: false, // the card has its own, which takes no room from the lines
    hovermode: false, // the page has one crosshair over all charts
    dragmode: view.pans ? "pan" : "zoom",
    datarevision: revision, // the arrays grow in place, which plotly does not notice by itself
  };
}
