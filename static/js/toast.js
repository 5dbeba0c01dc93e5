// Short words about what just happened: seen for some seconds, said once by the page's polite live region, and kept behind the bell.
import { remember } from "./notices.js";
import { gettext, uncovered } from "./words.js";

const SHOWN = 6000;

export function announce(words) {
  const region = document.querySelector("[data-announce]");
  if (region) region.textContent = uncovered(words);
}

export function toast(words, { href = "" } = {}) {
  announce(words);
  remember(words, href);
  const place = document.querySelector(".toasts") || document.body.appendChild(container());
  const note = document.createElement("div");
  note.className = "toast";
  const text = Object.assign(document.createElement("bdi"), { textContent: uncovered(words) });
  const close = Object.assign(document.createElement("button"), { type: "button", className: "toast-close", textContent: "×" });
  close.setAttribute("aria-label", gettext("Close this notice"));
  close.addEventListener("click", () => note.remove());
  note.append(text, close);
  place.append(note);
  new Stay(note);
}

class Stay {
  // who still reads it keeps it: under the pointer, or with the focus inside
  constructor(note) {
    this.note = note;
    this.held = new Set();
    for (const [why, from, to] of [["pointer", "pointerenter", "pointerleave"], ["focus", "focusin", "focusout"]]) {
      note.addEventListener(from, () => this.hold(why));
      note.addEventListener(to, () => this.release(why));
    }
    this.start(SHOWN);
  }

  start(time) {
    this.timer = setTimeout(() => this.note.remove(), time);
  }

  hold(why) {
    this.held.add(why);
    clearTimeout(this.timer);
  }

  release(why) {
    this.held.delete(why);
    if (!this.held.size) this.start(SHOWN / 2);
  }
}

function container() {
  const place = document.createElement("div");
  place.className = "toasts"; // no live region: that of the page says it
  place.setAttribute("role", "group");
  place.setAttribute("aria-label", gettext("Notices"));
  return place;
}

export function startVanishing() {
  // an offer that the server takes for some seconds only, such as an undo
  for (const offer of document.querySelectorAll("[data-vanishes]")) {
    setTimeout(() => offer.remove(), Number(offer.dataset.vanishes) * 1000);
  }
}
