// Colours of a terminal as class names; every other escape is dropped. Text becomes text nodes, never markup.
const ESCAPE = /\x1b(?:\[([0-9;:]*)[ -?]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*.)?|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]/g;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

export function render(into, text) {
  let state = { colour: "", bold: false };
  let at = 0;
  ESCAPE.lastIndex = 0;
  for (let match = ESCAPE.exec(text); match; match = ESCAPE.exec(text)) {
    add(into, text.slice(at, match.index), state);
    at = match.index + match[0].length;
    if (match[2] === "m") state = styled(state, match[1]);
  }
  add(into, text.slice(at), state);
}

function add(into, text, state) {
  if (!text) return;
  if (!state.colour && !state.bold) {
    into.append(text);
    return;
  }
  const span = document.createElement("span");
  span.className = [state.colour && `ansi-${state.colour}`, state.bold && "ansi-bold"].filter(Boolean).join(" ");
  span.textContent = text;
  into.append(span);
}

function styled(state, codes) {
  const next = { ...state };
  const list = codes === "" ? [0] : codes.split(/[;:]/).map(Number);
  for (let index = 0; index < list.length; index += 1) {
    const code = list[index];
    if (code === 0) Object.assign(next, { colour: "", bold: false });
    else if (code === 1) next.bold = true;
    else if (code === 22) next.bold = false;
    else if (code >= 30 && code <= 37) next.colour = NAMES[code - 30];
    else if (code >= 90 && code <= 97) next.colour = NAMES[code - 90];
    else if (code === 39) next.colour = "";
    else if (code === 38 || code === 48) {
      // 256 and true colours: the nearest of the eight, so that both themes stay readable
      const kind = list[index + 1];
      if (kind === 5) {
        if (code === 38) next.colour = NAMES[list[index + 2] % 8] || "";
        index += 2;
      } else if (kind === 2) {
        if (code === 38) next.colour = nearest(list.slice(index + 2, index + 5));
        index += 4;
      }
    }
  }
  return next;
}

function nearest([red = 0, green = 0, blue = 0]) {
  const most = Math.max(red, green, blue, 1);
  return NAMES[(red > most / 2) + 2 * (green > most / 2) + 4 * (blue > most / 2)];
}
