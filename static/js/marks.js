// What happened to the job, as vertical marks in every chart: attempts, checkpoints, hold and release, the warning of its limit.
import { ask } from "./socket.js";
import { view } from "./view_state.js";
import { gettext, said } from "./words.js";

const FLAG = 14; // px
const MOST_WIDE = 240; // px of the words
const NEAR = 12; // px: marks closer than that are one
const PACE = 60_000; // ms between two looks while the job runs: nobody tells of a checkpoint
const SETTLE = 1500; // ms after a change of the job
const SHAPES = { attempt: "▸", checkpoint: "◆", hold: "■", release: "▷", limit: "!" };
let marks = [];
let version = 0;

// the answer is for whoever wants to look: first when the charts are drawn, which must not wait for it
export function startMarks(url, whenChanged) {
  const page = document.querySelector("[data-job]");
  let waiting = 0;
  const look = async () => {
    waiting = 0;
    if (!view.marks) return;
    try {
      const found = (await ask(url)).marks;
      if (JSON.stringify(found) === JSON.stringify(marks)) return;
      marks = found;
      version += 1;
      whenChanged();
    } catch {
      setTimeout(soon, PACE); // charts are whole without them
    }
  };
  const soon = () => (waiting ||= setTimeout(look, SETTLE));
  new MutationObserver(soon).observe(page, { attributeFilter: ["data-version", "data-status"] });
  setInterval(() => page.dataset.status === "running" && document.visibilityState === "visible" && soon(), PACE);
  return look;
}

export function wordsOf({ text, time, step }) {
  const at = new Date(time * 1000).toLocaleString([], { hour12: false });
  return step === null ? said(gettext("{text} {at}"), { text, at }) : said(gettext("{text} {at}, step {step}"), { text, at, step: step.toLocaleString("en") });
}

// those that can be placed along x, as {mark, x} in what is drawn
export function placed(axis) {
  if (!view.marks) return [];
  return marks.map((mark) => ({ mark, x: axis.place(mark) })).filter(({ x }) => x !== null);
}

export function hasMarks() {
  return view.marks && marks.length > 0;
}

export class Marks {
  constructor(figure) {
    this.figure = figure;
    this.said = "";
    this.place = document.createElement("div");
    this.place.className = "marks";
    this.place.setAttribute("role", "group");
    this.place.setAttribute("aria-label", gettext("Events of the job"));
    this.place.addEventListener("keydown", (event) => this.key(event));
    figure.plot.parentElement.append(this.place);
  }

  show() {
    const { xaxis, _size: size } = this.figure.plot._fullLayout;
    const found = [];
    for (const { mark, x } of placed(this.figure.axis)) {
      let left = Math.round(xaxis.c2p(x));
      // the job began before its first point, and may go on behind its last: such a mark stands at the edge of the whole
      if (!view.range && Number.isFinite(left)) left = Math.min(xaxis._length, Math.max(0, left));
      if (!(left >= 0 && left <= xaxis._length)) continue;
      const near = found.find((one) => Math.abs(one.left - left) < NEAR);
      if (near) near.marks.push(mark);
      else found.push({ left, marks: [mark] });
    }
    found.sort((a, b) => a.left - b.left);
    const says = JSON.stringify([version, xaxis._offset, size.t, size.h, found.map(({ left, marks: some }) => [left, some.length])]);
    if (says === this.said) return;
    this.said = says;
    const focused = [...this.place.children].indexOf(document.activeElement);
    this.place.hidden = !found.length;
    this.place.replaceChildren(...found.map((one, index) => this.flag(one, { xaxis, size, isFirst: index === Math.max(0, focused) })));
    if (focused >= 0) this.place.children[Math.min(focused, found.length - 1)]?.focus();
  }

  flag({ left, marks: some }, { xaxis, size, isFirst }) {
    const flag = document.createElement("button");
    const words = document.createElement("span");
    flag.type = "button";
    flag.className = "flag";
    flag.tabIndex = isFirst ? 0 : -1; // one stop of the Tab key for all marks of a chart
    flag.dataset.kind = some.at(-1).kind;
    flag.dataset.shape = some.length > 1 ? String(some.length) : SHAPES[some[0].kind] ?? "▸";
    // above the lines; at the edges it stands inside, and only its line at the edge
    const inside = Math.min(xaxis._length - FLAG / 2, Math.max(FLAG / 2, left));
    flag.style.left = `${xaxis._offset + inside - FLAG / 2}px`;
    flag.style.top = `${size.t - FLAG - 2}px`;
    flag.style.setProperty("--at", `${left - inside + FLAG / 2 - 1}px`);
    flag.style.setProperty("--tall", `${size.h}px`);
    words.textContent = some.map(wordsOf).join("\n");
    const isLeft = left > xaxis._length / 2;
    words.className = isLeft ? "left" : "right";
    words.style.maxWidth = `${Math.min(MOST_WIDE, (isLeft ? xaxis._offset + left : xaxis._length - left) - FLAG)}px`;
    flag.setAttribute("aria-label", words.textContent);
    flag.append(words);
    return flag;
  }

  key(event) {
    const stride = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") {
      document.activeElement.blur();
      event.preventDefault();
    }
    if (!stride) return;
    const flags = [...this.place.children];
    const next = flags[flags.indexOf(document.activeElement) + stride];
    if (!next) return;
    event.preventDefault();
    for (const flag of flags) flag.tabIndex = flag === next ? 0 : -1;
    next.focus();
  }

  hide() {
    this.said = "";
    this.place.replaceChildren();
  }
}
