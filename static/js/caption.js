// What a chart shows, in words: a short line under it, and a sentence for who cannot see it.
import { betterOf } from "./pins.js";
import { number } from "./row.js";
import { gettext, ngettext, said } from "./words.js";

const LESS_IS_BETTER = /loss|err|perplexity|ppl|mae|mse|rmse|wer|cer|fid/i;
const MORE_IS_BETTER = /acc|auc|f1|bleu|rouge|iou|score|reward|precision|recall|(^|[^a-z])r2/i;
const FLAT = 0.01; // of the range, in which a line counts as flat

// min or max: which way is better by the name of a metric; null where it does not say
export function directionByName(key) {
  if (MORE_IS_BETTER.test(key)) return "max";
  return LESS_IS_BETTER.test(key) ? "min" : null;
}

export function directionOf(key) {
  return betterOf(key) ?? directionByName(key);
}

const bests = { min: gettext("best (min) {value} at step {step}"), max: gettext("best (max) {value} at step {step}") };
const extremes = { min: gettext("min {value}"), max: gettext("max {value}") };

function ends(lines) {
  // least and largest as the portal counted them over every point, the better of both first, and the last
  const { key } = lines[0].series;
  const some = lines.map(({ series }) => series).filter((series) => series.lowest && series.key === key);
  if (!some.length) return [];
  const min = some.map((one) => one.lowest).reduce((a, b) => (b.value < a.value ? b : a));
  const max = some.map((one) => one.highest).reduce((a, b) => (b.value > a.value ? b : a));
  if (min.value === max.value) return [{ text: said(gettext("always {value}"), { value: number(min.value) }), kind: "best" }];
  const ways = directionOf(key) === "max" ? ["max", "min"] : ["min", "max"];
  const found = ways.map((way) => {
    const { value, step } = { min, max }[way];
    const isBest = directionOf(key) === way;
    const text = said(isBest ? bests[way] : extremes[way], { value: number(value), step: number(step) });
    return { text, kind: isBest ? "best" : "extreme", title: said(gettext("at step {step}"), { step: number(step) }) };
  });
  const lead = lines[0].series;
  if (lead.step.length) found.push({ text: said(gettext("last {value}"), { value: number(shownValue(lead.value.at(-1))) }), kind: "extreme", title: said(gettext("at step {step}"), { step: number(lead.step.at(-1)) }) });
  return found;
}

function shownValue(value) {
  return Number.isFinite(value) ? value : String(value);
}

function reached({ value, label, better, step, isKnown, why }) {
  const goal = label ? said(gettext("goal “{label}”"), { label }) : gettext("goal");
  const about = { goal, sign: better === "min" ? "≤" : "≥", value: number(value), step: number(step) };
  if (step !== null) return { text: said(gettext("{goal} {sign} {value}: reached at step {step}"), about), kind: "goal reached" };
  if (isKnown) return { text: said(gettext("{goal} {sign} {value}: not reached"), about), kind: "goal" };
  return { text: said(gettext("{goal} {sign} {value}"), about), kind: "goal", title: why };
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

export function badges(lines, { cut, notPositive, zoomed, goal }) {
  // [{text, title, kind}]
  if (!lines.length) return [];
  const found = [];
  found.push(...ends(lines));
  if (goal) found.push(reached(goal));
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
