// The list, live: changed rows are patched where they stand, nothing is reordered under the pointer; what is new waits behind a button.
import { gettext, ngettext, said } from "./words.js";
import { ask, follow } from "./socket.js";
import { bound, fill, paint, tick } from "./row.js";
import { startBulk } from "./bulk.js";
import { counted, recount, startCounts } from "./counts.js";
import { startColumns } from "./columns.js";
import { startWidths } from "./widths.js";
import { startFilters } from "./filters.js";
import { growSparkline, loadSparklines } from "./sparkline.js";
import { toast } from "./toast.js";

const TICK = 1000; // ms: what runs is told with its seconds
const body = () => document.querySelector("[data-job-list]");
const waiting = new Map(); // id -> job, not yet shown
let leaving = false; // a form was sent: its answer is on the way
let drawNew = null;

function start() {
  const name = body().dataset.topic;
  startFilters();
  startColumns();
  startWidths();
  startBulk(body());
  loadSparklines(body()).then((load) => (drawNew = load));
  startCounts(name, rows());
  follow(name, null, take, () => poll(name));
  document.querySelector("[data-fresh-button]")?.addEventListener("click", refreshOrder);
  document.addEventListener("submit", (event) => (leaving = !event.defaultPrevented));
  setInterval(() => rows().forEach(tick), TICK);
}

function rows() {
  return [...body().querySelectorAll("[data-row]")];
}

function row(id) {
  return body().querySelector(`[data-row="${CSS.escape(id)}"]`);
}

function take(type, data) {
  if (type === "snapshot") {
    data.jobs.forEach(change);
    whatLeft(data.jobs);
  } else if (type === "change") change(data.job);
  else if (type === "gone") {
    leave(row(data.id));
    recount(data.id);
    waiting.delete(data.id);
    offerFresh();
  }
}

function change(job) {
  counted(job);
  const shown = row(job.id);
  if (shown) {
    if (Number(shown.dataset.version) > job.version) return;
    shown.dataset.version = job.version;
    shown.className = job.status;
    leave(shown, false);
    paint(shown, job);
    growSparkline(shown, job);
  } else if (newest() < job.created_at) {
    waiting.set(job.id, job);
    // an empty list has no order to disturb; but its reload would cancel the way to a job that was submitted just now
    if (!rows().length && !leaving) refreshOrder();
    offerFresh();
  }
}

function leave(shown, left = true) {
  // it stays where it stands, marked, until the order is refreshed: nothing moves under the pointer
  if (!shown) return;
  shown.classList.toggle("left", left);
  const mark = bound(shown, "left");
  if (mark) mark.hidden = !left;
}

function whatLeft(jobs) {
  // after a gap: the snapshot is the list's first page, so what is newer than its last row and not in it is gone
  const ids = new Set(jobs.map((job) => job.id));
  const oldest = jobs.reduce((least, job) => (job.created_at < least ? job.created_at : least), jobs[0]?.created_at || "");
  for (const shown of rows()) {
    const time = shown.querySelector("time[data-time]")?.dataset.time;
    if (!ids.has(shown.dataset.row) && body().tagName === "TBODY" && time && time > oldest) leave(shown);
  }
}

function newest() {
  const times = [...body().querySelectorAll("[data-row] time[data-time]")].map((time) => time.dataset.time);
  const onFirstPage = !new URLSearchParams(location.search).get("page");
  // without the column of ages the page itself says since when it stands
  const rendered = document.querySelector(".foot time[data-time]")?.dataset.time || "";
  if (!onFirstPage) return "9";
  return times.length ? times.reduce((most, time) => (time > most ? time : most), "") : rows().length ? new Date(rendered).toISOString() : "";
}

function offerFresh() {
  const bar = document.querySelector("[data-fresh]");
  if (!bar) return;
  bar.hidden = waiting.size === 0;
  const words = ngettext("{count} new · refresh order", "{count} new · refresh order", waiting.size);
  bar.querySelector("button").textContent = said(words, { count: waiting.size });
}

async function refreshOrder() {
  const list = body();
  if (list.closest("table[hidden]")) {
    location.reload(); // the page was empty: its frame of a list comes from the server
    return;
  }
  if (list.tagName !== "TBODY") return;
  const known = new Map(waiting);
  let page = null;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin", headers: { Accept: "text/html" } });
    if (answer.ok) page = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    page = null; // the portal is away: the new rows are shown all the same, on top
  }
  const fresh = page?.querySelector("tbody[data-job-list]");
  if (fresh) order(list, fresh, page);
  else {
    onTop(list, known);
    toast(gettext("The order could not be asked for; new jobs stand on top."));
  }
  for (const id of known.keys()) waiting.delete(id);
  offerFresh();
  drawNew?.([...known.keys()].map(row).filter(Boolean)).catch(() => {});
}

function order(list, fresh, page) {
  const focused = document.activeElement;
  const top = focused?.closest?.("[data-row]")?.getBoundingClientRect().top;
  const wanted = [...fresh.querySelectorAll("[data-row]")];
  const ids = new Set(wanted.map((one) => one.dataset.row));
  for (const shown of rows()) if (!ids.has(shown.dataset.row)) shown.remove();
  for (const one of wanted) {
    const shown = row(one.dataset.row);
    if (!shown) one.classList.add("fresh-row");
    list.append(shown || document.importNode(one, true)); // rows that stay are moved, with their choice and drawing
  }
  for (const part of page.querySelectorAll("[data-refresh]")) {
    document.querySelector(`[data-refresh="${part.dataset.refresh}"]`)?.replaceChildren(...part.childNodes);
  }
  if (focused?.isConnected && document.activeElement !== focused) {
    focused.focus({ preventScroll: true });
    if (top !== undefined) scrollBy(0, focused.closest("[data-row]").getBoundingClientRect().top - top);
  }
  document.dispatchEvent(new CustomEvent("rows"));
}

function onTop(list, jobs) {
  const template = document.getElementById("row-template");
  for (const job of [...jobs.values()].sort((a, b) => (a.created_at < b.created_at ? -1 : 1))) {
    const made = template.content.querySelector("tr").cloneNode(true);
    made.dataset.version = job.version;
    list.prepend(fill(made, job));
  }
}

async function poll(name) {
  const query = name.slice(name.indexOf("?") + 1);
  const answer = await ask(`/api/v1/jobs/?${query}`);
  answer.results.forEach(change);
}

start();
