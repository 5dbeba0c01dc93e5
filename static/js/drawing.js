// What plotly is given for one metric: a line a series with the band of its buckets, marks for what is not finite, the axes.
import { smooth } from "./smooth.js";

const COLOURS = 6;
const DASHES = ["solid", "dash", "dot", "dashdot"];

export function inOrder(series) {
  return [...series.values()].sort((a, b) => b.attempt - a.attempt || a.rank - b.rank);
}

export function looks(series, { key, style }) {
  // of each line its name, words, colour and dash: the same rank has the same colour, an earlier attempt another dash
  const order = inOrder(series);
  const newest = order.length ? order[0].attempt : 1;
  return order.map((one) => ({
    name: one.name,
    label: order.length > 1 ? `rank ${one.rank}${newest > 1 ? `, attempt ${one.attempt}` : ""}` : key,
    colour: style.getPropertyValue(`--c${(one.rank % COLOURS) + 1}`).trim(),
    dash: DASHES[(Math.floor(one.rank / COLOURS) + newest - one.attempt) % DASHES.length],
    faint: one.attempt < newest,
  }));
}

export function traces(series, about) {
  const { options, style, hidden } = about;
  const found = looks(series, about);
  return inOrder(series).flatMap((one, index) => {
    const { name, label, colour, dash, faint } = found[index];
    if (hidden.has(name)) return [];
    return linesOf(one, {
      x: xOf(one, options),
      weight: options.smoothing,
      colour,
      opacity: faint ? 0.55 : 1,
      line: { color: colour, width: 1.8, dash, simplify: false },
      name: label,
      bad: style.getPropertyValue("--failed").trim(),
    });
  });
}

function xOf(one, options) {
  return options.x === "time" ? one.time.map((time) => new Date(time * 1000)) : one.step;
}

function linesOf(one, { x, weight, colour, opacity, line, name, bad }) {
  const found = [];
  const beside = { x, mode: "lines", hoverinfo: "skip" };
  if (one.low && one.isBucketed) {
    const edge = { ...beside, line: { width: 0, simplify: false } };
    found.push({ ...edge, y: one.low }, { ...edge, y: one.high, fill: "tonexty", fillcolor: `${colour}33` });
  }
  if (weight) found.push({ ...beside, y: one.value, line: { ...line, width: 1 }, opacity: 0.3 });
  found.push({
    x, y: smooth(one.value, weight), name, line, opacity,
    mode: one.step.length === 1 ? "markers" : "lines", marker: { color: colour, size: 6 }, connectgaps: false,
    hovertemplate: "%{x}: %{y:.5g}<extra>%{fullData.name}</extra>",
  });
  const marks = badMarks(one, x);
  if (marks) found.push({ ...marks, marker: { ...marks.marker, color: bad } });
  return found;
}

function badMarks(one, x) {
  // a loss that became NaN is a fact, not a gap: a mark at the edge of the chart, on an axis of its own
  const at = [];
  for (let index = 0; index < one.value.length; index += 1) {
    if (!Number.isFinite(one.value[index]) || (one.bad && one.bad[index])) at.push(index);
  }
  if (!at.length) return null;
  const says = (index) => {
    const value = one.value[index];
    const count = one.count ? one.count[index] : 1;
    return count > 1 ? `${one.bad[index]} of ${count} not finite` : String(value);
  };
  return {
    x: at.map((index) => x[index]), y: at.map((index) => (one.value[index] === Infinity ? 0.95 : 0.05)), yaxis: "y2",
    text: at.map(says), mode: "markers", hovertemplate: "%{x}: %{text}<extra></extra>",
    marker: { symbol: at.map((index) => (one.value[index] === Infinity ? "triangle-up" : "triangle-down")), size: 9 },
  };
}

export function layout({ options, style, revision }) {
  const take = (name) => style.getPropertyValue(name).trim();
  const muted = take("--muted");
  const axis = { gridcolor: take("--line"), zeroline: false, tickfont: { size: 10, color: muted }, automargin: true, nticks: 5 };
  return {
    height: 144, margin: { l: 44, r: 8, t: 6, b: 24 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: take("--font"), size: 11, color: muted },
    xaxis: { ...axis, showgrid: false, type: options.x === "time" ? "date" : "linear" },
    yaxis: { ...axis, type: options.log ? "log" : "linear", exponentformat: "e" }, // a power is written as a style attribute, which the CSP forbids
    yaxis2: { overlaying: "y", range: [0, 1], fixedrange: true, visible: false },
    showlegend: false, // the card has its own, which takes no room from the lines
    hovermode: "x unified", dragmode: "zoom",
    hoverlabel: { bgcolor: take("--surface"), font: { color: take("--text"), size: 12 } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: muted, activecolor: take("--text") },
    uirevision: `${options.x}-${options.log}`, // streaming keeps the zoom
    datarevision: revision, // the arrays grow in place, which plotly does not notice by itself
  };
}
