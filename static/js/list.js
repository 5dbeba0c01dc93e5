// The list, live: changed rows are patched where they stand, nothing is reordered under the pointer; new ones wait behind a button.
import { ask, follow } from "./socket.js";
import { fill, paint } from "./row.js";

const body = () => document.querySelector("[data-job-list]");
const waiting = new Map(); // id -> job, not yet shown
let leaving = false; // a form was sent: its answer is on the way

export function start() {
  const name = body().dataset.topic;
  follow(name, null, take, () => poll(name));
  const button = document.querySelector("[data-fresh-button]");
  if (button) button.addEventListener("click", showFresh);
  document.addEventListener("submit", () => (leaving = true));
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
    row(data.id)?.classList.add("left");
    waiting.delete(data.id);
    offerFresh();
  }
}

function change(job) {
  const shown = row(job.id);
  if (shown) {
    if (Number(shown.dataset.version) > job.version) return;
    shown.dataset.version = job.version;
    shown.className = job.status;
    paint(shown, job);
  } else if (newest() < job.created_at) {
    waiting.set(job.id, job);
    // an empty list has no order to disturb; but its reload would cancel the way to a job that was submitted just now
    if (!body().querySelector("[data-row]") && !leaving) showFresh();
    offerFresh();
  }
}

function whatLeft(jobs) {
  // after a gap: the snapshot is the list's first page, so what is newer than its last row and not in it is gone
  const ids = new Set(jobs.map((job) => job.id));
  const oldest = jobs.reduce((least, job) => (job.created_at < least ? job.created_at : least), jobs[0]?.created_at || "");
  for (const shown of body().querySelectorAll("[data-row]")) {
    const time = shown.querySelector("time[data-time]")?.dataset.time;
    if (!ids.has(shown.dataset.row) && body().tagName === "TBODY" && time && time > oldest) shown.classList.add("left");
  }
}

function newest() {
  const times = [...body().querySelectorAll("[data-row] time[data-time]")].map((time) => time.dataset.time);
  const onFirstPage = !new URLSearchParams(location.search).get("page");
  return onFirstPage ? times.reduce((most, time) => (time > most ? time : most), "") : "9";
}

function offerFresh() {
  const bar = document.querySelector("[data-fresh]");
  if (!bar) return;
  bar.hidden = waiting.size === 0;
  bar.querySelector("button").textContent = `${waiting.size} new · show`;
}

function showFresh() {
  if (body().closest("table[hidden]")) {
    location.reload(); // the page was empty: its frame of a list comes from the server
    return;
  }
  const template = document.getElementById("row-template");
  for (const job of [...waiting.values()].sort((a, b) => (a.created_at < b.created_at ? -1 : 1))) {
    const fresh = template.content.querySelector("tr").cloneNode(true);
    fresh.dataset.version = job.version;
    body().prepend(fill(fresh, job));
  }
  waiting.clear();
  offerFresh();
}

async function poll(name) {
  const query = name.slice(name.indexOf("?") + 1);
  const answer = await ask(`/api/v1/jobs/?${query}`);
  answer.results.forEach(change);
}
