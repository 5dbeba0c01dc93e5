// The grid of charts of a job: cards come from the server, points by REST when a card is near the screen, then live.
import { gettext, said } from "./words.js";
import { Axis } from "./axis.js";
import { Figure } from "./figure.js";
import { typing } from "./keys.js";
import { startMarks } from "./marks.js";
import { isHidden, startPins, takeLayout } from "./pins.js";
import { plotly } from "./plotly.js";
import { ask, follow } from "./socket.js";
import { forgetTokens } from "./tokens.js";
import { paintTools, startTools } from "./tools.js";
import { whenThemeChanges } from "./toggle.js";
import { change, matcher, startView, toggled, view, whenViewChanges } from "./view_state.js";

const MOST = 12; // plots kept while they are off the screen: SVG charts cost
const RETRY = 3000;
const REST = 300; // ms after the first drawing until the marks are asked for
const SETTLE = 250; // ms after a slider's last move until the server is asked
const PREFIX = /^[/._-]+/;
const figures = new Map();
const dirty = new Set(); // to be drawn again
const hosts = new Map(); // key -> the figure it is drawn in
const wanted = new Set(); // keys that came without a card
const known = new Set(); // keys that have none on this page, as on an overview
const speakers = new Map(); // key -> the series that its one number is of
let place = null;
let axis = null;
let job = "";
let refreshing = 0;
let loading = false;
let following = false;
let pass = 0;
let settling = 0;
let showsHidden = false;
let lookAtMarks = null;
let firstMarks = 0;

function start() {
  place = document.querySelector("[data-charts]");
  job = document.querySelector("[data-job]").dataset.job;
  startView();
  const tools = document.querySelector("[data-chart-tools]");
  startTools(tools);
  startPins(tools, layoutChanged);
  tools.addEventListener("show-hidden", () => {
    showsHidden = !showsHidden;
    arrange();
  });
  lookAtMarks = startMarks(tools.dataset.marksUrl, () => figures.forEach(redraw));
  plotly().catch(() => {}); // while the cards come; each card says what went wrong
  if (place.querySelector("[data-charts-state]")) adopt(place);
  else load();
  whenViewChanges(viewChanged);
  whenThemeChanges(() => {
    forgetTokens();
    figures.forEach(redraw);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || typing(event) || document.querySelector("dialog[open]")) return;
    if (view.range) change({ range: null, y: new Map() });
  });
}

async function load() {
  loading = true;
  let text = "";
  try {
    const answer = await fetch(source(), { credentials: "same-origin" });
    if (!answer.ok) throw new TypeError(said(gettext("the portal answered {status}"), { status: answer.status }));
    text = await answer.text();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    refresh(RETRY);
    return;
  } finally {
    loading = false;
  }
  const fresh = document.importNode(new DOMParser().parseFromString(text, "text/html").body, true);
  if (fresh.querySelector("[data-charts-state]")) adopt(fresh); // else signed out meanwhile: it is the page to sign in
}

function source() {
  const url = new URL(place.dataset.src, location.href);
  for (const key of view.pin) url.searchParams.append("pin", key);
  return url;
}

function adopt(fresh) {
  const { dataset } = fresh.querySelector("[data-charts-state]");
  takeLayout(JSON.parse(dataset.layout));
  axis ||= new Axis({ job, firstTime: Number(dataset.firstTime), epochKey: dataset.epochKey });
  axis.firstTime ||= Number(dataset.firstTime);
  axis.epochKey ||= dataset.epochKey;
  for (const card of fresh.querySelectorAll("[data-chart]")) {
    const old = figures.get(card.dataset.key);
    if (old) card.replaceWith(old.card); // what is drawn stays as it is
    else figures.set(card.dataset.key, new Figure(card, { axis, redraw }));
  }
  if (fresh !== place) place.replaceChildren(...fresh.childNodes);
  for (const group of place.querySelectorAll("[data-chart-group]")) {
    group.addEventListener("toggle", () => folded(group));
  }
  arrange();
  // what moved is looked at anew: an observer says nothing of a card that left the page and came back between two frames
  for (const { card } of figures.values()) {
    watcher.unobserve(card);
    watcher.observe(card);
  }
  for (const key of wanted) if (!figures.has(key)) known.add(key);
  wanted.clear();
  const options = document.querySelector("[data-x] option[value=epoch]");
  if (options) options.hidden = options.disabled = !axis.epochKey;
  if (following) return;
  following = true;
  follow(`points/${job}`, Number(dataset.pointsSeq), take, poll);
}

// ---- which cards are seen, and what is drawn in them

function base({ key, group }) {
  // "train/loss" of the group train and "val/loss" of val are both the loss
  return group && key.startsWith(group) ? key.slice(group.length).replace(PREFIX, "") : key;
}

function seat() {
  hosts.clear();
  const first = new Map();
  for (const figure of figures.values()) {
    const name = base(figure);
    const host = view.overlays && figure.group !== "system" ? first.get(name) ?? figure : figure;
    first.set(name, first.get(name) ?? figure);
    hosts.set(figure.key, host);
  }
  for (const figure of figures.values()) {
    const guests = [...figures.values()].filter((other) => other !== figure && hosts.get(other.key) === figure).map(({ key }) => key);
    if (guests.join("\n") === figure.guests.join("\n")) continue;
    figure.guests = guests;
    figure.reload();
  }
}

function arrange() {
  const { test, isBroken } = matcher();
  seat();
  let shown = 0;
  for (const figure of figures.values()) {
    const isGuest = hosts.get(figure.key) !== figure;
    const seen = !isGuest && figure.keys.some(test) && (showsHidden || !isHidden(figure.key));
    figure.card.hidden = !seen;
    figure.fit();
    figure.card.classList.toggle("ignored", isHidden(figure.key));
    shown += seen;
  }
  for (const group of place.querySelectorAll("[data-chart-group]")) {
    const some = group.querySelector("[data-chart]:not([hidden])");
    group.hidden = !some;
    group.open = some && (view.q ? true : opens(group));
  }
  const empty = place.querySelector("[data-charts-none]");
  if (empty) empty.hidden = shown > 0 || figures.size === 0;
  paintTools({ shown, all: figures.size, keys: [...figures.keys()], showsHidden, isBroken });
}

function opens(group) {
  const name = group.dataset.chartGroup;
  if (view.shut.has(name)) return false;
  return view.open.has(name) || group.dataset.opens === "1";
}

function folded(group) {
  if (view.q || group.hidden || group.open === opens(group)) return;
  const name = group.dataset.chartGroup;
  change({ shut: toggled(view.shut, name, !group.open), open: toggled(view.open, name, group.open) }, { passing: true });
}

function layoutChanged({ moved }) {
  arrange();
  for (const figure of figures.values()) {
    figure.goal?.look();
    redraw(figure);
  }
  if (moved) refresh(0); // where cards stand is the portal's to say
}

function viewChanged(names) {
  const any = (...some) => some.some((name) => names.has(name));
  if (any("pin")) refresh(0);
  if (any("marks")) lookAtMarks();
  arrange();
  clearTimeout(settling);
  if (any("sm", "by") && view.sm !== null) {
    for (const figure of figures.values()) if (figure.mounted) figure.preview();
    settling = setTimeout(reload, SETTLE);
  }
  if (any("x", "range", "allAttempts") || (any("live") && view.live) || (any("sm") && view.sm === null)) reload();
  figures.forEach(redraw);
}

function reload() {
  axis?.forget();
  figures.forEach((figure) => figure.reload());
}

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const figure = figures.get(entry.target.dataset.key);
    figure.visible = entry.isIntersecting;
    if (!figure.visible) continue;
    figure.seenAt = performance.now();
    figure.mount();
    if (dirty.has(figure)) redraw(figure);
  }
  const mounted = [...figures.values()].filter((figure) => figure.mounted);
  const away = mounted.filter((figure) => !figure.visible).sort((a, b) => a.seenAt - b.seenAt);
  for (const figure of away.slice(0, Math.max(0, mounted.length - MOST))) figure.unmount();
}, { rootMargin: "200px" });

// one drawing a frame for everything that changed; after a long one the page gets as long for itself
function redraw(figure) {
  if (!figure.mounted) return;
  dirty.add(figure);
  pass ||= requestAnimationFrame(paint);
}

function paint() {
  const began = performance.now();
  for (const figure of dirty) {
    if (figure.mounted && !figure.visible) continue; // drawn when it is scrolled to
    dirty.delete(figure);
    if (!figure.isReady) continue; // it asks again when it is
    figure.paint();
    firstMarks ||= setTimeout(lookAtMarks, REST);
  }
  setTimeout(() => {
    pass = [...dirty].some((figure) => figure.visible) ? requestAnimationFrame(paint) : 0;
  }, performance.now() - began);
}

// ---- what comes live

function take(type, data) {
  if (type !== "snapshot" && type !== "change") return;
  for (const one of data.series ?? []) {
    if (type === "change") axis.add(one);
    const figure = figures.get(one.key);
    if (!figure) want(one.key);
    else if (type === "change") {
      figure.add(one);
      const host = hosts.get(one.key);
      if (host && host !== figure) host.add(one);
    }
    if (!speaks(one)) continue;
    const newest = type === "snapshot" ? one.last.value : one.value.at(-1);
    figure?.showLatest(newest);
    document.dispatchEvent(new CustomEvent("latest", { detail: { key: one.key, value: newest } }));
  }
  // after too long, or after a seal: what was missed comes from the store
  if (type === "snapshot" && view.live && !view.range) reload();
  if (data.progress) progress(data);
}

function speaks({ key, attempt, rank }) {
  // where one number stands for all series of a key: of the newest attempt the lowest rank
  const now = speakers.get(key);
  if (now && (attempt < now.attempt || (attempt === now.attempt && rank > now.rank))) return false;
  speakers.set(key, { attempt, rank });
  return true;
}

async function poll() {
  take("snapshot", await ask(`/api/v1/jobs/${job}/series/`));
}

function progress(data) {
  // progress comes with the points, much oftener than the job itself changes
  const page = document.querySelector("[data-job]");
  if (page.dataset.status && page.dataset.status !== "running") return;
  document.dispatchEvent(new CustomEvent("progress", { detail: data.progress }));
}

function want(key) {
  if (known.has(key)) return;
  wanted.add(key);
  if (!loading) refresh();
}

function refresh(wait = 150) {
  // not put off by the next change: points may come ten times a second
  refreshing ||= setTimeout(() => {
    refreshing = 0;
    load();
  }, wait);
}

start();
