// Which charts stand on the overview and which are hidden: one's own layout over that of the namespace, kept by the portal.
import { gettext, said } from "./words.js";
import { toast } from "./toast.js";
import { view } from "./view_state.js";

const layout = { pins: [], hidden: [], own: false };
let place = null;
let told = () => {};

export function startPins(root, whenChanged) {
  place = root;
  told = whenChanged;
}

export function takeLayout({ pins, hidden, own }) {
  Object.assign(layout, { pins, hidden: new Set(hidden), own });
}

export function pinned() {
  return view.pin.size ? [...view.pin] : layout.pins; // a link may say others, without keeping them
}

export function isPinned(key) {
  return pinned().includes(key);
}

export function isHidden(key) {
  return layout.hidden.has(key);
}

export function hiddenCount(keys) {
  return keys.filter(isHidden).length;
}

export function isOwn() {
  return layout.own;
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

export function reset() {
  return send(new URLSearchParams({ reset: "1" }), place.dataset.layoutUrl, gettext("Back to the layout of the namespace"));
}

export function share() {
  return send(body({}), place.dataset.shareUrl, gettext("Everybody in the namespace sees this layout now, unless they made their own"));
}

function body({ pins = layout.pins, hidden = [...layout.hidden] }) {
  const fields = new URLSearchParams();
  for (const key of pins) fields.append("pin", key);
  for (const key of hidden) fields.append("hide", key);
  return fields;
}

function keep(part, words) {
  return send(body(part), place.dataset.layoutUrl, words);
}

async function send(fields, url, words) {
  const token = place.querySelector("[name=csrfmiddlewaretoken]").value;
  try {
    const answer = await fetch(url, { method: "POST", body: fields, headers: { "X-CSRFToken": token, Accept: "application/json" }, credentials: "same-origin" });
    if (!answer.ok) throw new TypeError((await answer.json().catch(() => ({}))).error?.message ?? said(gettext("the portal answered {status}"), { status: answer.status }));
    takeLayout(await answer.json());
    toast(words);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    toast(said(gettext("The layout was not kept: {why}"), { why: error.message }));
  }
  told();
}
