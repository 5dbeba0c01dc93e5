// What a terminal would show: colours and weights as class names, every other escape dropped. Text becomes text nodes, never markup.
// Colours are mapped to the eight of the theme, so that both themes stay readable whatever a program chose.
import { codeOf, hiddenIn } from "./words.js";

const ESCAPE = /\x1b(?:\[([0-9;:]*)[ -?]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*.)?|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]/g;
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/;
const MAY_HIDE = /[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\udb40]/;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const HUES = ["red", "yellow", "green", "cyan", "blue", "magenta"]; // every 60 degrees
const PLAIN = { ink: "", paper: "", bold: false, dim: false, italic: false, under: false, struck: false, turned: false };
const SWITCHES = {
  1: { bold: true }, 2: { dim: true }, 3: { italic: true }, 4: { under: true }, 7: { turned: true }, 9: { struck: true },
  21: { under: true }, 22: { bold: false, dim: false }, 23: { italic: false }, 24: { under: false }, 27: { turned: false },
  29: { struck: false }, 39: { ink: "" }, 49: { paper: "" },
};

export function pieces(text) {
  // [{text, look}]: what is shown, in stretches that look alike; look is a class attribute
  if (!CONTROL.test(text)) return text ? [{ text, look: "" }] : [];
  const found = [];
  let state = PLAIN;
  let at = 0;
  const take = (to) => to > at && found.push({ text: text.slice(at, to), look: classes(state) });
  ESCAPE.lastIndex = 0;
  for (let match = ESCAPE.exec(text); match; match = ESCAPE.exec(text)) {
    take(match.index);
    at = match.index + match[0].length;
    if (match[2] === "m") state = styled(state, match[1]);
  }
  take(text.length);
  return found;
}

export function plain(text) {
  return CONTROL.test(text) ? pieces(text).map((piece) => piece.text).join("") : text;
}

export function render(into, text, ranges = []) {
  // ranges: [[from, to]] of the plain text, in order, that are set off as found
  let start = 0;
  let next = 0;
  const parts = [];
  for (const piece of pieces(text)) {
    const end = start + piece.text.length;
    let at = start;
    while (at < end) {
      while (next < ranges.length && ranges[next][1] <= at) next += 1;
      const range = ranges[next];
      const inside = range && range[0] <= at;
      const stop = Math.min(end, range ? (inside ? range[1] : range[0]) : end);
      parts.push(stretch(piece.text.slice(at - start, stop - start), piece.look, inside));
      at = stop;
    }
    start = end;
  }
  into.replaceChildren(...parts);
}

function stretch(text, look, found) {
  const parts = withMarks(text);
  if (!look && !found && typeof parts[0] === "string" && parts.length === 1) return text;
  const element = document.createElement(found ? "mark" : "span");
  if (look) element.className = look;
  element.append(...parts);
  return element;
}

function withMarks(text) {
  // what nobody sees gets a mark of its own, which also keeps it from turning what follows; the character stays, to be copied
  const hidden = MAY_HIDE.test(text) ? hiddenIn(text) : [];
  if (!hidden.length) return [text];
  const parts = [];
  let at = 0;
  for (const { index, char } of hidden) {
    if (index > at) parts.push(text.slice(at, index));
    const mark = Object.assign(document.createElement("bdi"), { className: "odd", textContent: char });
    mark.dataset.code = codeOf(char);
    parts.push(mark);
    at = index + char.length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}

function classes(state) {
  const { ink, paper, bold, dim, italic, under, struck, turned } = state;
  const words = [
    ink && `ansi-${ink}`, paper && `ansi-on-${paper}`, bold && "ansi-bold", dim && "ansi-dim", italic && "ansi-italic",
    under && "ansi-under", struck && "ansi-struck", turned && "ansi-turned",
  ];
  return words.filter(Boolean).join(" ");
}

function styled(state, codes) {
  let next = state;
  const list = codes.split(";");
  for (let index = 0; index < list.length; index += 1) {
    const sub = list[index].split(":").map(Number);
    const code = sub[0];
    if (code === 0) next = PLAIN;
    else if (code === 4 && sub[1] === 0) next = { ...next, under: false };
    else if (SWITCHES[code]) next = { ...next, ...SWITCHES[code] };
    else if (code === 38 || code === 48 || code === 58) {
      // 38;5;n and 38;2;r;g;b, or the same with colons, where a colour space may stand before the red
      const inside = sub.length > 1;
      const rest = inside ? sub.slice(1) : list.slice(index + 1, index + 5).map(Number);
      if (!inside) index += rest[0] === 5 ? 2 : rest[0] === 2 ? 4 : 0;
      const name = rest[0] === 5 ? indexed(rest[1]) : rest[0] === 2 ? nearest(inside && rest.length > 4 ? rest.slice(2, 5) : rest.slice(1, 4)) : "";
      if (name && code !== 58) next = { ...next, [code === 38 ? "ink" : "paper"]: name };
    } else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) next = { ...next, ink: NAMES[code % 10] };
    else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) next = { ...next, paper: NAMES[code % 10] };
  }
  return next;
}

function indexed(number) {
  if (!(number >= 0 && number <= 255)) return "";
  if (number < 16) return NAMES[number % 8];
  if (number >= 232) return number < 244 ? "black" : "white";
  const levels = [0, 95, 135, 175, 215, 255];
  const cube = number - 16;
  return nearest([levels[Math.floor(cube / 36)], levels[Math.floor(cube / 6) % 6], levels[cube % 6]]);
}

function nearest([red = 0, green = 0, blue = 0]) {
  const most = Math.max(red, green, blue);
  const spread = most - Math.min(red, green, blue);
  if (spread < 40 || spread < most / 5) return most < 128 ? "black" : "white"; // a grey
  const hue = most === red ? (green - blue) / spread : most === green ? 2 + (blue - red) / spread : 4 + (red - green) / spread;
  return HUES[Math.round(hue + 6) % 6];
}
