// A job as the server tells it, written onto the elements that carry data-bind: for rows of the list and for the job's head.
import { gettext, said, uncovered } from "./words.js";
import { eta, silence } from "./pace.js";
import { setTime, span } from "./time.js";

export function bound(root, name) {
  return root.querySelector(`[data-bind="${name}"]`);
}

export function put(root, name, text) {
  for (const element of root.querySelectorAll(`[data-bind="${name}"]`)) {
    const shown = uncovered(String(text ?? ""));
    if (element.textContent !== shown) element.textContent = shown;
  }
}

export function shape(resources) {
  if (!resources.total_gpus) return resources.workers > 1 ? said(gettext("no GPU ({workers}w)"), resources) : gettext("no GPU");
  return `${resources.total_gpus}x${resources.gpu_type || "GPU"} (${resources.workers}w)`;
}

export function number(value) {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(4)));
}

function known(value) {
  return value !== null && value !== undefined;
}

function headline(job, most) {
  return Object.entries(job.headline || {}).slice(0, most).map(([key, value]) => `${key} ${number(value)}`).join(", ");
}

export function progressText(job, { metric = true } = {}) {
  const progress = job.progress;
  const parts = [];
  if (progress) {
    if (progress.fraction !== null) parts.push(said(gettext("{percent} %"), { percent: Math.round(progress.fraction * 100) }));
    else if (known(progress.step)) parts.push(said(gettext("step {step}"), { step: number(progress.step) }));
  }
  if (metric) parts.push(headline(job, 1));
  const left = eta(progress);
  if (left !== null) parts.push(said(gettext("ETA {span}"), { span: span(left) }));
  else parts.push(silence(progress));
  return parts.filter(Boolean).join(", ");
}

export function progressDetail(progress) {
  if (!progress) return "";
  const parts = [];
  if (known(progress.epoch)) parts.push(said(gettext("epoch {epoch}"), { epoch: number(progress.epoch) }));
  if (known(progress.step) && progress.total) {
    parts.push(said(gettext("step {step} of {total}"), { step: number(progress.step), total: number(progress.total) }));
  } else if (known(progress.step)) parts.push(said(gettext("step {step}"), { step: number(progress.step) }));
  const left = eta(progress);
  if (left !== null) {
    const at = new Date(progress.done_at * 1000).toLocaleTimeString([], { hour12: false, hour: "2-digit", minute: "2-digit" });
    parts.push(said(gettext("done about {at} ({span})"), { at, span: span(left) }));
  } else parts.push(silence(progress));
  return parts.filter(Boolean).join(" · ");
}

function passed(moment, until = Date.now()) {
  // with the seconds where it is less than an hour, as the server writes it
  const whole = Math.max(0, Math.round((until - new Date(moment)) / 1000));
  if (whole < 60 || whole >= 3600) return span(whole);
  const seconds = whole % 60 ? ` ${whole % 60} s` : "";
  return `${Math.floor(whole / 60)} m${seconds}`;
}

export function howText(job) {
  // why it stands where it stands, or how it goes, where there is no bar of progress: as the server writes it
  const reached = headline(job, 2);
  if ((job.status === "running" || job.status === "succeeded") && reached) return reached;
  if (job.status === "running" && job.started_at && !job.cancel_requested_at) {
    return said(gettext("runs {span}, no progress reported"), { span: passed(job.started_at) });
  }
  return job.reason.text;
}

export function spentText({ status, queued, started, ended }) {
  if (status === "queued") return queued ? said(gettext("waits {span}"), { span: passed(queued) }) : "";
  if (!started) return ended ? "–" : gettext("starts");
  if (ended) return said(gettext("ran {span}"), { span: passed(started, new Date(ended)) });
  return said(gettext("runs {span}"), { span: passed(started) });
}

export function pill(status) {
  const template = document.querySelector(`template[data-pill="${status}"]`);
  return template ? template.content.cloneNode(true) : document.createTextNode(status);
}

function mark(root, name, shown, text = null) {
  for (const element of root.querySelectorAll(`[data-bind="${name}"]`)) {
    element.hidden = !shown;
    if (shown && text !== null && element.textContent !== text) element.textContent = text;
  }
}

export function paint(root, job) {
  const old = root.dataset.status;
  if (old !== job.status) {
    const place = bound(root, "status");
    if (place) place.replaceChildren(pill(job.status));
    root.dataset.status = job.status;
  }
  const isRow = root.matches("[data-row]");
  put(root, "reason", isRow ? howText(job) : job.reason.text);
  const reason = bound(root, "reason");
  if (reason) {
    reason.title = uncovered(job.reason.text);
    if (isRow) reason.toggleAttribute("data-silent", job.status === "running" && !headline(job, 1) && !job.cancel_requested_at);
  }
  put(root, "exit", job.exit_code === null ? "" : String(job.exit_code));
  paintProgress(root, job, isRow);
  mark(root, "attempt", job.attempt > 1, said(gettext("attempt {number}"), { number: job.attempt }));
  if (isRow) paintRow(root, job);
}

// held for a cause, the job has its owner as who holds it, who did nothing: as in jobs/_held.html
function heldText(job) {
  if (job.reason.code === "OwnerLeft") return gettext("held for a lead");
  if (["Forbidden", "SecretGone", "VolumeGone"].includes(job.reason.code)) return gettext("held by the portal");
  return said(gettext("held by {name}"), { name: job.held_by });
}

function paintRow(row, job) {
  row.dataset.cluster = job.cluster;
  Object.assign(row.dataset, { queued: job.queued_at || "", started: job.started_at || "", ended: job.finished_at || "" });
  mark(row, "origin", job.origin === "kubectl", "kubectl");
  mark(row, "held", Boolean(job.held_by), heldText(job));
  row.toggleAttribute("data-archived", Boolean(job.archived_at));
  mark(row, "archived", Boolean(job.archived_at));
  mark(row, "stopping", Boolean(job.cancel_requested_at) && !job.finished_at);
  const [key, value] = Object.entries(job.headline || {})[0] || ["", ""];
  put(row, "metric-key", key);
  put(row, "metric-value", key ? number(value) : "");
  put(row, "priority", job.priority);
  put(row, "cluster", job.cluster);
  put(row, "spent", spentText(row.dataset));
  const tags = bound(row, "tags");
  if (tags && tags.dataset.tags !== job.tags.join("\n")) {
    tags.dataset.tags = job.tags.join("\n");
    tags.replaceChildren(...job.tags.flatMap((tag) => [tagLink(tag), " "]));
  }
}

function tagLink(tag) {
  return Object.assign(document.createElement("a"), { className: "mark", href: `?${new URLSearchParams({ tag })}`, textContent: tag });
}

const shown = new Map(); // what each row and head last showed, for the clock to go on with

setInterval(() => {
  for (const [root, [job, isRow]] of shown) {
    if (!root.isConnected) shown.delete(root);
    else if (job.status === "running" && job.progress) paintProgress(root, job, isRow);
  }
}, 1000);

function paintProgress(root, job, isRow) {
  shown.set(root, [job, isRow]);
  const running = job.status === "running";
  const text = progressText(job, { metric: !bound(root, "metric-value") });
  // the head has the percentage in large letters, so its text tells the rest
  put(root, "progress-text", bound(root, "percent") ? progressDetail(job.progress) : text);
  const part = job.progress ? job.progress.fraction : null;
  put(root, "percent", part === null ? "" : said(gettext("{percent} %"), { percent: Math.round(part * 100) }));
  const line = bound(root, "progress-row");
  const reported = isRow ? Boolean(job.progress) : Boolean(text);
  if (line) {
    line.hidden = !running || !reported;
    const reason = bound(root, "reason");
    if (reason && isRow) reason.hidden = running && reported;
  }
  for (const bar of root.querySelectorAll('progress[data-bind="progress"]')) {
    bar.hidden = part === null;
    if (part !== null) bar.value = part;
  }
}

export function tick(row) {
  // what grows with the clock alone, in a row nobody tells anything new of
  const { started, ended } = row.dataset;
  if (ended) return;
  put(row, "spent", spentText(row.dataset));
  const reason = bound(row, "reason");
  if (!started || !reason || reason.hidden || !("silent" in reason.dataset)) return;
  put(row, "reason", said(gettext("runs {span}, no progress reported"), { span: passed(started) }));
}

export function fill(row, job) {
  // a new row, from the page's template
  Object.assign(row.dataset, { row: job.id, user: job.user, namespace: job.namespace });
  row.className = job.status;
  const place = row.querySelector("[data-place]");
  if (place) place.dataset.place = job.id;
  const link = bound(row, "name");
  link.textContent = uncovered(job.name);
  link.href = `/jobs/${job.id}/`;
  const box = row.querySelector('input[name="ids"]');
  if (box) {
    box.value = job.id;
    box.setAttribute("aria-label", said(gettext("Select {name}"), { name: job.name }));
  }
  put(row, "namespace", job.namespace);
  put(row, "user", job.user);
  put(row, "id", job.id);
  put(row, "gpus", shape(job.resources));
  setTime(bound(row, "created_at"), job.created_at);
  paint(row, job);
  return row;
}
