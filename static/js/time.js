// Moments and lengths of time, as people read them: relative, with the whole moment on hover and focus.
import { gettext, said } from "./words.js";

const UNITS = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];

export function span(seconds) {
  // "6 h 12 m": the two largest units
  const parts = [];
  let rest = Math.max(0, Math.round(seconds));
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count) parts.push(`${count} ${unit}`);
    if (parts.length === 2 || (parts.length && unit === "m")) break;
  }
  return parts.join(" ") || "0 s";
}

export function clock(moment = new Date()) {
  return moment.toLocaleTimeString([], { hour12: false });
}

function stamp(moment) {
  // the day only where it is not today
  const today = moment.toDateString() === new Date().toDateString();
  return today ? clock(moment) : `${moment.toLocaleDateString()} ${clock(moment)}`;
}

function show(element) {
  const moment = new Date(element.dataset.time);
  if (Number.isNaN(moment.getTime())) return;
  const style = element.dataset.timeStyle;
  const age = (Date.now() - moment) / 1000;
  if (element.dataset.titled !== element.dataset.time) {
    element.dataset.titled = element.dataset.time; // written anew every second it would flicker under the pointer
    element.title = moment.toLocaleString([], { hour12: false, timeZoneName: "short" });
  }
  const words = style === "clock" ? clock(moment) : style === "full" ? stamp(moment) : style === "age" ? span(age) : age < 5 ? gettext("just now") : said(gettext("{age} ago"), { age: span(age) });
  if (element.textContent !== words) element.textContent = words;
}

export function startClocks() {
  const all = () => document.querySelectorAll("time[data-time]").forEach(show);
  all();
  setInterval(all, 1000);
}

export function setTime(element, iso) {
  if (!element) return;
  element.dataset.time = iso || "";
  element.dateTime = iso || "";
  if (iso) show(element);
  else element.textContent = "";
}
