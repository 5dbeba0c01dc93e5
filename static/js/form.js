// The new-job form: a draft on this device (never secrets), code from anywhere, and the answer to "will it start?" while typing.
import { toast } from "./toast.js";
import { startUpload } from "./upload.js";

const SENT = "trainhall-new-job-sent";
const PAUSE = 400;
const MAX_AGE = 30 * 86400 * 1000;
// a key that was sent may have made its job, so each page sends its own; file names mean nothing without their files
const NEVER_KEPT = new Set(["csrfmiddlewaretoken", "secret_value", "idempotency_key", "paths"]);

let form = null;
let slot = ""; // of this person: others sign in with the same browser
let timer = 0;
const asking = { forecast: null, preview: null }; // what is under way, given up when asked anew

export function start() {
  form = document.querySelector("[data-new-job]");
  if (!form) return;
  slot = `trainhall-new-job-${form.dataset.newJob}`;
  rows();
  panels();
  startUpload(form, changed);
  restore();
  form.addEventListener("input", (event) => {
    if (event.isComposing) return;
    changed();
  });
  form.addEventListener("change", changed);
  form.addEventListener("compositionend", changed);
  form.addEventListener("submit", submitted);
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    form.requestSubmit(form.querySelector("[type=submit]"));
  });
  const preview = form.querySelector("[data-preview]");
  if (preview) preview.addEventListener("toggle", () => preview.open && show("preview"));
  show("forecast");
}

function changed() {
  save();
  clearTimeout(timer);
  timer = setTimeout(() => {
    show("forecast");
    if (form.querySelector("[data-preview][open]")) show("preview");
  }, PAUSE);
}

async function show(kind) {
  const place = document.querySelector(`[data-${kind}-result]`);
  const url = form.dataset[`${kind}Url`];
  if (!place || !url) return;
  asking[kind]?.abort();
  const mine = new AbortController();
  asking[kind] = mine;
  const data = new FormData(form);
  data.delete("code_files"); // the answer does not depend on their bytes
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, { method: "POST", body: data, credentials: "same-origin", signal: mine.signal });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (answer.ok) place.replaceChildren(...document.importNode(fresh.body, true).childNodes);
    else place.textContent = `The portal answered ${answer.status}; what you typed is kept.`;
  } catch (error) {
    if (error.name === "AbortError") return;
    place.textContent = "The portal does not answer; what you typed is kept.";
  } finally {
    if (asking[kind] === mine) place.removeAttribute("aria-busy");
  }
}

function submitted(event) {
  const button = form.querySelector("[type=submit]");
  if (form.dataset.sent) {
    event.preventDefault(); // a double click is one job
    return;
  }
  form.dataset.sent = "1";
  if (button) button.setAttribute("aria-disabled", "true");
  sessionStorage.setItem(SENT, slot);
}

// a page that comes back from the browser's history can be sent again
window.addEventListener("pageshow", (event) => {
  if (!form || !event.persisted) return;
  delete form.dataset.sent;
  form.querySelector("[type=submit]")?.removeAttribute("aria-disabled");
});

function save() {
  const kept = {};
  for (const [name, value] of new FormData(form)) {
    if (typeof value !== "string" || NEVER_KEPT.has(name)) continue;
    (kept[name] ||= []).push(value);
  }
  try {
    localStorage.setItem(slot, JSON.stringify({ path: location.pathname + location.search, at: Date.now(), kept }));
  } catch {
    // a script larger than the device keeps is not drafted; the form itself still holds it
  }
}

function restore() {
  const draft = draftOf(localStorage.getItem(slot));
  if (!draft || draft.path !== location.pathname + location.search) return;
  // after errors the server has filled in everything itself; a clone is filled from its parent, until it is changed and reloaded
  if (form.dataset.filled === "answer" || (form.dataset.filled && !cameBack())) return;
  for (const [name, values] of Object.entries(draft.kept)) {
    const prefix = name.replace(/_name$/, "");
    const list = form.querySelector(`[data-rows="${CSS.escape(prefix)}"]`);
    if (list && name.endsWith("_name")) {
      while (list.querySelectorAll(`[name="${CSS.escape(name)}"]`).length < values.length) addRow(list);
    }
    const fields = form.querySelectorAll(`[name="${CSS.escape(name)}"]`);
    values.forEach((value, index) => {
      const field = fields[index] || fields[0];
      if (!field || field.type === "file") return;
      if (field.type === "radio") for (const one of fields) one.checked = one.value === value;
      else if (field.type === "checkbox") field.checked = true;
      else field.value = value;
    });
  }
  for (const part of form.querySelectorAll("details:not([data-preview])")) {
    part.open ||= [...part.querySelectorAll("input, textarea")].some((field) => field.value && field.value !== field.defaultValue);
  }
  form.dispatchEvent(new Event("change"));
  toast("What you typed before is back.");
}

function cameBack() {
  return ["reload", "back_forward"].includes(performance.getEntriesByType("navigation")[0]?.type);
}

function draftOf(text) {
  const draft = text ? JSON.parse(text) : null;
  if (draft && Date.now() - draft.at < MAX_AGE) return draft;
  localStorage.removeItem(slot);
  return null;
}

function rows() {
  for (const list of form.querySelectorAll("[data-rows]")) {
    const add = form.querySelector(`[data-add="${CSS.escape(list.dataset.rows)}"]`);
    if (add) add.addEventListener("click", () => addRow(list).querySelector("input").focus());
    list.addEventListener("click", (event) => {
      const remove = event.target.closest("[data-remove]");
      if (!remove) return;
      remove.closest("[data-entry]").remove();
      changed();
    });
  }
}

function addRow(list) {
  const fresh = list.querySelector("template").content.cloneNode(true);
  const entry = fresh.querySelector("[data-entry]");
  list.append(fresh);
  return entry;
}

function panels() {
  const show = () => {
    const chosen = form.querySelector('[name="code_kind"]:checked')?.value;
    for (const panel of form.querySelectorAll("[data-code-panel]")) panel.hidden = panel.dataset.codePanel !== chosen;
  };
  form.addEventListener("change", show);
  show();
}
