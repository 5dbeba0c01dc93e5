// Single keys: never in a field, with a modifier, or while an input method composes; they can be switched off in the list that ? shows.
const OFF = "keys-off";
const HELP = [
  ["/", "search"], ["n", "new job"], ["j k", "move in the list"], ["Enter", "open"],
  ["o l w e", "a job's overview, logs, workers, events"], ["c", "clone the job"], ["Ctrl Enter", "submit the form"],
  ["End", "to the newest line of a log"], ["?", "this list"],
];
const TABS = { o: 1, l: 2, w: 3, e: 4 };

export function typing(event) {
  const field = event.target.closest("input, textarea, select, [contenteditable]");
  return Boolean(field) || event.isComposing || event.keyCode === 229 || event.ctrlKey || event.metaKey || event.altKey;
}

function step(by) {
  const links = [...document.querySelectorAll("[data-row] a.title")];
  if (!links.length) return false;
  const at = links.indexOf(document.activeElement);
  links[Math.min(links.length - 1, Math.max(0, at + by))].focus();
  return true;
}

function open(selector) {
  const link = document.querySelector(selector);
  link?.click();
  return Boolean(link);
}

function obey(key) {
  if (key === "j") return step(1);
  if (key === "k") return step(-1);
  if (key === "n") return open('a[href^="/jobs/new/"]:not([href*="from="])');
  if (key === "c") return open('[data-job] .actions a[href*="from="]');
  if (key in TABS) return open(`[data-job] .tabs a:nth-of-type(${TABS[key]})`);
  if (key !== "/") return false;
  const search = document.querySelector("[data-search], [data-chart-search]");
  search?.focus();
  return Boolean(search);
}

export function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (typing(event) || document.querySelector("dialog[open]")) return;
    if (event.key === "?") help();
    else if (localStorage.getItem(OFF) || !obey(event.key)) return;
    event.preventDefault();
  });
}

function help() {
  const dialog = document.createElement("dialog");
  const title = document.createElement("h2");
  title.textContent = "Keys";
  const list = document.createElement("dl");
  list.className = "facts";
  for (const [keys, does] of HELP) {
    const term = document.createElement("dt");
    for (const key of keys.split(" ")) term.append(Object.assign(document.createElement("kbd"), { textContent: key }), " ");
    list.append(term, Object.assign(document.createElement("dd"), { textContent: does }));
  }
  const off = Object.assign(document.createElement("input"), { type: "checkbox", checked: !localStorage.getItem(OFF) });
  off.addEventListener("change", () => (off.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1")));
  const choice = Object.assign(document.createElement("label"), { className: "choice" });
  choice.append(off, " single keys work");
  const form = Object.assign(document.createElement("form"), { method: "dialog", className: "stack" });
  form.append(title, list, choice, Object.assign(document.createElement("button"), { className: "btn", textContent: "Close" }));
  dialog.setAttribute("aria-label", "Keys");
  dialog.append(form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
