// The filters are a form that asks by GET: a choice asks at once, and what is empty stays out of the address.
export function startFilters() {
  const form = document.querySelector("form[data-filters]");
  if (!form) return;
  form.addEventListener("change", (event) => {
    if (event.target.matches("select, input[type=date]")) form.requestSubmit();
  });
  form.addEventListener("formdata", ({ formData }) => tidy(formData));
  document.addEventListener("click", (event) => {
    // a menu closes when one presses elsewhere
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
}

export function tidy(formData) {
  const kept = [...formData].filter(([name, value]) => value !== "" && name !== "cols");
  const columns = formData.getAll("cols").flatMap((value) => value.split(","));
  for (const name of new Set([...formData.keys()])) formData.delete(name);
  const last = new Map(kept.map(([name, value]) => [name, value]));
  for (const [name, value] of kept) {
    // a day that was typed says more than the period that was chosen before it
    if (name === "status") formData.append(name, value);
    else if (last.get(name) === value && !formData.has(name)) formData.append(name, value);
  }
  if (columns.length) formData.set("cols", columns.join(","));
}
