// What is selected in the list, and one verb for all of it: asked once, answered job by job.
import { gettext, ngettext, said } from "./words.js";
import { bound } from "./row.js";
import { announce } from "./toast.js";

const MOST = 500;
const NAMED = 200; // names in the dialog
let list = null;
let bar = null;
let last = null; // the row a range starts from

export function startBulk(body) {
  bar = document.querySelector("form[data-bulk]");
  list = body;
  if (!bar || !list) return;
  list.addEventListener("click", (event) => {
    const cell = event.target.closest("td.pick");
    if (!cell) return;
    const box = cell.querySelector("input");
    if (event.target !== box) box.checked = !box.checked;
    if (event.shiftKey) range(box);
    last = box.closest("[data-row]");
    count();
  });
  list.addEventListener("change", count);
  document.querySelector("[data-pick-all]")?.addEventListener("change", (event) => {
    for (const box of boxes()) box.checked = event.target.checked;
    count();
  });
  bar.addEventListener("submit", submit);
  bar.querySelector("[data-bulk-clear]").addEventListener("click", clearSelection);
  document.addEventListener("rows", count);
  window.addEventListener("pageshow", restore);
  restore();
}

// what only some jobs can take is offered where one of them is selected
const SUITS = {
  live: (row) => !row.dataset.ended,
  waiting: (row) => row.dataset.status === "queued",
  over: (row) => Boolean(row.dataset.ended) && !("archived" in row.dataset),
  archived: (row) => "archived" in row.dataset,
};

function boxes() {
  return [...list.querySelectorAll("input[name=ids]")];
}

export function selected() {
  return list && bar ? boxes().filter((box) => box.checked).map((box) => box.closest("[data-row]")) : [];
}

export function clearSelection() {
  const some = selected().length > 0;
  for (const box of some ? boxes() : []) box.checked = false;
  if (some) count();
  return some;
}

export function toggle(row) {
  const box = row?.querySelector("input[name=ids]");
  if (!box) return false;
  box.checked = !box.checked;
  last = row;
  count();
  return true;
}

function range(box) {
  const all = boxes();
  const from = all.findIndex((one) => one.closest("[data-row]") === last);
  const to = all.indexOf(box);
  if (from < 0) return;
  for (const one of all.slice(Math.min(from, to), Math.max(from, to) + 1)) one.checked = box.checked;
}

function count() {
  const rows = selected();
  bar.dataset.count = rows.length;
  bar.querySelector("[data-bulk-count]").textContent = said(ngettext("{count} selected", "{count} selected", rows.length), { count: rows.length });
  for (const part of bar.querySelectorAll("[data-bulk-for]")) part.hidden = !rows.some(SUITS[part.dataset.bulkFor]);
  const clone = bar.querySelector("[data-bulk-clone]");
  clone.hidden = rows.length !== 1;
  if (rows.length === 1) clone.href = `/jobs/new/?${new URLSearchParams({ from: rows[0].dataset.row })}`;
  const all = document.querySelector("[data-pick-all]");
  if (all) {
    all.checked = rows.length > 0 && rows.length === boxes().length;
    all.indeterminate = rows.length > 0 && !all.checked;
  }
  // back and forward find the choice again
  history.replaceState({ ...history.state, selected: rows.map((row) => row.dataset.row) }, "");
}

function restore() {
  const ids = new Set(history.state?.selected || []);
  for (const box of boxes()) if (ids.has(box.value)) box.checked = true;
  count();
}

async function submit(event) {
  event.preventDefault();
  const action = event.submitter?.value || "stop";
  const tags = bar.elements.tags.value.split(",").map((tag) => tag.trim()).filter(Boolean);
  if (action === "tag" && !tags.length) {
    bar.elements.tags.focus();
    return;
  }
  await act(action, selected(), { tags, priority: bar.elements.priority.value, from: event.submitter });
}

export async function act(action, rows, { tags = [], priority = "", from = null } = {}) {
  // rows: of the list; asks first where work may be lost
  if (!rows.length || rows.length > MOST) return;
  let reason = "";
  if (action === "stop" || (action === "hold" && rows.some((row) => row.dataset.status !== "queued"))) {
    reason = await confirmed(action, rows);
    if (reason === null) {
      from?.focus();
      return;
    }
  }
  if (action === "stop") for (const row of rows) if (!row.dataset.ended && mayChange(row)) show(row, "stopping", true); // seen at once; the server confirms
  await send(action, rows.map((row) => row.dataset.row), { reason, tags, priority });
}

async function send(action, ids, wish = {}) {
  busy(true);
  const body = JSON.stringify({ action, ids, ...wish });
  const headers = { "Content-Type": "application/json", Accept: "application/json", "X-CSRFToken": bar.elements.csrfmiddlewaretoken.value };
  try {
    const answer = await fetch(bar.dataset.bulk, { method: "POST", body, headers, credentials: "same-origin" });
    const document_ = await answer.json();
    if (!answer.ok) throw new Error(document_.error?.message || said(gettext("the portal answered {status}"), { status: answer.status }));
    for (const result of document_.results) {
      const row = rowOf(result.id);
      if (row && action === "stop" && result.outcome !== "done" && result.code !== "already") show(row, "stopping", false);
    }
    tell(action, document_);
    clearSelection();
  } catch (error) {
    tell(action, { counts: {}, results: [], problem: error.message });
    for (const id of action === "stop" ? ids : []) if (rowOf(id)) show(rowOf(id), "stopping", false);
  }
  busy(false);
}

function rowOf(id) {
  return list.querySelector(`[data-row="${CSS.escape(id)}"]`);
}

function mayChange(row) {
  // as the server will decide it: one's own where one is a member, all where one leads
  const { user, namespace } = row.dataset;
  return bar.dataset[user === bar.dataset.me ? "own" : "any"].split(" ").includes(namespace);
}

function busy(yes) {
  for (const button of bar.querySelectorAll("button")) button.disabled = yes;
}

function show(row, name, yes) {
  const element = bound(row, name);
  if (element) element.hidden = !yes;
}

const QUESTIONS = {
  stop: (count) => ngettext("Stop {count} job?", "Stop {count} jobs?", count),
  hold: (count) => ngettext("Hold {count} job? What runs is stopped and waits until it is released.", "Hold {count} jobs? What runs is stopped and waits until it is released.", count),
};
const LEFT_ALONE = {
  stop: (count) => ngettext("{count} of them is not yours to stop and will be left alone.", "{count} of them are not yours to stop and will be left alone.", count),
  hold: (count) => ngettext("{count} of them is not yours to hold and will be left alone.", "{count} of them are not yours to hold and will be left alone.", count),
};
const YES = { stop: () => gettext("Stop"), hold: () => gettext("Hold") };

function confirmed(action, rows) {
  // the words why, maybe empty; null where it was taken back
  const dialog = document.getElementById("bulk-dialog");
  const mine = rows.filter(mayChange);
  const others = rows.length - mine.length;
  const running = mine.filter((row) => row.dataset.status === "running" || row.dataset.status === "starting").length;
  const over = mine.filter((row) => row.dataset.ended).length;
  dialog.querySelector("[data-bulk-question]").textContent = said(QUESTIONS[action](rows.length), { count: rows.length });
  dialog.querySelector("[data-bulk-note]").textContent = [
    others ? said(LEFT_ALONE[action](others), { count: others }) : "",
    running ? said(ngettext("{count} of them runs: it gets its grace to save what it needs.", "{count} of them run: each gets its grace to save what it needs.", running), { count: running }) : "",
    over ? said(ngettext("{count} is over already and stays as it is.", "{count} are over already and stay as they are.", over), { count: over }) : "",
  ].filter(Boolean).join(" ");
  dialog.querySelector("[data-bulk-names]").replaceChildren(...rows.slice(0, NAMED).map(named));
  dialog.querySelector("[data-bulk-yes]").textContent = YES[action]();
  const why = dialog.querySelector("[data-bulk-reason]");
  why.hidden = action !== "stop";
  const input = why.querySelector("input");
  input.value = "";
  dialog.returnValue = "no";
  input.onkeydown = (event) => {
    if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return;
    event.preventDefault(); // who has typed why means it; the form's own default is to keep
    dialog.close("yes");
  };
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? input.value : null), { once: true });
  });
}

function named(row) {
  const item = document.createElement("li");
  const status = bound(row, "status")?.textContent.trim() || "";
  item.textContent = said(gettext("{name} · {status} · {user}"), {
    name: bound(row, "name")?.textContent || row.dataset.row, status, user: bound(row, "user")?.textContent || row.dataset.row,
  });
  return item;
}

const DID = { stop: () => gettext("Stop"), hold: () => gettext("Hold"), release: () => gettext("Release"), tag: () => gettext("Tag"), untag: () => gettext("Take tags away"), priority: () => gettext("Priority"), archive: () => gettext("Archive"), unarchive: () => gettext("Bring back") };
const UNDONE_BY = { archive: "unarchive", unarchive: "archive" };
const OUTCOMES = { done: () => gettext("done"), skipped: () => gettext("skipped"), refused: () => gettext("refused") };

function tell(action, { counts, results, problem }) {
  const place = document.querySelector("[data-bulk-results]");
  const head = document.createElement("header");
  const words = problem
    ? said(gettext("{action}: {problem}"), { action: DID[action](), problem })
    : said(gettext("{action}: {done} done, {skipped} skipped, {refused} refused"), { action: DID[action](), ...counts });
  head.append(Object.assign(document.createElement("strong"), { textContent: words }));
  const done = results.filter((result) => result.outcome === "done").map((result) => result.id);
  if (UNDONE_BY[action] && done.length) {
    const undo = Object.assign(document.createElement("button"), { type: "button", className: "btn small", textContent: gettext("Undo") });
    undo.addEventListener("click", () => send(UNDONE_BY[action], done));
    head.append(undo);
  }
  const close = Object.assign(document.createElement("button"), { type: "button", className: "btn small quiet push", textContent: gettext("Close") });
  close.addEventListener("click", () => (place.hidden = true));
  head.append(close);
  const items = document.createElement("ul");
  items.className = "outcomes";
  // what did not go as asked first: that is what one reads
  const rank = { refused: 0, skipped: 1, done: 2 };
  for (const result of [...results].sort((a, b) => rank[a.outcome] - rank[b.outcome])) items.append(outcome(result));
  place.replaceChildren(head, items);
  place.hidden = false;
  place.focus({ preventScroll: true });
  place.scrollIntoView({ block: "nearest" });
  announce(words);
}

function outcome(result) {
  const item = document.createElement("li");
  item.className = result.outcome;
  item.append(Object.assign(document.createElement("span"), { className: "mark", textContent: OUTCOMES[result.outcome]() }));
  const name = result.name === null
    ? Object.assign(document.createElement("span"), { className: "mono wrap", textContent: result.id })
    : Object.assign(document.createElement("a"), { className: "strong wrap", href: `/jobs/${result.id}/`, textContent: result.name });
  item.append(name, Object.assign(document.createElement("span"), { className: "why", textContent: result.why }));
  return item;
}
