// Single keys: never in a field, with a modifier, or while an input method composes; they can be switched off in the list that ? shows.
import { gettext } from "./words.js";
import { sheet } from "./sheet.js";
import { toast } from "./toast.js";

const OFF = "keys-off";
const PATIENCE = 1200; // ms between the two keys of a pair such as g j
const HELP = () => [
  ["/", gettext("search")], ["n", gettext("new job")], ["j k", gettext("move in the list")], ["Enter", gettext("open")],
  ["x", gettext("select the row; with Shift and the mouse a range")], ["s", gettext("stop what is selected, or this job")],
  ["c", gettext("clone the job")], [".", gettext("what can be done with this row")], ["Esc", gettext("select nothing, close")],
  ["g j", gettext("to the list of jobs")], ["g h", gettext("to the home page")], ["Ctrl K", gettext("go anywhere by name")],
  ["o l w e", gettext("a job's overview, logs, workers, events")], ["Ctrl Enter", gettext("submit the form")],
  ["n N", gettext("the next and the previous hit in a log")], ["f", gettext("follow a log, or stop")],
  ["Home End", gettext("to the first and to the newest line of a log")], ["?", gettext("this list")],
];
const TABS = { o: 'a[href$="{job}/"]', l: 'a[href$="/logs/"]', w: 'a[href$="/workers/"]', e: 'a[href$="/events/"]' };
const PLACES = { j: "/jobs/", h: "/" };
let before = { key: "", at: 0 };

export function typing(event) {
  const field = event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
  return Boolean(field) || event.isComposing || event.keyCode === 229 || event.ctrlKey || event.metaKey || event.altKey;
}

export function currentRow() {
  return document.activeElement?.closest("[data-row]") || null;
}

function step(by) {
  const links = [...document.querySelectorAll("[data-row] a.title")];
  if (!links.length) return false;
  const row = currentRow();
  const at = row ? links.findIndex((link) => row.contains(link)) : -1;
  links[Math.min(links.length - 1, Math.max(0, at + by))].focus();
  return true;
}

function open(selector) {
  const link = document.querySelector(selector);
  link?.click();
  return Boolean(link);
}

function tab(key) {
  const tabs = document.querySelector("[data-job] .tabs");
  if (!tabs) return false;
  return open(`[data-job] .tabs ${TABS[key].replace("{job}", document.querySelector("[data-job]").dataset.job)}`);
}

function loaded(module, use) {
  module.then(use, () => toast(gettext("The portal does not answer: try again in a moment.")));
}

function inList(key) {
  // the list's own keys: its scripts are loaded only where there is a list
  const row = currentRow();
  if (key === "c" && row) {
    location.href = `/jobs/new/?${new URLSearchParams({ from: row.dataset.row })}`;
    return true;
  }
  if (!document.querySelector("tbody[data-job-list]")) return false;
  loaded(import("./bulk.js"), ({ act, clearSelection, selected, toggle }) => {
    if (key === "x") toggle(row);
    else if (key === "s") act("stop", selected().length ? selected() : [row].filter(Boolean), { from: row?.querySelector("a.title") });
    else if (key === "Escape" && !clearSelection()) document.querySelector("[data-bulk-results]")?.setAttribute("hidden", "");
  });
  if (key === "." && row) loaded(import("./row_menu.js"), (menu) => menu.openMenu(row));
  return true;
}

function obey(key) {
  if (before.key === "g" && Date.now() - before.at < PATIENCE && key in PLACES) {
    location.href = PLACES[key];
    return true;
  }
  before = { key, at: Date.now() };
  if (key === "j") return step(1);
  if (key === "k") return step(-1);
  if (key === "n") return open('a[href^="/jobs/new/"]:not([href*="from="])');
  if (key === "x" || key === "." || key === "Escape") return inList(key);
  if (key === "s") return open("[data-job] .actions form[data-asks-reason] button") || inList(key);
  if (key === "c") return open('[data-job] .actions a[href*="from="]') || inList(key);
  if (key in TABS) return tab(key);
  if (key !== "/") return false;
  const search = document.querySelector("[data-search], [data-chart-search]");
  search?.focus();
  return Boolean(search);
}

export function startKeys() {
  // at hand before it is asked for, so that what one types at once is not lost
  setTimeout(() => import("./palette.js").catch(() => {}), 1000); // while the portal is away: who asks then is told
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      loaded(import("./palette.js"), (palette) => palette.openPalette());
      return;
    }
    if (event.key === "Escape" && event.target.matches("[data-search]") && !event.target.value) event.target.blur();
    if (typing(event) || document.querySelector("dialog[open]")) return;
    if (event.key === "?") help();
    else if (localStorage.getItem(OFF) || !obey(event.key)) return;
    if (event.key !== "Escape") event.preventDefault();
  });
}

function help() {
  const list = document.createElement("dl");
  list.className = "facts";
  for (const [keys, does] of HELP()) {
    const term = document.createElement("dt");
    for (const key of keys.split(" ")) term.append(Object.assign(document.createElement("kbd"), { textContent: key }), " ");
    list.append(term, Object.assign(document.createElement("dd"), { textContent: does }));
  }
  const off = Object.assign(document.createElement("input"), { type: "checkbox", checked: !localStorage.getItem(OFF) });
  off.addEventListener("change", () => (off.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1")));
  const choice = Object.assign(document.createElement("label"), { className: "choice" });
  choice.append(off, " ", gettext("single keys work"));
  sheet(gettext("Keys"), [list, choice]);
}
