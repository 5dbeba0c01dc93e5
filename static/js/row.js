// A job as the server tells it, written onto the elements that carry data-bind: for rows of the list and for the job's head.
import { setTime, span } from "./time.js";

export function bound(root, name) {
  return root.querySelector(`[data-bind="${name}"]`);
}

export function put(root, name, text) {
  for (const element of root.querySelectorAll(`[data-bind="${name}"]`)) {
    if (element.textContent !== text) element.textContent = text;
  }
}

export function shape(resources) {
  if (!resources.total_gpus) return "0";
  const kind = resources.gpu_type ? ` ${resources.gpu_type}` : "";
  return `${resources.total_gpus}${kind}${resources.workers > 1 ? ` (${resources.workers} w)` : ""}`;
}

export function number(value) {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(4)));
}

export function progressText(job) {
  const progress = job.progress;
  const parts = [];
  if (progress) {
    if (progress.fraction !== null) parts.push(`${Math.round(progress.fraction * 100)} %`);
    else if (progress.step !== null && progress.step !== undefined) parts.push(`step ${number(progress.step)}`);
  }
  const headline = Object.entries(job.headline || {})[0];
  if (headline) parts.push(`${headline[0]} ${number(headline[1])}`);
  if (progress && progress.eta) parts.push(`ETA ${span(progress.eta)}`);
  else if (progress && progress.at && Date.now() / 1000 - progress.at > 60) {
    parts.push(`no report for ${span(Date.now() / 1000 - progress.at)}`);
  }
  return parts.join(", ");
}

export function progressDetail(progress) {
  if (!progress) return "";
  const known = (value) => value !== null && value !== undefined;
  const parts = [];
  if (known(progress.epoch)) parts.push(`epoch ${number(progress.epoch)}`);
  if (known(progress.step)) parts.push(`step ${number(progress.step)}${progress.total ? ` of ${number(progress.total)}` : ""}`);
  if (progress.eta) {
    const at = new Date(Date.now() + progress.eta * 1000).toLocaleTimeString([], { hour12: false, hour: "2-digit", minute: "2-digit" });
    parts.push(`done about ${at} (${span(progress.eta)})`);
  } else if (progress.at && Date.now() / 1000 - progress.at > 60) {
    parts.push(`no report for ${span(Date.now() / 1000 - progress.at)}`);
  }
  return parts.join(" · ");
}

export function pill(status) {
  const template = document.querySelector(`template[data-pill="${status}"]`);
  return template ? template.content.cloneNode(true) : document.createTextNode(status);
}

export function paint(root, job) {
  const old = root.dataset.status;
  if (old !== job.status) {
    const place = bound(root, "status");
    if (place) place.replaceChildren(pill(job.status));
    root.dataset.status = job.status;
  }
  put(root, "reason", job.reason.text);
  const reason = bound(root, "reason");
  if (reason) reason.title = job.reason.text;
  put(root, "exit", job.exit_code === null ? "" : String(job.exit_code));
  paintProgress(root, job);
  for (const mark of root.querySelectorAll('[data-bind="attempt"]')) {
    mark.hidden = job.attempt < 2;
    mark.textContent = `attempt ${job.attempt}`;
  }
}

function paintProgress(root, job) {
  const running = job.status === "running";
  const text = progressText(job);
  // the head has the percentage in large letters, so its text tells the rest
  put(root, "progress-text", bound(root, "percent") ? progressDetail(job.progress) : text);
  const part = job.progress ? job.progress.fraction : null;
  put(root, "percent", part === null ? "" : `${Math.round(part * 100)} %`);
  const line = bound(root, "progress-row");
  if (line) {
    line.hidden = !running || !text;
    const reason = bound(root, "reason");
    if (reason && root.matches("[data-row]")) reason.hidden = running && Boolean(text);
  }
  for (const bar of root.querySelectorAll('progress[data-bind="progress"]')) {
    bar.hidden = part === null;
    if (part !== null) bar.value = part;
  }
}

export function fill(row, job) {
  // a new row, from the page's template
  row.dataset.row = job.id;
  row.className = job.status;
  const link = bound(row, "name");
  link.textContent = job.name;
  link.href = `/jobs/${job.id}/`;
  put(row, "namespace", job.namespace);
  put(row, "user", job.user);
  put(row, "gpus", shape(job.resources));
  setTime(bound(row, "created_at"), job.created_at);
  paint(row, job);
  return row;
}
