// The names of a chart's lines under it, each with its colour and dash: a click hides or shows one, a double click shows it alone.
import { change, toggled, view } from "./view_state.js";
import { gettext, said } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const STROKES = { solid: "", dash: "6 3", dot: "2 2", dashdot: "6 2 2 2" };
const MANY = 8; // lines, from where on they can be searched, and shown or hidden together

export class Legend {
  constructor(figure) {
    this.said = "";
    this.place = document.createElement("div");
    this.place.className = "legend";
    figure.plot.parentElement.after(this.place);
  }

  show(lines) {
    // lines: [{id, label, colour, dash}]
    const says = JSON.stringify(lines) + [...view.hide];
    if (says === this.said) return; // rewritten only where it changed: somebody may be about to click
    this.said = says;
    const many = lines.length > MANY ? [this.search(), this.every(gettext("all"), lines, false), this.every(gettext("none"), lines, true)] : [];
    const focused = this.place.contains(document.activeElement) ? document.activeElement.dataset.line : null;
    const typed = this.place.querySelector("input")?.value ?? "";
    this.place.replaceChildren(...many, ...(lines.length > 1 ? lines.map((line) => this.entry(line, lines)) : []));
    const input = this.place.querySelector("input");
    if (input && typed) {
      input.value = typed;
      this.find(typed);
    }
    if (focused) this.place.querySelector(`[data-line="${CSS.escape(focused)}"]`)?.focus();
  }

  search() {
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = gettext("Find a line");
    input.setAttribute("aria-label", input.placeholder);
    input.addEventListener("input", () => this.find(input.value));
    return input;
  }

  find(text) {
    for (const button of this.place.querySelectorAll("[data-line]")) button.hidden = !button.textContent.toLowerCase().includes(text.toLowerCase());
  }

  every(words, lines, hidden) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "every";
    button.textContent = words;
    button.addEventListener("click", () => {
      let hide = view.hide;
      for (const { id } of lines) hide = toggled(hide, id, hidden);
      change({ hide });
    });
    return button;
  }

  entry({ id, label, colour, dash }, lines) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.line = id;
    button.title = said(gettext("{line}: click to hide or show it, double click to see it alone"), { line: label });
    button.setAttribute("aria-pressed", String(!view.hide.has(id)));
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("width", "18");
    svg.setAttribute("height", "8");
    svg.setAttribute("aria-hidden", "true");
    const stroke = document.createElementNS(SVG, "line");
    const drawn = { x1: 0, x2: 18, y1: 4, y2: 4, stroke: colour, "stroke-width": 2, "stroke-dasharray": STROKES[dash] };
    for (const [attribute, value] of Object.entries(drawn)) stroke.setAttribute(attribute, value);
    svg.append(stroke);
    button.append(svg, label);
    button.addEventListener("click", (event) => {
      if (event.detail < 2) change({ hide: toggled(view.hide, id) });
      else this.alone(id, lines);
    });
    return button;
  }

  alone(id, lines) {
    const others = lines.filter((line) => line.id !== id);
    const isAlone = others.every((line) => view.hide.has(line.id)) && !view.hide.has(id);
    let hide = toggled(view.hide, id, false);
    for (const line of others) hide = toggled(hide, line.id, !isAlone);
    change({ hide });
  }
}
