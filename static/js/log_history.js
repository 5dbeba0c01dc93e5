// The earlier states of a progress bar, which are one line until somebody asks.
import { clockOf, fromOf, seqOf, whole } from "./lines.js";
import { render } from "./ansi.js";
import { ask } from "./socket.js";
import { toast } from "./toast.js";
import { gettext, said } from "./words.js";

const SHOWN = 200;

export function startHistory(view) {
  view.box.addEventListener("click", (event) => {
    const button = event.target.closest(".updates");
    if (button) toggle(view, button);
  });
}

async function toggle(view, button) {
  const line = button.closest(".line");
  if (line.nextElementSibling?.matches(".line-history")) {
    line.nextElementSibling.remove();
    button.setAttribute("aria-expanded", "false");
    return;
  }
  view.pause();
  const { worker, attempt } = line.dataset;
  const query = new URLSearchParams({ worker, attempt, before: seqOf(line), limit: SHOWN });
  let lines;
  try {
    ({ lines } = await ask(`/api/v1/jobs/${view.id}/logs/?${query}`));
  } catch (error) {
    toast(said(gettext("The earlier states could not be loaded: {why}"), { why: error.message }));
    return;
  }
  const states = lines.filter((one) => one.overwritten && one.seq >= fromOf(line));
  const place = document.createElement("div");
  place.className = "line-history";
  place.setAttribute("role", "group");
  place.setAttribute("aria-label", said(gettext("Earlier states of line {number}"), { number: seqOf(line) }));
  const total = Number(line.dataset.updates);
  if (total > states.length) {
    const words = said(gettext("The latest {shown} of {total}."), { shown: whole(states.length), total: whole(total) });
    place.append(Object.assign(document.createElement("p"), { textContent: words }));
  }
  for (const state of states) place.append(row(state));
  if (!line.isConnected || line.nextElementSibling?.matches(".line-history")) return;
  line.after(place);
  button.setAttribute("aria-expanded", "true");
  place.scrollTop = place.scrollHeight; // the newest of them
  place.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function row(state) {
  const element = document.createElement("div");
  element.className = "update";
  const time = Object.assign(document.createElement("time"), { className: "t", textContent: clockOf(state.time) });
  const text = document.createElement("span");
  text.className = "x";
  render(text, state.text);
  element.append(time, " ", text);
  return element;
}
