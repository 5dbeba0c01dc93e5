// The grid of figures on a job's page: cards come from the server, points by REST when a card is near the screen, then live.
import { Figure } from "./figure.js";
import { follow } from "./socket.js";
import { whenThemeChanges } from "./toggle.js";


const figures = new Map();
const options = { smoothing: 0, log: false, x: "step" };
let place = null;
let refreshing = 0;

export async function start() {
  place = document.querySelector("[data-charts]");
  readOptions();
  await load();
  const id = document.querySelector("[data-job]").dataset.job;
  follow(`points/${id}`, null, take, () => [...figures.values()].forEach((figure) => figure.mounted && figure.fetch().then(() => figure.draw())));
  whenThemeChanges(() => figures.forEach((figure) => figure.mounted && figure.draw()));
}

async function load() {
  const answer = await fetch(place.dataset.src, { credentials: "same-origin" });
  if (!answer.ok) {
    place.dataset.state = "error";
    return;
  }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const cards = [...fresh.querySelectorAll("[data-chart]")];
  const known = cards.filter((card) => figures.has(card.dataset.key));
  // cards that are drawn stay as they are; the rest of the fragment is new
  for (const card of known) card.replaceWith(figures.get(card.dataset.key).card);
  place.replaceChildren(...document.importNode(fresh.body, true).childNodes);
  for (const card of known) {
    const copy = place.querySelector(`[data-chart][data-key="${CSS.escape(card.dataset.key)}"]`);
    if (copy) copy.replaceWith(figures.get(card.dataset.key).card);
  }
  for (const card of place.querySelectorAll("[data-chart]")) {
    if (figures.has(card.dataset.key)) continue;
    const figure = new Figure(card, options);
    figures.set(card.dataset.key, figure);
    watcher.observe(card);
  }
  controls();
}

// SVG charts cost: only what is near the screen is drawn
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) figures.get(entry.target.dataset.key)?.mount();
  }
}, { rootMargin: "200px" });

function take(type, data) {
  if (type === "snapshot") {
    const unknown = data.series.some((one) => !figures.has(one.key));
    if (unknown) refresh();
    // a reconnect: what was missed comes from the store
    figures.forEach((figure) => figure.mounted && figure.loaded && figure.fetch().then(() => figure.draw()));
  } else if (type === "change") {
    for (const one of data.series) {
      if (figures.has(one.key)) figures.get(one.key).add(one);
      else refresh();
    }
  }
  if (data && data.progress) progress(data);
}

function progress(data) {
  // progress comes with the points, much oftener than the job itself changes
  const page = document.querySelector("[data-job]");
  if (page.dataset.status && page.dataset.status !== "running") return;
  document.dispatchEvent(new CustomEvent("progress", { detail: data.progress }));
}

function refresh() {
  clearTimeout(refreshing);
  refreshing = setTimeout(load, 150);
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
  history.replaceState(null, "", url);
  figures.forEach((figure) => figure.mounted && figure.draw());
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
  });
  if (search) search.addEventListener("input", (event) => {
    if (event.isComposing) return;
    for (const figure of figures.values()) figure.card.hidden = !figure.key.toLowerCase().includes(search.value.toLowerCase());
  });
}
