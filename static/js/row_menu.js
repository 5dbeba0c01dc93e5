// What can be done with one row of the list, by the key "." on it.
import { gettext } from "./words.js";
import { act, toggle } from "./bulk.js";
import { bound } from "./row.js";
import { sheet } from "./sheet.js";

export function openMenu(row) {
  const id = row.dataset.row;
  const items = document.createElement("ul");
  items.className = "menu-list";
  const dialog = sheet(bound(row, "name")?.textContent || id, [items]);
  const item = (words) => {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "btn quiet", textContent: words });
    items.appendChild(document.createElement("li")).append(button);
    return button;
  };
  const go = (words, address) => item(words).addEventListener("click", () => (location.href = address));
  const run = (words, does) => item(words).addEventListener("click", () => {
    dialog.close();
    does();
  });
  go(gettext("Open"), `/jobs/${id}/`);
  go(gettext("Logs"), `/jobs/${id}/logs/`);
  go(gettext("Clone"), `/jobs/new/?${new URLSearchParams({ from: id })}`);
  if (!row.dataset.ended) {
    run(gettext("Stop…"), () => act("stop", [row]));
    if (bound(row, "held")?.hidden === false) run(gettext("Release"), () => act("release", [row]));
    else run(gettext("Hold"), () => act("hold", [row]));
  }
  if ("archived" in row.dataset) run(gettext("Bring back from the archive"), () => act("unarchive", [row]));
  else if (row.dataset.ended) run(gettext("Archive"), () => act("archive", [row]));
  run(gettext("Select"), () => toggle(row));
  item(gettext("Copy the id")).dataset.copy = id;
  items.querySelector("button").focus();
  items.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const all = [...items.querySelectorAll("button")];
    all[(all.indexOf(document.activeElement) + by + all.length) % all.length].focus();
  });
}
