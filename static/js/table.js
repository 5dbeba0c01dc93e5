// The points of a chart as a table, for who cannot see the drawing or wants the numbers.
import { inOrder } from "./drawing.js";

const ROWS = 300;
const PACE = 2000; // ms between two rewritings under a reader's eyes

export class PointsTable {
  constructor(figure) {
    this.figure = figure;
    this.at = 0;
    this.place = null;
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.className = "mark";
    this.button.textContent = "table";
    this.button.title = `The points of ${figure.key} as a table`;
    this.button.setAttribute("aria-expanded", "false");
    this.button.addEventListener("click", () => this.toggle());
    figure.card.querySelector("header")?.append(this.button);
  }

  toggle() {
    const open = !this.place;
    this.button.setAttribute("aria-expanded", String(open));
    if (open) {
      this.place = document.createElement("div");
      this.place.className = "table-scroll points";
      this.place.tabIndex = 0;
      this.place.setAttribute("role", "region");
      this.place.setAttribute("aria-label", `Points of ${this.figure.key}`);
      this.figure.card.append(this.place);
      this.write();
    } else {
      this.place.remove();
      this.place = null;
    }
  }

  refresh() {
    if (this.place && Date.now() - this.at > PACE) this.write();
  }

  write() {
    this.at = Date.now();
    const lines = inOrder(this.figure.series);
    const rows = new Map(); // step -> a value a line
    lines.forEach((one, column) => one.step.forEach((step, index) => {
      if (!rows.has(step)) rows.set(step, []);
      rows.get(step)[column] = one.value[index];
    }));
    const steps = [...rows.keys()].sort((a, b) => b - a).slice(0, ROWS);
    const table = document.createElement("table");
    table.className = "plain";
    const caption = table.createCaption();
    caption.className = "small muted";
    caption.append(rows.size > steps.length ? `The newest ${steps.length} of ${rows.size} drawn; all: ` : "All points: ", this.csv());
    const names = lines.length > 1 ? lines.map((one) => `rank ${one.rank}, attempt ${one.attempt}`) : [this.figure.key];
    const head = table.createTHead().insertRow();
    for (const name of ["step", ...names]) head.append(cell("th", name));
    const body = table.createTBody();
    for (const step of steps) {
      const row = body.insertRow();
      row.append(cell("th", step), ...lines.map((_line, column) => cell("td", rows.get(step)[column])));
    }
    this.place.replaceChildren(table);
  }

  csv() {
    const link = document.createElement("a");
    const query = new URLSearchParams({ key: this.figure.key, attempt: "all", format: "csv" });
    link.className = "link";
    link.href = `/api/v1/jobs/${this.figure.job}/series/?${query}`;
    link.textContent = "CSV";
    return link;
  }
}

function cell(kind, value) {
  const element = document.createElement(kind);
  element.className = "num";
  if (kind === "th") element.scope = typeof value === "string" ? "col" : "row";
  element.textContent = value === undefined ? "" : String(value);
  return element;
}
