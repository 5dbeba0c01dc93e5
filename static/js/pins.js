// How the charts stand: pinned, ordered, hidden, how large, with which goal. One's own layout goes before that of the
// namespace, that before the job's; the portal keeps it, and says whose it is.
import { gettext, said } from "./words.js";
import { toast } from "./toast.js";
import { view } from "./view_state.js";

const MOST = 1000; // names that the portal keeps of an order
const layout = { pins: [], order: [], hidden: new Set(), log_y: new Set(), sizes: {}, better: {}, goals: {}, source: "usual" };
let place = null;
let told = () => {};

export function startPins(root, whenChanged) {
  place = root;
  told = whenChanged;
}

export function takeLayout(document) {
  Object.assign(layout, document, { hidden: new Set(document.hidden), log_y: new Set(document.log_y) });
}

export function pinned() {
  return view.pin.size ? [...view.pin] : layout.pins; // a link may say others, without keeping them
}

export const isPinned = (key) => pinned().includes(key);
export const isHidden = (key) => layout.hidden.has(key);
export const isLogged = (key) => layout.log_y.has(key);
export const sizeOf = (key) => layout.sizes[key] ?? "small";
export const betterOf = (key) => layout.better[key] ?? null;
export const goalOf = (key) => layout.goals[key] ?? null;
export const source = () => layout.source;

export function hiddenCount(keys) {
  return keys.filter(isHidden).length;
}

export function setPinned(key, on) {
  const most = Number(place.dataset.mostPins);
  if (on && layout.pins.length >= most) {
    toast(said(gettext("{most} charts are pinned already: unpin one first."), { most }));
    return;
  }
  keep({ pins: on ? [...layout.pins, key] : layout.pins.filter((one) => one !== key) }, on
    ? said(gettext("{key} is on the overview of jobs in this namespace"), { key })
    : said(gettext("{key} is not pinned any more"), { key }));
}

export function setHidden(key, on) {
  const hidden = new Set(layout.hidden);
  if (on) hidden.add(key);
  else hidden.delete(key);
  keep({ hidden: [...hidden] }, on ? said(gettext("{key} is hidden; “hidden” above the charts shows it again"), { key }) : said(gettext("{key} is shown again"), { key }));
}

export function setSize(key, size) {
  const words = { small: gettext("{key} is small"), wide: gettext("{key} is two columns wide"), full: gettext("{key} has the whole width") };
  keep({ sizes: { ...layout.sizes, [key]: size } }, said(words[size], { key }));
}

export function setBetter(key, better, words) {
  keep({ better: changed(layout.better, key, better) }, words);
}

export function setGoal(key, goal) {
  keep({ goals: changed(layout.goals, key, goal) }, goal ? said(gettext("{key} has a goal"), { key }) : said(gettext("{key} has no goal any more"), { key }));
}

export function setOrder(order, words) {
  keep({ order: order.slice(0, MOST) }, words);
}

export function setPins(pins, words) {
  keep({ pins }, words);
}

export function reset() {
  return send({ reset: "1" }, place.dataset.layoutUrl, gettext("Your own layout is gone"));
}

export function share() {
  return send({ layout: body({}) }, place.dataset.shareUrl, gettext("Everybody in the namespace sees this layout now, unless they made their own"));
}

export function unshare() {
  return send({ reset: "1" }, place.dataset.shareUrl, gettext("The namespace has no layout any more"));
}

function changed(map, key, value) {
  const { [key]: _before, ...others } = map;
  return value === null ? others : { ...others, [key]: value };
}

function body(part) {
  const { source: _whose, ...kept } = layout;
  return JSON.stringify({ ...kept, hidden: [...layout.hidden], log_y: [...layout.log_y], ...part });
}

function keep(part, words) {
  return send({ layout: body(part) }, place.dataset.layoutUrl, words);
}

async function send(fields, url, words) {
  const token = place.querySelector("[name=csrfmiddlewaretoken]").value;
  const before = order();
  try {
    const answer = await fetch(url, { method: "POST", body: new URLSearchParams(fields), headers: { "X-CSRFToken": token, Accept: "application/json" }, credentials: "same-origin" });
    if (!answer.ok) throw new TypeError((await answer.json().catch(() => ({}))).error?.message ?? said(gettext("the portal answered {status}"), { status: answer.status }));
    takeLayout(await answer.json());
    toast(words);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    toast(said(gettext("The layout was not kept: {why}"), { why: error.message }));
  }
  told({ moved: before !== order() });
}

function order() {
  return JSON.stringify([layout.order, layout.pins]);
}
