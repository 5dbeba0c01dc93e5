// How far off the end is by now, and whether reports have stopped: an estimate goes on with the clock or is not shown at all.
import { gettext, said } from "./words.js";
import { span } from "./time.js";

const now = () => Date.now() / 1000;

export function isStale(progress) {
  return Boolean(progress && progress.stale_at && now() > progress.stale_at);
}

export function eta(progress) {
  // seconds from now; null where nobody knows, and where nobody has said anything for three times as long as usual
  if (!progress || !progress.done_at || isStale(progress)) return null;
  return Math.max(0, progress.done_at - now());
}

export function silence(progress) {
  return isStale(progress) ? said(gettext("no report for {span}"), { span: span(now() - progress.at) }) : "";
}
