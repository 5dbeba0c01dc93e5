// Errors beside their fields, with the same markup that the server gives them.
export function showError(form, name, texts) {
  const old = document.getElementById(`e-${name}`);
  const field = form.querySelector(`#f-${CSS.escape(name)}`);
  if (!texts?.length) {
    old?.remove();
    field?.removeAttribute("aria-invalid");
    if (field) describe(field, `e-${name}`, false);
    return;
  }
  const place = field?.closest(".field, [data-code-panel]");
  if (!place) return;
  const box = old ?? place.appendChild(Object.assign(document.createElement("div"), { id: `e-${name}` }));
  const words = texts.map((text) => Object.assign(document.createElement("p"), { className: "error", textContent: text }));
  if (box.textContent !== texts.join("")) box.replaceChildren(...words);
  field.setAttribute("aria-invalid", "true");
  describe(field, box.id, true);
  for (let part = place.closest("details"); part; part = part.parentElement?.closest("details")) part.open = true;
}

// Whether a field is described by an element, beside what describes it else.
export function describe(field, id, on) {
  const ids = new Set((field.getAttribute("aria-describedby") ?? "").split(" ").filter(Boolean));
  if (on) ids.add(id);
  else ids.delete(id);
  if (ids.size) field.setAttribute("aria-describedby", [...ids].join(" "));
  else field.removeAttribute("aria-describedby");
}

export function shownErrors(form) {
  return [...form.querySelectorAll('[id^="e-"]')].map((box) => box.id.slice(2));
}

export function adoptErrors(form, page) {
  // of a refused form: the summary and the errors of the page that the server answered
  for (const name of shownErrors(form)) showError(form, name, []);
  for (const box of page.querySelectorAll('form.form [id^="e-"]')) {
    showError(form, box.id.slice(2), [...box.querySelectorAll(".error")].map((error) => error.textContent));
  }
  const summary = page.querySelector("[data-summary]");
  const place = document.querySelector("[data-summary-place]");
  place.replaceChildren(...(summary ? [document.importNode(summary, true)] : []));
  focusSummary();
}

export function focusSummary() {
  document.querySelector("[data-summary]")?.focus();
}

export function clearSummary() {
  document.querySelector("[data-summary-place]").replaceChildren();
}
