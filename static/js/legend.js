// The names of a chart's lines under it, each with its colour and dash; a click hides or shows the line.
const SVG = "http://www.w3.org/2000/svg";
const STROKES = { solid: "", dash: "6 3", dot: "2 2", dashdot: "6 2 2 2" };

export class Legend {
  constructor(figure) {
    this.figure = figure;
    this.hidden = new Set();
    this.said = "";
    this.place = document.createElement("div");
    this.place.className = "legend";
    figure.card.querySelector(".plot").after(this.place);
  }

  show(lines) {
    // lines: [{name, label, colour, dash}]
    const says = JSON.stringify(lines) + [...this.hidden];
    if (says === this.said) return; // rewritten only where it changed: somebody may be about to click
    this.said = says;
    this.place.replaceChildren(...(lines.length > 1 ? lines.map((line) => this.entry(line)) : []));
  }

  entry({ name, label, colour, dash }) {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(!this.hidden.has(name)));
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("width", "18");
    svg.setAttribute("height", "8");
    svg.setAttribute("aria-hidden", "true");
    const stroke = document.createElementNS(SVG, "line");
    const drawn = { x1: 0, x2: 18, y1: 4, y2: 4, stroke: colour, "stroke-width": 2, "stroke-dasharray": STROKES[dash] };
    for (const [attribute, value] of Object.entries(drawn)) stroke.setAttribute(attribute, value);
    svg.append(stroke);
    button.append(svg, label);
    button.addEventListener("click", () => {
      if (!this.hidden.delete(name)) this.hidden.add(name);
      button.setAttribute("aria-pressed", String(!this.hidden.has(name)));
      this.figure.redraw();
    });
    return button;
  }
}
