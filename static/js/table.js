// The points of a chart as a table, for who cannot see the drawing or wants the numbers.
import { gettext, ngettext, said } from "./words.js";

const ROWS = 300;
const PACE = 2000; // ms between two rewritings under a reader's eyes

export class PointsTable {
  constructor(figure) {
    this.figure = figure;
    this.at = 0;
    this.place = null;
  }

  get isOpen() {
    return this.place !== null;
  }

  toggle() {
    if (this.isOpen) {
      this.place.remove();
      this.place = null;
      return;
    }
    this.place = document.createElement("div");
    this.place.className = "table-scroll points";
    this.place.tabIndex = 0;
    this.place.setAttribute("role", "region");
    this.place.setAttribute("aria-label", said(gettext("Points of {key}"), { key: this.figure.key }));
    this.figure.card.append(this.place);
    this.write();
    this.place.focus();
  }

  refresh() {
    if (this.place && Date.now() - this.at > PACE) this.write();
  }

  write() {
    this.at = Date.now();
    const { lines } = this.figure;
    const rows = new Map(); // step -> a value a line
    lines.forEach(({ series }, column) => series.step.forEach((step, index) => {
      if (!rows.has(step)) rows.set(step, []);
      rows.get(step)[column] = series.value[index];
    }));
    const steps = [...rows.keys()].sort((a, b) => b - a).slice(0, ROWS);
    const table = document.createElement("table");
    table.className = "plain";
    const caption = table.createCaption();
    caption.className = "small muted";
    const words = rows.size > steps.length
      ? said(gettext("The newest {shown} of {drawn} drawn points."), { shown: steps.length, drawn: rows.size })
      : said(ngettext("{count} drawn point.", "{count} drawn points.", rows.size), { count: rows.size });
    caption.append(`${words} `, this.csv());
    const head = table.createTHead().insertRow();
    for (const name of [gettext("step"), ...lines.map(({ look }) => look.label)]) head.append(cell("th", name));
    const body = table.createTBody();
    for (const step of steps) {
      const row = body.insertRow();
      row.append(cell("th", step), ...lines.map((_line, column) => cell("td", rows.get(step)[column])));
    }
    this.place.replaceChildren(table);
  }

  csv() {
    const link = document.createElement("a");
    link.className = "link";
    link.href = addressOfCsv(this.figure);
    link.textContent = gettext("All points as CSV");
    return link;
  }
}

// Of the file with all points of a chart, of each attempt.
export function addressOfCsv({ job, key }) {
  return `/api/v1/jobs/${job}/series/?${new URLSearchParams({ key, attempt: "all", format: "csv" })}`;
}

function cell(kind, value) {
  const element = document.createElement(kind);
  element.className = "num";
  if (kind === "th") element.scope = typeof value === "string" ? "col" : "row";
  element.textContent = value === undefined ? "" : String(value);
  return element;
}
