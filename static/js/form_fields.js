// The fields of the new-job form as plain values, and back; its rows of names and values, and its panels of code.
const KINDS = ["param", "env", "secret", "shared", "volume"];
// a key that was sent may have made its job, so each page sends its own; file names mean nothing without their files
const OF_THE_PAGE = new Set(["csrfmiddlewaretoken", "idempotency_key", "draft", "paths", "code_files", "env_text"]);

export function valuesOf(form) {
  // everything that may be kept: of a secret its name, never its value
  const values = Object.fromEntries(KINDS.map((kind) => [kind, rowsOf(form, kind)]));
  for (const [name, value] of new FormData(form)) {
    if (typeof value === "string" && !OF_THE_PAGE.has(name) && !/_(name|value)$/.test(name.replace("script_name", ""))) values[name] = value;
  }
  values.script_name = form.elements.script_name.value;
  return values;
}

function rowsOf(form, kind) {
  const entries = [...form.querySelectorAll(`[data-rows="${kind}"] > [data-entry]`)];
  const rows = entries.map((entry) => {
    const [name, value] = entry.querySelectorAll("input");
    return kind === "secret" ? { name: name.value.trim() } : { name: name.value.trim(), value: value.value };
  });
  return rows.filter((row) => row.name || row.value);
}

export function fill(form, values) {
  for (const [name, value] of Object.entries(values)) {
    if (KINDS.includes(name)) fillRows(form, name, value);
    else setField(form, name, String(value ?? ""));
  }
  for (const part of form.querySelectorAll("details:not([data-preview], [data-yaml])")) {
    part.open ||= [...part.querySelectorAll("input, textarea, select")].some((field) => field.value && !field.disabled);
  }
  form.dispatchEvent(new Event("filled"));
}

export function setField(form, name, value) {
  const fields = form.querySelectorAll(`[name="${CSS.escape(name)}"]`);
  for (const field of fields) {
    if (field.type === "file") continue;
    if (field.type === "radio") field.checked = field.value === value;
    // who types there is not interrupted
    else if (field !== document.activeElement && field.value !== value) field.value = value;
  }
}

function fillRows(form, kind, rows) {
  const list = form.querySelector(`[data-rows="${kind}"]`);
  if (JSON.stringify(rowsOf(form, kind)) === JSON.stringify(rows)) return;
  const part = list.closest("[data-only-if-used]");
  if (part && rows.length) part.hidden = false; // nothing is offered, and the YAML names something all the same
  const secrets = kind === "secret" ? secretsOf(form) : {};
  for (const entry of list.querySelectorAll(":scope > [data-entry]")) entry.remove();
  for (const row of rows) addRow(list, row.name, kind === "secret" ? (secrets[row.name] ?? "") : row.value);
  addRow(list);
}

export function secretsOf(form) {
  const entries = [...form.querySelectorAll('[data-rows="secret"] > [data-entry]')];
  return Object.fromEntries(entries.map((entry) => [...entry.querySelectorAll("input")].map((field) => field.value)));
}

export function setSecret(form, name, value) {
  const list = form.querySelector('[data-rows="secret"]');
  const entry = [...list.querySelectorAll(":scope > [data-entry]")].find((one) => one.querySelector("input").value.trim() === name);
  if (entry) entry.querySelectorAll("input")[1].value = value;
  else addRow(list, name, value);
}

export function addRow(list, name = "", value = "") {
  const fresh = list.querySelector("template").content.cloneNode(true);
  const entry = fresh.querySelector("[data-entry]");
  const fields = entry.querySelectorAll("input");
  fields[0].value = name;
  fields[1].value = value;
  list.append(fresh);
  return entry;
}

export function startRows(form, changed) {
  for (const list of form.querySelectorAll("[data-rows]")) {
    const add = form.querySelector(`[data-add="${CSS.escape(list.dataset.rows)}"]`);
    add?.addEventListener("click", () => addRow(list).querySelector("input").focus());
    list.addEventListener("click", (event) => {
      const remove = event.target.closest("[data-remove]");
      if (!remove) return;
      const entry = remove.closest("[data-entry]");
      (entry.nextElementSibling ?? entry.previousElementSibling)?.querySelector?.("input")?.focus();
      entry.remove();
      changed();
    });
  }
}

export function startPanels(form) {
  const show = () => {
    const chosen = form.querySelector('[name="code_kind"]:checked')?.value;
    for (const panel of form.querySelectorAll("[data-code-panel]")) panel.hidden = panel.dataset.codePanel !== chosen;
    if (chosen === "extra") form.querySelector("[data-code-extra]").hidden = false;
  };
  form.addEventListener("change", show);
  form.addEventListener("filled", show);
  show();
}
