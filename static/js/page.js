// What every page gets, and what its kind of page needs.
import { startClocks } from "./time.js";
import { startConfirm } from "./confirm.js";
import { startCopy } from "./copy.js";
import { startKeys } from "./keys.js";
import { startVanishing } from "./toast.js";
import { startTheme } from "./toggle.js";

startTheme();
startClocks();
startConfirm();
startCopy();
startKeys();
startVanishing();

// on a phone rows of links scroll: the one that is shown now is brought into sight
for (const current of document.querySelectorAll(".tabs [aria-current], .rail [aria-current]")) {
  current.scrollIntoView({ block: "nearest", inline: "center" });
}

const kind = document.body.dataset.page;
if (document.querySelector("[data-job-list]")) import("./list.js").then((list) => list.start());
if (document.querySelector("[data-job]")) import("./job.js").then((job) => job.start());
if (document.querySelector("[data-job-list], [data-job]")) import("./clusters.js").then((clusters) => clusters.start());
if (document.querySelector("[data-log]")) import("./logs.js").then((logs) => logs.start());
if (document.querySelector("[data-charts]")) import("./charts.js").then((charts) => charts.start());
if (document.querySelector("[data-runtime]")) import("./runtime.js").then((runtime) => runtime.start());
if (kind === "new" || document.querySelector("[data-new-job]")) import("./form.js").then((form) => form.start());
