// The head of a job's page, live: status, reason, progress, workers, the countdown of a stop, title and favicon.
import { ask, follow } from "./socket.js";
import { bound, number, paint, put } from "./row.js";
import { clock, setTime, span } from "./time.js";
import { toast } from "./toast.js";
import { gettext, said, uncovered } from "./words.js";

const MARKS = { queued: "◷", starting: "◌", running: "▶", succeeded: "✓", failed: "✕", cancelled: "■" };
const NEWS = {
  queued: gettext("{name} is queued"),
  starting: gettext("{name} is starting"),
  running: gettext("{name} is running"),
  succeeded: gettext("{name} succeeded"),
  failed: gettext("{name} failed"),
  cancelled: gettext("{name} was cancelled"),
};
const MOST_NUMBERS = 8; // of the card of facts
const FINAL = ["succeeded", "failed", "cancelled"];
let known = null;
let askedFor = 0;

function start() {
  const page = document.querySelector("[data-job]");
  const id = page.dataset.job;
  known = { status: page.dataset.status || "", version: Number(page.dataset.version) };
  follow(`job/${id}`, null, (type, data) => take(page, type, data), async () => {
    try {
      take(page, "snapshot", { job: await ask(`/api/v1/jobs/${id}/`) });
    } catch (error) {
      if (error.status !== 404) throw error;
      withdraw(page);
    }
  });
  setInterval(() => {
    countDown(page);
    stretch(page);
  }, 1000);
  document.addEventListener("latest", ({ detail }) => {
    const place = page.querySelector(`[data-headline="${CSS.escape(detail.key)}"]`);
    if (place) place.textContent = number(detail.value);
    else addHeadline(page, detail);
  });
  document.addEventListener("progress", (event) => known.id && show(page, { ...known, progress: event.detail }));
  clearDraftOfThisJob();
}

function addHeadline(page, { key, value }) {
  const facts = page.querySelector('[data-refresh="glance"] dl');
  const shown = facts ? [...facts.querySelectorAll("[data-headline]")] : [];
  if (!facts || shown.length >= MOST_NUMBERS) return;
  const name = document.createElement("dt");
  const place = document.createElement("dd");
  name.className = "wrap";
  name.textContent = key;
  place.className = "mono";
  place.dataset.headline = key;
  place.textContent = number(value);
  if (shown.length) shown.at(-1).after(name, place);
  else facts.prepend(name, place);
}

function take(page, type, data) {
  if (type === "refused" || type === "gone") {
    withdraw(page);
    return;
  }
  if (data.job) show(page, data.job);
  else if (data.progress) show(page, { ...known, progress: data.progress });
}

// what was on the page would go on looking like a job that runs, and offer what is refused
function withdraw(page) {
  if (page.hidden) return;
  const words = gettext("This job is not yours to see any more.");
  const card = document.createElement("section");
  card.className = "card section blank";
  const heading = Object.assign(document.createElement("h1"), { textContent: words });
  const why = Object.assign(document.createElement("p"), { className: "muted", textContent: gettext("Your role in its namespace has ended, or the job is gone.") });
  const links = [["/jobs/", gettext("Jobs")], ["/me/namespaces/", gettext("What I may do")]].map(([href, text]) =>
    Object.assign(document.createElement("a"), { className: "btn", href, textContent: text }),
  );
  const row = document.createElement("div");
  row.className = "row";
  row.append(...links);
  card.append(heading, why, row);
  page.before(card);
  page.hidden = true;
  document.title = `${words} · Trainhall`;
  toast(words);
}

function show(page, job) {
  if (job.version < known.version) return;
  const moved = known.status && known.status !== job.status;
  // other marks, actions and phases: the server draws them once, also what happened since it drew this page
  const changed = known.id ? drawnBy(known) !== drawnBy(job) : job.version > known.version;
  known = job;
  page.dataset.version = job.version;
  paint(page, job);
  title(job);
  favicon(job);
  workers(page, job);
  stopping(page, job);
  limit(page, job);
  for (const element of page.querySelectorAll("[data-when]")) {
    // data-when="running starting": shown only in these states
    element.hidden = !element.dataset.when.split(" ").includes(job.status);
  }
  if (moved) toast(said(NEWS[job.status], { name: job.name }), { href: `/jobs/${job.id}/` });
  document.dispatchEvent(new CustomEvent("job", { detail: job }));
  if (moved || changed) refreshHead(page);
}

function drawnBy(job) {
  return JSON.stringify([job.status, job.attempt, job.reason.code, job.held_by, job.cancel_requested_at, job.stop_deadline, job.files]);
}

async function refreshHead(page) {
  let answer = null;
  try {
    answer = await fetch(location.href, { credentials: "same-origin" });
  } catch {
    // the portal went away with the job's end: once more when it is back
  }
  if (!answer || answer.status >= 500) setTimeout(() => refreshHead(page), 5000);
  if (!answer || !answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of page.querySelectorAll("[data-refresh]")) {
    const other = fresh.querySelector(`[data-refresh="${part.dataset.refresh}"]`);
    if (!other) continue;
    // a button that the keyboard stands on is not taken away under the finger
    if (part.contains(document.activeElement)) part.addEventListener("focusout", () => refreshHead(page), { once: true });
    else part.replaceWith(document.importNode(other, true));
  }
  document.dispatchEvent(new CustomEvent("refreshed"));
}

function title(job) {
  const fraction = job.status === "running" && job.progress ? job.progress.fraction : null;
  const lead = fraction !== null && fraction !== undefined ? `${Math.round(fraction * 100)} %` : MARKS[job.status];
  document.title = `${lead} ${uncovered(job.name)} · Trainhall`;
}

function favicon(job) {
  const colours = { queued: "#6b5b95", starting: "#8a5a00", running: "#0b63c4", succeeded: "#1a7040", failed: "#bf2233", cancelled: "#626d7a" };
  const shapes = {
    queued: '<circle cx="8" cy="8" r="6" fill="none" stroke="C" stroke-width="2"/><path d="M8 4.5V8l2.5 2" fill="none" stroke="C" stroke-width="2"/>',
    starting: '<circle cx="8" cy="8" r="6" fill="none" stroke="C" stroke-width="2.4" stroke-dasharray="7 4"/>',
    running: '<path d="M4 2v12l10-6z" fill="C"/>',
    succeeded: '<path d="m2 9 4 4 8-9" fill="none" stroke="C" stroke-width="3"/>',
    failed: '<path d="m3 3 10 10M13 3 3 13" stroke="C" stroke-width="3"/>',
    cancelled: '<rect x="3" y="3" width="10" height="10" rx="1" fill="C"/>',
  };
  const drawing = shapes[job.status].replaceAll("C", colours[job.status]);
  const link = document.querySelector('link[rel="icon"]');
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">${drawing}</svg>`;
  if (link) link.href = `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

function workers(page, job) {
  const shown = page.querySelector('[data-refresh="workers"]');
  const missing = (job.workers || []).filter((worker) => !page.querySelector(`[data-worker-row="${CSS.escape(worker.name)}"]`));
  if (shown && missing.length && askedFor !== job.attempt) {
    askedFor = job.attempt; // pods that came while somebody looks: their table comes from the server, once an attempt
    refreshHead(page);
  }
  for (const worker of job.workers || []) {
    const row = page.querySelector(`[data-worker-row="${CSS.escape(worker.name)}"]`);
    if (!row) continue;
    put(row, "phase", worker.phase);
    put(row, "node", worker.node);
    put(row, "worker-exit", worker.exit_code === null ? "" : String(worker.exit_code));
    put(row, "worker-reason", worker.message || worker.reason);
    put(row, "lines", number(worker.lines));
  }
}

function stopping(page, job) {
  const place = bound(page, "stop-deadline");
  if (!place) return;
  place.dataset.deadline = job.stop_deadline || "";
  place.dataset.asked = job.stopping ? "1" : "";
  countDown(page);
}

function limit(page, job) {
  // nine tenths of the time limit are over: said once on every open page, and kept in sight
  const place = bound(page, "limit");
  if (!place) return;
  const near = Boolean(job.warned_at && job.ends_by) && !FINAL.includes(job.status) && job.status !== "queued";
  if (near && place.hidden) {
    const at = clock(new Date(job.ends_by));
    toast(said(gettext("{name} ends at {at}: time limit"), { name: job.name, at }));
  }
  place.hidden = !near;
  if (near) setTime(place.querySelector("time"), job.ends_by);
}

function countDown(page) {
  const place = bound(page, "stop-deadline");
  if (!place) return;
  const over = FINAL.includes(known.status) || known.status === "queued";
  const asked = place.dataset.asked;
  if (over || !asked) {
    place.textContent = "";
    place.hidden = true;
    return;
  }
  place.hidden = false;
  const left = place.dataset.deadline ? (new Date(place.dataset.deadline) - Date.now()) / 1000 : 0;
  const words = left > 0 ? said(gettext("stopping, {span}"), { span: span(Math.ceil(left)) }) : gettext("stopping…");
  if (place.textContent !== words) place.textContent = words;
}

function clearDraftOfThisJob() {
  // the form that made this job has done its work
  const slot = sessionStorage.getItem("trainhall-new-job-sent");
  if (slot === null) return;
  sessionStorage.removeItem("trainhall-new-job-sent");
  localStorage.removeItem(slot);
}

function stretch(page) {
  // the open phase grows, and the others give way to it
  const bands = [...page.querySelectorAll(".timeline rect[data-seconds]")];
  const open = bands.find((band) => band.classList.contains("open"));
  if (!open) return;
  open.dataset.since ||= Date.now();
  const lengths = bands.map((band) => Number(band.dataset.seconds) + (band === open ? (Date.now() - open.dataset.since) / 1000 : 0));
  const whole = lengths.reduce((sum, length) => sum + length, 0) || 1;
  const widths = lengths.map((length) => Math.max(0.5, (100 * length) / whole));
  const scale = 100 / widths.reduce((sum, width) => sum + width, 0);
  let x = 0;
  bands.forEach((band, index) => {
    band.setAttribute("x", `${x.toFixed(2)}%`);
    band.setAttribute("width", `${(widths[index] * scale).toFixed(2)}%`);
    x += widths[index] * scale;
  });
}

start();
