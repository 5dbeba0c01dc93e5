// The width of each column of the list: drawn by its edge with the mouse or the arrow keys, kept in this browser, given back by a
// double click or Home.
import { gettext, said } from "./words.js";

const KEPT = "list-widths";
const LEAST = 56; // px
const STEP = 16;
const TAKES_THE_REST = ["how", "name"]; // the first of them that nobody has sized
const ROOMY = matchMedia("(min-width: 941px)"); // below, a row is no line of a table

let table = null;
let kept = {};
let natural = new Map(); // th -> px, as the browser lays it out by itself

export function startWidths() {
  table = document.querySelector("table.jobs");
  if (!table?.tHead) return;
  kept = remembered();
  for (const head of heads()) if (head.dataset.column) head.append(grip(head));
  ROOMY.addEventListener("change", layOut);
  window.addEventListener("resize", () => Object.keys(kept).length && layOut());
  layOut();
}

function heads() {
  return [...table.tHead.rows[0].cells];
}

function remembered() {
  try {
    const found = Object.entries(JSON.parse(localStorage.getItem(KEPT)) || {});
    return Object.fromEntries(found.filter(([, width]) => Number.isFinite(width) && width >= LEAST));
  } catch {
    return {}; // not of our writing
  }
}

function layOut() {
  table.classList.remove("sized");
  table.style.width = "";
  for (const head of heads()) head.style.width = "";
  natural = new Map(heads().map((head) => [head, Math.ceil(head.getBoundingClientRect().width) + 1]));
  apply();
}

function apply() {
  const shown = heads().some((head) => kept[head.dataset.column]);
  const on = shown && ROOMY.matches;
  table.classList.toggle("sized", on);
  const card = table.closest(".jobs-card");
  card.classList.remove("drawn");
  if (on) {
    const rest = TAKES_THE_REST.map((name) => heads().find((head) => head.dataset.column === name)).find((head) => head && !kept[head.dataset.column]);
    let all = 0;
    for (const head of heads()) {
      const width = kept[head.dataset.column] || natural.get(head);
      head.style.width = `${width}px`;
      all += head === rest ? Math.min(width, 190) : width;
    }
    const fits = rest && all <= card.clientWidth;
    if (fits) rest.style.width = "";
    table.style.width = fits ? "100%" : `${all}px`;
    card.classList.toggle("drawn", all > card.clientWidth);
  } else for (const head of heads()) head.style.width = "";
  for (const edge of table.tHead.querySelectorAll(".grip")) tell(edge);
}

function keep(column, width) {
  if (width === null) delete kept[column];
  else kept[column] = Math.max(LEAST, Math.round(width));
  if (Object.keys(kept).length) localStorage.setItem(KEPT, JSON.stringify(kept));
  else localStorage.removeItem(KEPT);
  width === null ? layOut() : apply();
}

function tell(edge) {
  const width = edge.parentElement.offsetWidth;
  edge.setAttribute("aria-valuenow", width);
  edge.setAttribute("aria-valuetext", said(gettext("{width} pixels"), { width }));
}

function grip(head) {
  const column = head.dataset.column;
  const edge = document.createElement("span");
  edge.className = "grip";
  edge.tabIndex = 0;
  edge.title = gettext("Draw to make the column wider or narrower; a double click or Home gives it its own width back");
  const marks = { role: "separator", "aria-orientation": "vertical", "aria-valuemin": LEAST, "aria-label": said(gettext("Width of {column}"), { column: head.textContent.trim() }) };
  for (const [name, value] of Object.entries(marks)) edge.setAttribute(name, value);
  edge.addEventListener("pointerdown", (event) => draw(event, edge, head));
  edge.addEventListener("dblclick", () => keep(column, null));
  edge.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (!by && event.key !== "Home") return;
    event.preventDefault();
    event.stopPropagation();
    keep(column, by ? head.offsetWidth + by : null);
  });
  return edge;
}

function draw(event, edge, head) {
  if (event.button !== 0) return;
  const from = event.clientX;
  const width = head.offsetWidth;
  edge.setPointerCapture(event.pointerId);
  const move = (moved) => {
    if (Math.abs(moved.clientX - from) > 2) keep(head.dataset.column, width + moved.clientX - from);
  };
  const end = () => {
    edge.removeEventListener("pointermove", move);
    edge.removeEventListener("pointerup", end);
    edge.removeEventListener("pointercancel", end);
  };
  edge.addEventListener("pointermove", move);
  edge.addEventListener("pointerup", end);
  edge.addEventListener("pointercancel", end);
}
