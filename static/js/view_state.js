// How the charts of this page are looked at, and the page's address, which says all of it: a copied link shows the same view.
const X = ["step", "epoch", "relative", "time"];
const MOST = 0.999;
const REST = 250; // ms; browsers refuse too many changes of the address
const LISTS = ["hide", "logy", "pin", "open", "shut"];
const OURS = ["q", "x", "sm", "by", "log", "out", "over", "attempts", "marks", "live", "drag", "from", "to", "y", ...LISTS];

export const view = {};
const listeners = [];
let writing = 0;
let pushed = false;

function finite(text) {
  return text !== null && text !== "" && Number.isFinite(Number(text)) ? Number(text) : null;
}

function read() {
  const query = new URLSearchParams(location.search);
  const smoothing = finite(query.get("sm"));
  view.q = query.get("q") ?? "";
  view.x = X.includes(query.get("x")) ? query.get("x") : "step";
  view.sm = smoothing === null ? null : Math.min(MOST, Math.max(0, smoothing)); // null: by the number of points
  view.by = query.get("by") === "distance" ? "distance" : "ema";
  view.logY = (query.get("log") ?? "").includes("y");
  view.logX = (query.get("log") ?? "").includes("x");
  view.clips = query.get("out") !== "all";
  view.overlays = query.get("over") === "1";
  view.allAttempts = query.get("attempts") === "all";
  view.marks = query.get("marks") !== "0";
  view.live = query.get("live") !== "0";
  view.pans = query.get("drag") === "pan";
  const [from, to] = [finite(query.get("from")), finite(query.get("to"))];
  view.range = from !== null && to !== null && from < to ? [from, to] : null; // steps, epochs, or seconds since 1970
  view.y = new Map();
  for (const text of query.getAll("y")) {
    const [low, high, ...key] = text.split("~");
    if (finite(low) !== null && finite(high) !== null && key.length) view.y.set(key.join("~"), [Number(low), Number(high)]);
  }
  for (const name of LISTS) view[name] = new Set(query.getAll(name));
}

export function address({ pins = null } = {}) {
  // what others have as their usual is left out of it
  const url = new URL(location.href);
  for (const name of OURS) url.searchParams.delete(name);
  const put = (name, value) => value && url.searchParams.append(name, value);
  put("q", view.q);
  put("x", view.x === "step" ? "" : view.x);
  put("sm", view.sm === null ? "" : String(view.sm));
  put("by", view.by === "ema" ? "" : view.by);
  put("log", `${view.logX ? "x" : ""}${view.logY ? "y" : ""}`);
  put("out", view.clips ? "" : "all");
  put("over", view.overlays ? "1" : "");
  put("attempts", view.allAttempts ? "all" : "");
  put("marks", view.marks ? "" : "0");
  put("live", view.live ? "" : "0");
  put("drag", view.pans ? "pan" : "");
  if (view.range) {
    put("from", String(view.range[0]));
    put("to", String(view.range[1]));
  }
  for (const [key, [low, high]] of view.y) put("y", `${low}~${high}~${key}`);
  for (const name of LISTS) {
    if (name === "pin" && pins) continue;
    for (const value of view[name]) put(name, value);
  }
  for (const key of pins ?? []) put("pin", key);
  return url;
}

// a step of its own in the browser's history, unless it is `passing`: a slider under the finger, a letter of a search
export function change(part, { passing = false } = {}) {
  const names = Object.keys(part);
  Object.assign(view, part);
  if (!passing && !pushed) {
    clearTimeout(writing);
    history.pushState(null, "", address());
    pushed = true; // many at once, as a zoom over all charts, are one step
    setTimeout(() => (pushed = false), REST);
  } else {
    clearTimeout(writing);
    writing = setTimeout(() => history.replaceState(null, "", address()), REST);
  }
  tell(names);
}

function tell(names) {
  for (const listener of listeners) listener(new Set(names));
}

export function whenViewChanges(listener) {
  listeners.push(listener);
}

export function startView() {
  read();
  window.addEventListener("popstate", () => {
    clearTimeout(writing);
    read();
    tell([...Object.keys(view)]);
  });
}

export function toggled(set, value, on = !set.has(value)) {
  const next = new Set(set);
  if (on) next.add(value);
  else next.delete(value);
  return next;
}

// what the search above the charts finds: a pattern, or plain text as long as it is none
export function matcher() {
  try {
    const pattern = new RegExp(view.q, "i");
    return { test: (key) => pattern.test(key), isBroken: false };
  } catch {
    const text = view.q.toLowerCase();
    return { test: (key) => key.toLowerCase().includes(text), isBroken: true };
  }
}
