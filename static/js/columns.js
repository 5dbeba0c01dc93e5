// The choice of columns and of density: kept in the address, and on this device if one says so.
import { tidy } from "./filters.js";

const KEPT = "list-look";

export function startColumns() {
  const menu = document.querySelector("[data-columns]");
  if (!menu) return;
  const form = menu.querySelector("form");
  const remember = form.querySelector("[data-remember]");
  remember.checked = Boolean(localStorage.getItem(KEPT));
  applyKept();
  menu.addEventListener("click", (event) => {
    const button = event.target.closest("[data-up], [data-down]");
    if (!button) return;
    const item = button.closest("li");
    const other = "up" in button.dataset ? item.previousElementSibling : item.nextElementSibling;
    if (other) "up" in button.dataset ? other.before(item) : other.after(item);
    button.focus();
  });
  form.addEventListener("change", (event) => {
    if ("always" in event.target.dataset) event.target.checked = true; // a row without its name is no row
  });
  form.addEventListener("formdata", ({ formData }) => tidy(formData));
  form.addEventListener("submit", () => {
    const query = new URLSearchParams(new FormData(form));
    const look = new URLSearchParams([...query].filter(([name]) => name === "cols" || name === "density"));
    if (remember.checked) localStorage.setItem(KEPT, String(look));
    else localStorage.removeItem(KEPT);
  });
  document.querySelector("[data-density]")?.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || !localStorage.getItem(KEPT)) return;
    // what is kept goes with the choice, else the next page would take it back
    const kept = new URLSearchParams(localStorage.getItem(KEPT));
    const density = new URL(link.href).searchParams.get("density");
    if (density) kept.set("density", density);
    else kept.delete("density");
    if (kept.size) localStorage.setItem(KEPT, String(kept));
    else localStorage.removeItem(KEPT);
  });
  menu.querySelector("[data-forget]").addEventListener("click", () => localStorage.removeItem(KEPT));
}

function applyKept() {
  const kept = localStorage.getItem(KEPT);
  const query = new URLSearchParams(location.search);
  if (!kept || query.has("cols") || query.has("density")) return;
  for (const [name, value] of new URLSearchParams(kept)) query.set(name, value);
  location.replace(`?${query}`);
}
