// A cluster that cannot be seen is an age on the page: past half a minute a banner says so, wherever jobs are shown live.
import { announce } from "./toast.js";
import { ask, follow } from "./socket.js";
import { span } from "./time.js";

const SILENT = 30; // seconds
const seen = new Map(); // name -> when it was seen last, by this device's clock; null: never

function start() {
  const banner = document.querySelector("[data-cluster-banner]");
  if (!banner) return;
  follow("cluster", null, (type, data) => type !== "refused" && take(banner, data.clusters), async () => {
    take(banner, (await ask("/api/v1/clusters/")).results);
  });
  setInterval(() => show(banner), 1000);
}

function take(banner, clusters) {
  seen.clear();
  for (const one of clusters) {
    // the server's count of seconds, not its clock: this device's may be wrong
    seen.set(one.name, one.silent_seconds === null ? null : Date.now() - one.silent_seconds * 1000);
  }
  show(banner);
}

function show(banner) {
  const late = [...seen].filter(([, at]) => at !== null && (Date.now() - at) / 1000 > SILENT);
  const sentences = late.map(([name, at]) =>
    banner.dataset.words.replace("{name}", name).replace("{age}", span((Date.now() - at) / 1000)));
  const words = banner.querySelector("span");
  if (words.textContent !== sentences.join(" ")) words.textContent = sentences.join(" ");
  if (banner.hidden && late.length) announce(words.textContent); // once, not every second of its age
  banner.hidden = late.length === 0;
  grey(new Set(late.map(([name]) => name)));
}

function grey(late) {
  // what is over stays as it is; a job of a cluster that answers is as true as ever
  for (const shown of document.querySelectorAll("[data-cluster][data-status]")) {
    const open = ["queued", "starting", "running"].includes(shown.dataset.status);
    shown.toggleAttribute("data-unseen", open && late.has(shown.dataset.cluster));
  }
}

start();
