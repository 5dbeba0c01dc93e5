// The grid of figures on a job's page: cards come from the server, points by REST when a card is near the screen, then live.
import { Figure } from "./figure.js";
import { ask, follow } from "./socket.js";
import { whenThemeChanges } from "./toggle.js";

const figures = new Map();
const options = { smoothing: 0, log: false, x: "step" };
const dirty = new Set(); // to be drawn again
const MOST = 12; // plots kept while they are off the screen: SVG charts cost
const RETRY = 3000;
let place = null;
let refreshing = 0;
const wanted = new Set(); // keys that came without a card
let loading = false;
let pass = 0;
let writing = 0;

export function start() {
  place = document.querySelector("[data-charts]");
  readOptions();
  load();
  const id = document.querySelector("[data-job]").dataset.job;
  follow(`points/${id}`, null, take, poll);
  whenThemeChanges(() => figures.forEach(redraw));
}

async function load() {
  loading = true;
  let text = "";
  try {
    const answer = await fetch(place.dataset.src, { credentials: "same-origin" });
    if (!answer.ok) throw new TypeError(`the portal answered ${answer.status}`);
    text = await answer.text();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    refresh(RETRY);
    return;
  } finally {
    loading = false;
  }
  const fresh = document.importNode(new DOMParser().parseFromString(text, "text/html").body, true);
  const cards = [...fresh.querySelectorAll("[data-chart]")];
  for (const card of cards) {
    const known = figures.get(card.dataset.key);
    if (known) card.replaceWith(known.card); // what is drawn stays as it is
    else figures.set(card.dataset.key, new Figure(card, { options, redraw }));
  }
  place.replaceChildren(...fresh.childNodes);
  // what moved is looked at anew: an observer says nothing of a card that left the page and came back between two frames
  for (const { card } of figures.values()) {
    watcher.unobserve(card);
    watcher.observe(card);
  }
  controls();
  const missing = [...wanted].some((key) => !figures.has(key));
  wanted.clear();
  if (missing) refresh();
}

function want(key) {
  wanted.add(key);
  if (!loading) refresh();
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
  const away = [...figures.values()].filter((figure) => figure.mounted && !figure.visible).sort((a, b) => a.seenAt - b.seenAt);
  const mounted = [...figures.values()].filter((figure) => figure.mounted).length;
  for (const figure of away.slice(0, Math.max(0, mounted - MOST))) figure.unmount();
}, { rootMargin: "200px" });

// one drawing a frame for everything that changed; after a long one the page gets as long for itself
function redraw(figure) {
  dirty.add(figure);
  pass ||= requestAnimationFrame(paint);
}

function paint() {
  const began = performance.now();
  for (const figure of dirty) {
    if (figure.mounted && !figure.visible) continue; // drawn when it is scrolled to
    dirty.delete(figure);
    if (figure.isReady) figure.paint(); // else it asks again when it is
  }
  setTimeout(() => {
    pass = [...dirty].some((figure) => figure.visible) ? requestAnimationFrame(paint) : 0;
  }, performance.now() - began);
}

function take(type, data) {
  if (type !== "snapshot" && type !== "change") return;
  for (const one of data.series) {
    const figure = figures.get(one.key);
    if (!figure) want(one.key);
    else if (type === "change") figure.add(one);
    else figure.showLatest(one, one.last.value);
  }
  // a first answer, or one after too long: what was missed comes from the store
  if (type === "snapshot") figures.forEach((figure) => figure.reload());
  if (data.progress) progress(data);
}

async function poll() {
  const id = document.querySelector("[data-job]").dataset.job;
  take("snapshot", await ask(`/api/v1/jobs/${id}/series/`));
}

function progress(data) {
  // progress comes with the points, much oftener than the job itself changes
  const page = document.querySelector("[data-job]");
  if (page.dataset.status && page.dataset.status !== "running") return;
  document.dispatchEvent(new CustomEvent("progress", { detail: data.progress }));
}

function refresh(wait = 150) {
  // not put off by the next change: points may come ten times a second
  refreshing ||= setTimeout(() => {
    refreshing = 0;
    load();
  }, wait);
}

function readOptions() {
  const query = new URLSearchParams(location.search);
  options.smoothing = Math.min(0.99, Math.max(0, Number(query.get("sm")) || 0));
  options.log = query.get("log") === "y";
  options.x = query.get("x") === "time" ? "time" : "step";
}

function writeOptions() {
  const url = new URL(location.href);
  const set = (name, value) => (value ? url.searchParams.set(name, value) : url.searchParams.delete(name));
  set("sm", options.smoothing || "");
  set("log", options.log ? "y" : "");
  set("x", options.x === "time" ? "time" : "");
  clearTimeout(writing);
  writing = setTimeout(() => history.replaceState(null, "", url), 200); // browsers refuse too many of these
  figures.forEach(redraw);
}

function controls() {
  const slider = document.querySelector("[data-smoothing]");
  if (!slider || slider.dataset.ready) return;
  slider.dataset.ready = "1";
  const log = document.querySelector("[data-log-y]");
  const x = document.querySelector("[data-x]");
  const search = document.querySelector("[data-chart-search]");
  slider.value = options.smoothing;
  log.checked = options.log;
  x.value = options.x;
  slider.addEventListener("input", () => {
    options.smoothing = Number(slider.value);
    writeOptions();
  });
  log.addEventListener("change", () => {
    options.log = log.checked;
    writeOptions();
  });
  x.addEventListener("change", () => {
    options.x = x.value;
    writeOptions();
    for (const figure of figures.values()) {
      figure.resetZoom();
      figure.reload();
    }
  });
  if (search) search.addEventListener("input", (event) => {
    if (event.isComposing) return;
    for (const figure of figures.values()) figure.card.hidden = !figure.key.toLowerCase().includes(search.value.toLowerCase());
  });
}
