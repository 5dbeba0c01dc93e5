// A chart as a picture for a paper or a chat: as it is looked at, but on white and with its words below it, in either theme.
import { cutOf, inOrder, layout, looks, traces } from "./drawing.js";
import { placed, wordsOf } from "./marks.js";
import { CONFIG, plotly } from "./plotly.js";
import { forgetTokens, tokens } from "./tokens.js";
import { toast } from "./toast.js";
import { view } from "./view_state.js";
import { gettext, said } from "./words.js";

const WIDTH = 900;
const HEIGHT = 450;
const LINE = 15; // px of a line of words
const LONGEST = 125; // characters of one
const SHARP = 2; // pixels of a PNG for one of the drawing
const MOST_NAMED = 6; // marks whose words are told

export async function save(figure, format) {
  try {
    const { toImage } = await plotly();
    const url = await inLight(() => toImage(drawing(figure), { format, width: WIDTH, height: HEIGHT + room(figure), scale: format === "png" ? SHARP : 1 }));
    const link = document.createElement("a");
    link.href = url;
    link.download = `${named(jobName())}-${named(figure.key)}.${format}`;
    link.click();
  } catch (error) {
    toast(said(gettext("The picture could not be made: {why}"), { why: error.message ?? String(error) }));
  }
}

function inLight(make) {
  // what is drawn asks for its colours at once: nobody sees the page in them
  const root = document.documentElement;
  const before = root.dataset.theme;
  root.dataset.theme = "light";
  forgetTokens();
  try {
    return make();
  } finally {
    if (before === undefined) delete root.dataset.theme;
    else root.dataset.theme = before;
    forgetTokens();
  }
}

function drawing(figure) {
  const { key, axis, logY } = figure;
  const style = tokens;
  const found = looks(figure.series, { key, style });
  const lines = inOrder(figure.series).map((series, index) => ({ series, look: found[index], x: axis.of(series) })).filter(({ look }) => !view.hide.has(look.id));
  const cut = view.y.has(key) ? null : cutOf(lines, { logY });
  const about = { key, axis, style, revision: 0, logY, cut, goal: figure.goal.state, width: WIDTH, height: HEIGHT + room(figure) };
  const drawn = layout(about);
  const text = style.getPropertyValue("--text").trim();
  const beside = { xref: "paper", yref: "paper", xanchor: "left", yanchor: "top", x: 0, y: 0, showarrow: false, align: "left", font: { size: 11, color: style.getPropertyValue("--text-2").trim() } };
  Object.assign(drawn, {
    paper_bgcolor: "#ffffff", plot_bgcolor: "#ffffff", width: WIDTH,
    margin: { l: 64, r: 24, t: 44, b: 44 + room(figure) },
    annotations: [
      { ...beside, y: 1, yanchor: "bottom", yshift: 12, text: escaped(`${key} · ${jobName()}`), font: { size: 14, color: text } },
      ...words(figure).map((line, index) => ({ ...beside, yshift: -34 - LINE * index, text: escaped(line) })),
    ],
    shapes: [...drawn.shapes, ...uprights(figure, style)],
    showlegend: lines.length > 1,
    legend: { orientation: "h", x: 1, xanchor: "right", y: 1, yanchor: "bottom" },
  });
  const named = new Set(lines.map(({ look }) => look.label));
  const data = traces(lines, about).map((trace) => ({ ...trace, showlegend: named.has(trace.name) }));
  return { data, layout: drawn, config: CONFIG };
}

function uprights(figure, style) {
  // only those between the first and the last point: a mark must not make the axis longer
  const edges = figure.lines.flatMap(({ x }) => [x[0], x.at(-1)]);
  const [low, high] = [Math.min(...edges), Math.max(...edges)];
  const line = { color: style.getPropertyValue("--muted").trim(), width: 1, dash: "dot" };
  return placed(figure.axis).filter(({ x }) => x >= low && x <= high).map(({ x }) => ({ type: "line", layer: "below", xref: "x", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line }));
}

function words(figure) {
  const caption = [...figure.card.querySelectorAll("figcaption > *")].map((badge) => badge.textContent).join(" · ");
  const marks = placed(figure.axis).map(({ mark }) => wordsOf(mark));
  const more = marks.length - MOST_NAMED;
  if (more > 0) marks.splice(MOST_NAMED, more, said(gettext("and {count} more events"), { count: more }));
  return [caption, ...marks].flatMap(broken);
}

function room(figure) {
  return LINE * words(figure).length;
}

function broken(text) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1).length + word.length > LONGEST) lines.push("");
    lines[lines.length - 1] += `${word} `;
  }
  return lines.map((line) => line.trim());
}

function jobName() {
  return document.querySelector("[data-chart-tools]").dataset.jobName;
}

function named(text) {
  return text.replaceAll(/[^\p{L}\p{N}._-]+/gu, "-");
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
