// The numbers on the chips of a list and the places of what waits there: asked for anew when a job comes, goes or stands elsewhere.
import { follow } from "./socket.js";

const PAUSE = 2000; // ms between two questions
const PLACES = 20000; // ms: the line moves by what other namespaces do, of which nothing is told here
const standing = new Map(); // id -> status last heard of
let timer = 0;
let askedAt = 0;

export function startCounts(topic, rows) {
  if (!chips()) return;
  setInterval(() => document.visibilityState === "visible" && waiting().length && recount(), PLACES);
  for (const row of rows) standing.set(row.dataset.row, row.dataset.status);
  const [head, query] = topic.split("?");
  const wide = new URLSearchParams(query);
  if (!wide.has("status")) return;
  // a list of some statuses is not told of jobs in the others, but each chip has a number
  wide.delete("status");
  let joined = false;
  const take = (type, data) => {
    if (type === "change") counted(data.job);
    else if (type === "gone") recount();
    else if (type === "snapshot") {
      if (!joined) for (const job of data.jobs) if (!standing.has(job.id)) standing.set(job.id, job.status);
      joined = true;
      data.jobs.forEach(counted);
    }
  };
  follow(`${head}?${wide}`, null, take, () => recount());
}

export function counted(job) {
  if (standing.get(job.id) === job.status) return;
  standing.set(job.id, job.status);
  recount();
}

export function recount(id = null) {
  if (id) standing.delete(id);
  if (!chips() || timer) return;
  timer = setTimeout(ask, Math.max(0, askedAt + PAUSE - Date.now()));
}

function chips() {
  return document.querySelector('[data-refresh="chips"]');
}

async function ask() {
  askedAt = Date.now();
  const address = new URL(location.href);
  address.searchParams.set("part", "counts");
  if (waiting().length) address.searchParams.set("waits", waiting().map((one) => one.dataset.place).join(","));
  try {
    const answer = await fetch(address, { credentials: "same-origin", headers: { Accept: "text/html" } });
    if (answer.ok && !answer.redirected) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    // the portal is away, which the page says elsewhere; its return is a snapshot, which asks again
    standing.clear();
  }
  timer = 0;
}

function waiting() {
  return [...document.querySelectorAll('tr[data-status="queued"] [data-place]')].filter((one) => one.dataset.place);
}

function show(page) {
  const places = new Map([...page.querySelectorAll("[data-place]")].map((one) => [one.dataset.place, one.textContent]));
  for (const shown of waiting()) {
    const text = places.get(shown.dataset.place) || "";
    if (shown.textContent !== text) shown.textContent = text;
    shown.hidden = !text;
    shown.title = shown.closest("[data-place-words]")?.dataset.placeWords || "";
  }
  for (const part of page.querySelectorAll("[data-refresh]")) {
    const place = document.querySelector(`[data-refresh="${part.dataset.refresh}"]`);
    if (place && place.textContent !== part.textContent) replace(place, part);
  }
}

function replace(place, part) {
  const before = [...place.querySelectorAll("a")];
  const after = [...part.querySelectorAll("a")];
  const address = (link) => link.getAttribute("href");
  if (before.length && before.length === after.length && before.every((link, index) => address(link) === address(after[index]))) {
    // a link that stays is the same element: it may be pressed, or have the focus, at this moment
    before.forEach((link, index) => link.replaceChildren(...after[index].childNodes));
    return;
  }
  const focused = place.contains(document.activeElement) ? address(document.activeElement) : null;
  place.replaceChildren(...part.childNodes);
  if (focused) [...place.querySelectorAll("a")].find((link) => address(link) === focused)?.focus({ preventScroll: true });
}
