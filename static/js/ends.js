// "Tell me when it ends": a notice of the browser for each job that somebody asked about here, from whatever page of the portal is open.
import { keep, kept } from "./notices.js";
import { ask, follow, unfollow } from "./socket.js";
import { toast } from "./toast.js";
import { gettext, said } from "./words.js";

const MOST = 20;
const WORDS = {
  succeeded: gettext("{name} succeeded"), failed: gettext("{name} failed"), cancelled: gettext("{name} was cancelled"),
};

function watched() {
  const found = kept("ends", {});
  return found && typeof found === "object" && !Array.isArray(found) ? found : {};
}

function forget(id) {
  const jobs = watched();
  delete jobs[id];
  keep("ends", jobs);
  if (id !== shown()) unfollow(`job/${id}`);
  paint();
}

function shown() {
  return document.querySelector("[data-job][data-version]")?.dataset.job ?? "";
}

function look(id, job) {
  if (job.status in WORDS && id in watched()) tell(id, job);
}

async function tell(id, job) {
  // of several tabs the first one that has the lock tells it; the others find it told
  const claim = () => {
    if (!(id in watched())) return;
    forget(id);
    const words = said(WORDS[job.status], { name: job.name });
    toast(words, { href: `/jobs/${id}/` });
    notify(words, { id, reason: job.reason?.text ?? "" });
  };
  if (navigator.locks) await navigator.locks.request(`ends-${id}`, claim);
  else claim();
}

function notify(words, { id, reason }) {
  try {
    const notice = new Notification(words, { body: reason, tag: `trainhall-${id}`, icon: document.querySelector('link[rel="icon"]')?.href });
    notice.addEventListener("click", () => {
      notice.close();
      window.focus();
      if (id !== shown()) location.assign(`/jobs/${id}/`);
    });
  } catch {
    // some phones have notices only for installed pages, others took the right back: it stands behind the bell
  }
}

// --- asking ---

async function choose(page) {
  const { job: id, name } = page.dataset;
  if (id in watched()) {
    forget(id);
    toast(said(gettext("You will not be told when {name} ends."), { name }));
    return;
  }
  const why = await refusal();
  if (why) return toast(why);
  const jobs = watched();
  if (Object.keys(jobs).length >= MOST) return toast(said(gettext("You are told of {most} jobs already: take one off the list behind the bell."), { most: MOST }));
  keep("ends", { ...jobs, [id]: { name } });
  paint();
  toast(said(gettext("You will be told when {name} ends, while a page of the portal is open in this browser."), { name }));
}

async function refusal() {
  // in words why this browser will tell nothing; asked only because somebody clicked
  if (!("Notification" in window)) return gettext("This browser has no notices for web pages.");
  if (!window.isSecureContext) return gettext("Browsers show notices only for portals with https.");
  const answer = Notification.permission === "default" ? await Notification.requestPermission() : Notification.permission;
  if (answer === "granted") return "";
  if (answer === "denied") return gettext("This browser refuses notices from the portal. Its settings for this site can allow them.");
  return gettext("Notices were not allowed, so you will not be told.");
}

function paint() {
  const page = document.querySelector("[data-job][data-version]");
  const button = page?.querySelector("[data-tell-end]");
  if (!button) return;
  const on = page.dataset.job in watched();
  button.setAttribute("aria-pressed", String(on));
  button.textContent = on ? gettext("You will be told") : gettext("Tell me when it ends");
}

export function list() {
  // what stands behind the bell: whose ends are told, and a way to take each off
  const jobs = Object.entries(watched());
  if (!jobs.length) return [];
  const heading = Object.assign(document.createElement("h3"), { textContent: gettext("You will be told when these end") });
  const items = Object.assign(document.createElement("ul"), { className: "notices" });
  items.append(...jobs.map(([id, { name }]) => {
    const item = document.createElement("li");
    const link = Object.assign(document.createElement("a"), { href: `/jobs/${encodeURIComponent(id)}/`, className: "link", textContent: name ?? id });
    const off = Object.assign(document.createElement("button"), { type: "button", className: "btn small", textContent: gettext("Do not tell") });
    off.setAttribute("aria-label", said(gettext("Do not tell when {name} ends"), { name: name ?? id }));
    off.addEventListener("click", () => {
      forget(id);
      const next = item.nextElementSibling ?? item.previousElementSibling;
      item.remove();
      (next?.querySelector("button") ?? items.closest("dialog").querySelector("form > .btn:last-child")).focus();
    });
    item.append(link, " ", off);
    return item;
  }));
  return [heading, items];
}

export function startEnds() {
  const here = shown();
  for (const id of Object.keys(watched()).slice(0, MOST)) {
    if (id === here) continue; // its page follows it, and tells us
    follow(`job/${id}`, null, (type, data) => {
      if (type === "refused" || type === "gone") forget(id);
      else if (data.job) look(id, data.job);
    }, async () => look(id, await ask(`/api/v1/jobs/${encodeURIComponent(id)}/`)));
  }
  document.addEventListener("job", ({ detail }) => look(detail.id, detail));
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-tell-end]")) choose(document.querySelector("[data-job][data-version]"));
  });
  document.addEventListener("refreshed", paint);
  addEventListener("storage", (event) => event.key?.startsWith("ends:") && paint()); // another tab
  paint();
}
