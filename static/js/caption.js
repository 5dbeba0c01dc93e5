// What a chart shows, in words: a short line under it, and a sentence for who cannot see it.
import { number } from "./row.js";
import { gettext, ngettext, said } from "./words.js";

const LESS_IS_BETTER = /loss|err|perplexity|ppl|mae|mse|rmse|wer|cer|fid/i;
const MORE_IS_BETTER = /acc|auc|f1|bleu|rouge|iou|score|reward|precision|recall|(^|[^a-z])r2/i;
const FLAT = 0.01; // of the range, in which a line counts as flat

export function best(key, one) {
  if (MORE_IS_BETTER.test(key)) return one.highest;
  if (LESS_IS_BETTER.test(key)) return one.lowest;
  return null;
}

function ends(lines) {
  // the best of a metric, or its range where nobody knows which way is better
  const key = lines[0].series.key;
  const extremes = lines.map(({ series }) => series).filter((series) => series.lowest && series.key === key);
  if (!extremes.length) return "";
  const lowest = extremes.map((one) => one.lowest).reduce((a, b) => (b.value < a.value ? b : a));
  const highest = extremes.map((one) => one.highest).reduce((a, b) => (b.value > a.value ? b : a));
  const found = best(key, { lowest, highest });
  if (found) return said(gettext("best {value} at step {step}"), { value: number(found.value), step: number(found.step) });
  if (lowest.value === highest.value) return said(gettext("always {value}"), { value: number(lowest.value) });
  return said(gettext("min {low}, max {high}"), { low: number(lowest.value), high: number(highest.value) });
}

function counted(lines, zoomed) {
  const drawn = lines.reduce((sum, { series }) => sum + series.step.length, 0);
  const there = zoomed
    ? lines.reduce((sum, { series }) => sum + (series.count ? series.count.reduce((all, count) => all + count, 0) : series.step.length), 0)
    : lines.reduce((sum, { series }) => sum + series.total, 0);
  if (drawn < there) return said(gettext("{drawn} of {total} points"), { drawn: number(drawn), total: number(there) });
  return said(ngettext("{count} point", "{count} points", there), { count: number(there) });
}

const inPoints = {
  above: (count) => said(ngettext("{count} point above ▲", "{count} points above ▲", count), { count }),
  below: (count) => said(ngettext("{count} point below ▼", "{count} points below ▼", count), { count }),
  notPositive: (count) => said(ngettext("{count} point ≤ 0 has no place on a log axis", "{count} points ≤ 0 have no place on a log axis", count), { count }),
};
const inBuckets = {
  above: (count) => said(ngettext("points above ▲ in {count} bucket", "points above ▲ in {count} buckets", count), { count }),
  below: (count) => said(ngettext("points below ▼ in {count} bucket", "points below ▼ in {count} buckets", count), { count }),
  notPositive: (count) => said(ngettext("points ≤ 0 in {count} bucket have no place on a log axis", "points ≤ 0 in {count} buckets have no place on a log axis", count), { count }),
};

export function badges(lines, { cut, notPositive, zoomed }) {
  // [{text, title, kind}]
  if (!lines.length) return [];
  const found = [];
  const range = ends(lines);
  if (range) found.push({ text: range, kind: "best" });
  found.push({ text: counted(lines, zoomed), kind: "count", title: gettext("The line goes through the last point of each bucket, the band from its least to its largest. Zoom in for true points.") });
  const bad = lines.reduce((sum, { series }) => sum + series.badCount, 0);
  if (bad) found.push({ text: said(gettext("{count} not finite"), { count: number(bad) }), kind: "bad" });
  const places = lines.some(({ series }) => series.isBucketed) ? inBuckets : inPoints; // of a bucket only its extremes are known
  if (cut && cut.above) found.push({ text: places.above(cut.above), kind: "cut" });
  if (cut && cut.below) found.push({ text: places.below(cut.below), kind: "cut" });
  if (notPositive) found.push({ text: places.notPositive(notPositive), kind: "cut" });
  const curve = lines.map(({ series }) => series.curve).find(Boolean);
  if (curve) found.push({ text: said(gettext("smoothed {weight}"), { weight: curve.weight }), kind: "smooth" });
  return found;
}

export function sentence(key, lines, marks) {
  const one = lines[0]?.series;
  if (!one || !one.step.length) return said(gettext("{key}: no points yet."), { key });
  const finite = one.value.filter(Number.isFinite);
  const about = { key, lines: lines.length, from: number(one.step[0]), to: number(one.step.at(-1)) };
  const parts = [said(ngettext("{key}, {lines} line, steps {from} to {to}.", "{key}, {lines} lines, steps {from} to {to}.", lines.length), about)];
  if (finite.length) parts.push(said(course(one, finite), { first: number(finite[0]), last: number(finite.at(-1)) }));
  parts.push(...marks.map(({ text }) => `${text}.`));
  parts.push(gettext("Arrow keys read the values."));
  return parts.join(" ");
}

function course(one, finite) {
  const range = one.highest.value - one.lowest.value;
  const moved = finite.at(-1) - finite[0];
  if (!range || Math.abs(moved) < FLAT * range) return gettext("It starts at {first} and ends at {last}.");
  return moved > 0 ? gettext("It rises from {first} to {last}.") : gettext("It falls from {first} to {last}.");
}
