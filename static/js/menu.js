// What can be done with one chart: on the overview or not, hidden, its own scale, its numbers, its picture.
import { isHidden, isPinned, setHidden, setPinned } from "./pins.js";
import { plotly } from "./plotly.js";
import { toast } from "./toast.js";

export class Menu {
  constructor(figure) {
    const template = document.querySelector("template[data-chart-menu]");
    if (!template) return;
    this.figure = figure;
    const menu = document.importNode(template.content, true).querySelector("details");
    this.place = menu;
    for (const name of ["pin", "hide", "log", "table", "svg"]) {
      menu.querySelector(`[data-do="${name}"]`)?.addEventListener("click", () => {
        menu.open = false;
        menu.querySelector("summary").focus();
        this[name]();
      });
    }
    menu.querySelector("summary").setAttribute("aria-label", `${menu.querySelector("summary").title}: ${figure.key}`);
    const query = new URLSearchParams({ key: figure.key, attempt: "all", format: "csv" });
    menu.querySelector('[data-do="csv"]').href = `/api/v1/jobs/${figure.job}/series/?${query}`;
    menu.addEventListener("toggle", () => menu.open && this.paint());
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      menu.open = false;
      menu.querySelector("summary").focus();
      event.stopPropagation();
    });
    document.addEventListener("pointerdown", (event) => {
      if (menu.open && !menu.contains(event.target)) menu.open = false;
    });
    figure.card.querySelector("header").append(menu);
  }

  paint() {
    const { key, logY } = this.figure;
    this.pressed("pin", isPinned(key));
    this.pressed("hide", isHidden(key));
    this.pressed("log", logY);
    this.pressed("table", this.figure.table.isOpen);
  }

  pressed(name, on) {
    this.place.querySelector(`[data-do="${name}"]`)?.setAttribute("aria-pressed", String(on));
  }

  pin() {
    setPinned(this.figure.key, !isPinned(this.figure.key));
  }

  hide() {
    setHidden(this.figure.key, !isHidden(this.figure.key));
  }

  log() {
    this.figure.toggleLog();
  }

  table() {
    this.figure.table.toggle();
  }

  async svg() {
    try {
      const { plot, key } = this.figure;
      const url = await (await plotly()).toImage(plot, { format: "svg", width: plot.clientWidth, height: plot.clientHeight });
      const link = document.createElement("a");
      link.href = url;
      link.download = `${key.replaceAll(/[^\w.-]+/g, "-")}.svg`;
      link.click();
    } catch (error) {
      toast(error.message);
    }
  }
}
