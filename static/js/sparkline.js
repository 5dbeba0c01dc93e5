// The small drawing of a metric in a row: one request for all rows of a page, then a line that grows with what the row tells.
import { gettext, said } from "./words.js";
import { ask } from "./socket.js";
import { number } from "./row.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 72;
const HEIGHT = 20;
const MOST = 60; // points of a line that grows
const AGAIN = 60_000; // ms: what running jobs reported between two rows

const lines = new Map(); // id -> {key, values, step}

export async function loadSparklines(body) {
  const address = body.dataset.sparklines;
  if (!address) return;
  const load = async (rows) => {
    const ids = rows.map((row) => row.dataset.row).filter(Boolean);
    if (!ids.length) return;
    const query = new URLSearchParams(ids.map((id) => ["job", id]));
    const answer = await ask(`${address}?${query}`);
    for (const [id, line] of Object.entries(answer.results)) {
      lines.set(id, line);
      draw(body.querySelector(`[data-row="${CSS.escape(id)}"]`));
    }
  };
  const rows = () => [...body.querySelectorAll("[data-row]")];
  await load(rows()).catch(() => {}); // a row without its drawing still says its value
  setInterval(() => {
    if (!document.hidden) load(rows().filter((row) => row.dataset.status === "running")).catch(() => {});
  }, AGAIN);
  return load;
}

export function growSparkline(row, job) {
  const [key, value] = Object.entries(job.headline || {})[0] || [];
  if (key === undefined) return;
  const line = lines.get(job.id) || { key, values: [], step: null };
  if (line.key !== key) return;
  const step = job.progress?.step ?? null;
  if (line.values.at(-1) === value || (step !== null && step === line.step)) return;
  line.values.push(value);
  line.step = step;
  // every other one goes, never the ends: the shape stays
  if (line.values.length > MOST) line.values = line.values.filter((_value, at, all) => at % 2 === 0 || at === all.length - 1);
  lines.set(job.id, line);
  draw(row);
}

function draw(row) {
  const place = row?.querySelector("[data-spark]");
  const line = lines.get(row?.dataset.row);
  if (!place || !line) return;
  const finite = line.values.filter((value) => typeof value === "number");
  if (finite.length < 2) {
    place.replaceChildren();
    return;
  }
  const low = Math.min(...finite);
  const high = Math.max(...finite);
  const x = (at) => (2 + (at / (line.values.length - 1)) * (WIDTH - 4)).toFixed(1);
  const y = (value) => (high === low ? HEIGHT / 2 : HEIGHT - 3 - ((value - low) / (high - low)) * (HEIGHT - 6)).toFixed(1);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("role", "img");
  const words = said(gettext("{name}: from {first} to {last}, lowest {low}, highest {high}"), {
    name: line.key, first: number(finite[0]), last: number(finite.at(-1)), low: number(low), high: number(high),
  });
  svg.setAttribute("aria-label", words);
  const title = svg.appendChild(document.createElementNS(SVG, "title"));
  title.textContent = words;
  let run = [];
  const flush = () => {
    if (run.length > 1) svg.appendChild(document.createElementNS(SVG, "polyline")).setAttribute("points", run.join(" "));
    run = [];
  };
  line.values.forEach((value, at) => {
    if (typeof value === "number") {
      run.push(`${x(at)},${y(value)}`);
      return;
    }
    flush(); // NaN and infinity are a gap with a mark in it, never a line drawn across
    const dot = svg.appendChild(document.createElementNS(SVG, "circle"));
    for (const [name, to] of [["cx", x(at)], ["cy", HEIGHT - 3], ["r", 2]]) dot.setAttribute(name, to);
  });
  flush();
  place.replaceChildren(svg);
}
