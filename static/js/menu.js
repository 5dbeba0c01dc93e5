// What can be done with one chart: on the overview or not, where it stands and how large, its own scale, its goal, its numbers,
// its picture.
import { directionByName, directionOf } from "./caption.js";
import { save } from "./picture.js";
import { goalOf, isHidden, isPinned, pinned, setBetter, setGoal, setHidden, setOrder, setPinned, setPins, setSize, sizeOf } from "./pins.js";
import { addressOfCsv } from "./table.js";
import { toast } from "./toast.js";
import { gettext, said } from "./words.js";

const SIZES = ["small", "wide", "full"];
const WAYS = ["min", "max"];

export class Menu {
  constructor(figure) {
    const template = document.querySelector("template[data-chart-menu]");
    if (!template) return;
    this.figure = figure;
    const menu = document.importNode(template.content, true).querySelector("details");
    this.place = menu;
    for (const button of menu.querySelectorAll("button[data-do]")) button.addEventListener("click", () => this.choose(button));
    menu.querySelector("summary").setAttribute("aria-label", `${menu.querySelector("summary").title}: ${figure.key}`);
    menu.querySelector('[data-do="csv"]').href = addressOfCsv(figure);
    menu.addEventListener("toggle", () => menu.open && this.paint());
    menu.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.matches("input") && !event.isComposing && event.keyCode !== 229) {
        event.preventDefault();
        this.choose(menu.querySelector('[data-do="goal"]'));
      }
      if (event.key !== "Escape" || !menu.open || event.isComposing) return;
      this.close();
      event.stopPropagation();
    });
    document.addEventListener("pointerdown", (event) => {
      if (menu.open && !menu.contains(event.target)) menu.open = false;
    });
    figure.card.querySelector("header").append(menu);
  }

  close() {
    this.place.open = false;
    this.place.querySelector("summary").focus();
  }

  choose(button) {
    const [name, value] = button.dataset.do.split(" ");
    if (this[name](value) === false) return; // something is to be mended first
    this.close();
  }

  at(name) {
    return this.place.querySelector(`[data-${name}]`);
  }

  paint() {
    const { key, logY } = this.figure;
    this.pressed("pin", isPinned(key));
    this.pressed("hide", isHidden(key));
    this.pressed("log", logY);
    this.pressed("table", this.figure.table.isOpen);
    for (const size of SIZES) this.pressed(`size ${size}`, sizeOf(key) === size);
    for (const way of WAYS) this.pressed(`better ${way}`, directionOf(key) === way);
    const goal = goalOf(key);
    this.at("goal-value").value = goal ? String(goal.value) : "";
    this.at("goal-label").value = goal?.label ?? "";
    this.at("goal-value").removeAttribute("aria-invalid");
    for (const [name, by] of [["earlier", -1], ["later", 1]]) this.place.querySelector(`[data-do="${name}"]`).disabled = !this.beside(by);
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

  size(size) {
    setSize(this.figure.key, size);
  }

  better(way) {
    const { key } = this.figure;
    const next = directionOf(key) === way ? null : way; // chosen again: as its name says
    const words = { min: gettext("Of {key} the lowest value is the best"), max: gettext("Of {key} the highest value is the best") }[next ?? directionByName(key)];
    setBetter(key, next === directionByName(key) ? null : next, said(words ?? gettext("Of {key} no value is the best"), { key }));
  }

  goal() {
    const typed = this.at("goal-value");
    const text = typed.value.normalize("NFKC").replace("−", "-").trim(); // as an input method types numbers
    const isGood = text === "" || Number.isFinite(Number(text));
    typed.toggleAttribute("aria-invalid", !isGood);
    if (!isGood) {
      toast(gettext("A goal is a number, such as 0.97 or 1e-3."));
      typed.focus();
      return false;
    }
    setGoal(this.figure.key, text === "" ? null : { value: Number(text), label: this.at("goal-label").value.trim() });
    return true;
  }

  // the card that stands before or behind this one, in its group or on the overview
  beside(by) {
    const { card } = this.figure;
    const cards = [...card.parentElement.children].filter((other) => other.matches("[data-chart]:not([hidden])"));
    return cards[cards.indexOf(card) + by] ?? null;
  }

  earlier() {
    this.move(-1);
  }

  later() {
    this.move(1);
  }

  move(by) {
    const { card, key } = this.figure;
    const other = this.beside(by)?.dataset.key;
    if (!other) return;
    const words = said(gettext("{key} is moved"), { key });
    if (!card.closest("[data-chart-group]")) {
      const cards = [...card.parentElement.children].filter((one) => one.matches("[data-chart]")).map((one) => one.dataset.key);
      // charts that stand on the overview by themselves are pinned by being put in order
      setPins(swapped(pinned().length ? pinned() : cards, key, other), words);
      return;
    }
    setOrder(swapped([...document.querySelectorAll("[data-chart]")].map((one) => one.dataset.key), key, other), words);
  }

  png() {
    save(this.figure, "png");
  }

  svg() {
    save(this.figure, "svg");
  }
}

function swapped(keys, one, other) {
  return keys.map((key) => (key === one ? other : key === other ? one : key));
}
