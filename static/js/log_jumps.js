// What stands out among the lines that are loaded: tracebacks, errors, warnings, checkpoints, attempts, lines that were dropped or cut. A list to jump from, and one word when one arrives.
import { levelOf, whole } from "./lines.js";
import { plain } from "./ansi.js";
import { gettext, said } from "./words.js";

const LISTED = 200;
const PAUSE = 400;
const BAD = ["traceback", "memory", "error"];

export class LogJumps {
  constructor(view, { form, status }) {
    this.view = view;
    this.status = status;
    this.menu = form.querySelector("[data-log-jumps]");
    this.list = this.menu.querySelector("[data-log-jump-list]");
    this.count = this.menu.querySelector("[data-log-jump-count]");
    this.told = false;
    view.box.addEventListener("log:window", () => this.soon());
    view.box.addEventListener("log:arrived", (event) => this.hear(event.detail));
    this.menu.addEventListener("toggle", () => this.menu.open && this.draw());
    this.menu.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("click", (event) => {
      if (!this.menu.contains(event.target)) this.menu.open = false;
    });
    this.soon();
  }

  soon() {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      const found = this.found().length;
      this.count.textContent = found ? whole(found) : "";
      if (this.menu.open && !this.list.contains(document.activeElement)) this.draw();
    }, PAUSE);
  }

  found() {
    return this.view.box.querySelectorAll(".line[data-level], .boundary");
  }

  draw() {
    const found = [...this.found()].slice(-LISTED);
    const items = found.map((element) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = element.matches(".boundary") ? element.textContent : this.words(element);
      button.dataset.level = element.dataset.level || "attempt";
      button.addEventListener("click", () => {
        this.menu.open = false;
        const line = element.matches(".boundary") ? element.nextElementSibling : element;
        if (!line?.isConnected) return;
        this.view.box.querySelector(".line.at")?.classList.remove("at");
        line.classList.add("at");
        this.view.center(line);
        this.view.box.focus({ preventScroll: true });
      });
      const item = document.createElement("li");
      item.append(button);
      return item;
    });
    if (!items.length) items.push(Object.assign(document.createElement("li"), { className: "muted", textContent: gettext("Nothing stands out in the lines that are loaded.") }));
    this.list.replaceChildren(...items);
  }

  words(line) {
    const values = { number: line.dataset.seq, text: line.querySelector(".x").textContent.trim().slice(0, 90) };
    return said(
      {
        traceback: gettext("{number} traceback: {text}"), memory: gettext("{number} out of memory: {text}"),
        error: gettext("{number} error: {text}"), warning: gettext("{number} warning: {text}"),
        checkpoint: gettext("{number} checkpoint: {text}"), dropped: gettext("{number} {text}"),
        cut: gettext("{number} a line that was cut at 64 KiB: {text}"),
      }[line.dataset.level],
      values,
    );
  }

  key(event) {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Escape") {
      this.menu.open = false;
      this.menu.querySelector("summary").focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const buttons = [...this.list.querySelectorAll("button")];
      if (!buttons.length) return;
      event.preventDefault();
      const at = buttons.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
      buttons[Math.max(0, Math.min(buttons.length - 1, at))].focus();
    }
  }

  hear(lines) {
    // said once: a screen reader is not to be read every line of a crash
    if (this.told) return;
    const bad = lines.find((line) => BAD.includes(levelOf(line)));
    if (!bad) return;
    this.told = true;
    this.status.textContent = said(gettext("Error at line {number}: {text}"), { number: whole(bad.seq), text: plain(bad.text).slice(0, 120) });
  }
}
