// What pages said in passing, to be read again: the last of them, kept in this browser for whoever is signed in. The bell opens the list.
import { sheet } from "./sheet.js";
import { gettext, ngettext, said } from "./words.js";

const MOST = 50;
const SAME = 10000; // ms: several tabs of one job say the same at once

export function person() {
  return document.querySelector("[data-person]")?.dataset.person ?? "";
}

export function kept(name, otherwise) {
  // what this browser keeps for whoever is signed in; what somebody else wrote there is nothing
  try {
    return JSON.parse(localStorage.getItem(`${name}:${person()}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function keep(name, value) {
  if (!person()) return;
  try {
    localStorage.setItem(`${name}:${person()}`, JSON.stringify(value));
  } catch {
    // the browser keeps nothing, or is full: the page goes on without
  }
}

function all() {
  const found = kept("notices", []);
  return Array.isArray(found) ? found.filter((one) => typeof one?.words === "string") : [];
}

export function remember(words, href = "") {
  const notices = all();
  const now = Date.now();
  if (notices.some((one) => one.words === words && now - one.at < SAME)) return;
  keep("notices", [{ words, href, at: now }, ...notices].slice(0, MOST));
  paint();
}

function paint() {
  const seen = Number(kept("notices-seen", 0));
  const fresh = all().filter((one) => one.at > seen).length;
  for (const bell of document.querySelectorAll("[data-bell]")) {
    const count = bell.querySelector("[data-bell-count]");
    count.textContent = fresh;
    count.hidden = !fresh;
    const words = said(ngettext("Notices: {count} new", "Notices: {count} new", fresh), { count: fresh });
    bell.setAttribute("aria-label", fresh ? words : gettext("Notices"));
  }
}

function row({ words, href, at }) {
  const item = document.createElement("li");
  const moment = new Date(at);
  const time = Object.assign(document.createElement("time"), { className: "small muted", dateTime: moment.toISOString(), textContent: moment.toLocaleString([], { hour12: false }) });
  const isOurs = /^\/[\w/-]*$/.test(href ?? "");
  const text = Object.assign(document.createElement(isOurs ? "a" : "bdi"), { textContent: words });
  if (isOurs) Object.assign(text, { href, className: "link" });
  item.append(text, " ", time);
  return item;
}

export function startBell(more) {
  // more() makes what else stands in the list
  document.addEventListener("click", (event) => {
    const bell = event.target.closest("[data-bell]");
    if (!bell) return;
    const list = Object.assign(document.createElement("ol"), { className: "notices" });
    const notices = all();
    list.append(...notices.map(row));
    const none = Object.assign(document.createElement("p"), { className: "muted", textContent: gettext("Nothing was said yet. What a page says in passing stands here, in this browser alone.") });
    const clear = Object.assign(document.createElement("button"), { type: "button", className: "btn small", textContent: gettext("Clear the list"), hidden: !notices.length });
    none.hidden = Boolean(notices.length);
    clear.addEventListener("click", () => {
      keep("notices", []);
      list.replaceChildren();
      clear.hidden = true;
      none.hidden = false;
      dialog.querySelector(".btn:last-of-type").focus();
    });
    const dialog = sheet(gettext("Notices"), [...more(), none, list, clear]);
    keep("notices-seen", Date.now());
    paint();
  });
  addEventListener("storage", (event) => event.key?.startsWith("notices") && paint()); // another tab
  paint();
}
