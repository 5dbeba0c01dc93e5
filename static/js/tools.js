// The tools above the charts: each writes the view, and shows what the view says.
import { hiddenCount, pinned, reset, share, source, unshare } from "./pins.js";
import { write } from "./copy.js";
import { address, change, view } from "./view_state.js";
import { toast } from "./toast.js";
import { gettext, ngettext, said } from "./words.js";

const USUAL = 0.6; // where the slider stands as long as nobody moved it
let root = null;

export function startTools(place) {
  root = place;
  const on = (name, event, take) => root.querySelector(`[data-${name}]`)?.addEventListener(event, (what) => take(what.target, what));
  for (const menu of root.querySelectorAll(".menu")) {
    const close = () => (menu.open = false);
    menu.addEventListener("click", (event) => event.target.closest(".sheet :is(button, a)") && close());
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      close();
      menu.querySelector("summary").focus();
      event.preventDefault();
    });
    document.addEventListener("pointerdown", (event) => !menu.contains(event.target) && close());
  }
  on("chart-search", "input", (input, event) => !event.isComposing && change({ q: input.value }, { passing: true }));
  on("chart-search", "compositionend", (input) => change({ q: input.value }, { passing: true }));
  on("x", "change", (select) => change({ x: select.value, range: null }));
  on("smoothing", "input", (slider) => smoothing(slider.value, { passing: true }));
  on("smoothing", "change", (slider) => smoothing(slider.value));
  on("smoothing-number", "change", (input) => input.value !== "" && smoothing(input.value));
  on("smoothing-by", "change", (select) => change(select.value === "auto" ? { sm: null, by: "ema" } : { by: select.value, sm: view.sm ?? USUAL }));
  on("log-y", "change", (box) => change({ logY: box.checked, logy: new Set() }));
  on("log-x", "change", (box) => change({ logX: box.checked }));
  on("outliers", "change", (box) => change({ clips: box.checked }));
  on("overlay", "change", (box) => change({ overlays: box.checked, hide: new Set() }));
  on("attempts", "change", (box) => change({ allAttempts: box.checked }));
  on("marks", "change", (box) => change({ marks: box.checked }));
  on("pan", "change", (box) => change({ pans: box.checked }));
  on("live-toggle", "click", () => change(view.range ? { range: null, y: new Map(), live: true } : { live: !view.live }));
  on("reset-zoom", "click", () => change({ range: null, y: new Map() }));
  on("copy-view", "click", () => copy());
  on("share-layout", "click", () => share());
  on("reset-layout", "click", () => reset());
  on("unshare-layout", "click", () => unshare());
  on("show-hidden", "click", () => root.dispatchEvent(new CustomEvent("show-hidden")));
}

function smoothing(text, options) {
  const weight = Number(text);
  if (Number.isFinite(weight)) change({ sm: Math.min(0.999, Math.max(0, weight)) }, options);
}

async function copy() {
  try {
    await write(address({ pins: pinned() }).href);
    toast(gettext("A link to this view is copied"));
  } catch (error) {
    toast(said(gettext("Could not be copied: {why}"), { why: error.message }));
  }
}

export function paintTools({ shown, all, keys, showsHidden, isBroken }) {
  const at = (name) => root.querySelector(`[data-${name}]`);
  const put = (name, property, value) => {
    const element = at(name);
    if (element && element !== document.activeElement && element[property] !== value) element[property] = value;
  };
  put("chart-search", "value", view.q);
  at("chart-search")?.toggleAttribute("aria-invalid", isBroken);
  put("x", "value", view.x);
  put("smoothing", "value", String(view.sm ?? USUAL));
  put("smoothing-number", "value", view.sm === null ? "" : String(view.sm));
  put("smoothing-by", "value", view.sm === null ? "auto" : view.by);
  for (const [name, on] of [["log-y", view.logY], ["log-x", view.logX], ["outliers", view.clips], ["overlay", view.overlays], ["attempts", view.allAttempts], ["marks", view.marks], ["pan", view.pans]]) {
    const box = at(name);
    if (box) box.checked = on;
  }
  const zoomed = Boolean(view.range) || view.y.size > 0;
  const resetZoom = at("reset-zoom");
  if (resetZoom) resetZoom.hidden = !zoomed;
  const live = at("live-toggle");
  if (live) {
    live.textContent = !view.live || view.range ? gettext("Resume") : gettext("Pause");
    at("live-words").textContent = view.range ? gettext("paused by zoom") : view.live ? gettext("live") : gettext("paused");
    at("live-words").dataset.state = view.range || !view.live ? "paused" : "live";
  }
  const count = at("chart-count");
  if (count) count.textContent = shown === all ? said(ngettext("{count} chart", "{count} charts", all), { count: all }) : said(gettext("{shown} of {count} charts"), { shown, count: all });
  const hidden = at("show-hidden");
  if (hidden) {
    const number = hiddenCount(keys);
    hidden.hidden = !number;
    hidden.setAttribute("aria-pressed", String(showsHidden));
    hidden.textContent = said(ngettext("{count} hidden", "{count} hidden", number), { count: number });
  }
  for (const words of root.querySelectorAll("[data-layout-of]")) words.hidden = words.dataset.layoutOf !== source();
  const own = at("reset-layout");
  if (own) own.hidden = source() !== "own";
  const shared = at("unshare-layout");
  if (shared) shared.hidden = source() !== "namespace";
}
