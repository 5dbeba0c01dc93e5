// The new-job form: a draft on the portal, its YAML in step, code from anywhere, and the answer to "will it start?" while typing.
import { startChosenRuntime } from "./chosen_runtime.js";
import { startDraft, startDraftList } from "./draft.js";
import { startEnvironment } from "./environment.js";
import { focusSummary, showError } from "./errors.js";
import { setField, startPanels, startRows } from "./form_fields.js";
import { startInStep } from "./in_step.js";
import { startLineTest } from "./line_test.js";
import { startSending, tellEnded, tokenOf, wasSignedOut } from "./sending.js";
import { startUpload } from "./upload.js";
import { gettext, ngettext, said } from "./words.js";

const PAUSE = 400;
const PAUSE_OF_LARGE = 2000;
const LARGE = 64 * 1024; // characters of a script that is not sent along to every question

let form = null;
let draft = null;
let step = null;
let timer = 0;
const asking = { forecast: null, preview: null }; // what is under way, given up when asked anew

function start() {
  form = document.querySelector("[data-new-job]");
  draft = startDraft(form);
  step = startInStep(form);
  startRows(form, changed);
  startPanels(form);
  startUpload(form, changed);
  const chosen = startChosenRuntime(form);
  startEnvironment(form, changed, step.takeEnv);
  startLineTest(() => chosen()?.metric_rules ?? []);
  startSending(form, draft);
  startDraftList();
  startCommit();
  startScript();
  form.addEventListener("input", (event) => !event.isComposing && changed());
  form.addEventListener("change", (event) => event.target !== form && changed());
  form.addEventListener("compositionend", changed);
  form.addEventListener("refused", () => show("forecast"));
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return;
    if (!(event.ctrlKey || event.metaKey)) return; // alone it sends nothing: the form's first button is one that cannot be pressed
    event.preventDefault();
    form.requestSubmit(form.querySelector(".primary[type=submit]"));
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest('[data-summary] a[href^="#f-"], [data-forecast-result] a[href^="#f-"]');
    if (link) goTo(event, link.hash.slice(1));
  });
  const preview = form.querySelector("[data-preview]");
  preview?.addEventListener("toggle", () => preview.open && show("preview"));
  draft.restore();
  focusSummary();
  step.ask();
  show("forecast");
}

function changed() {
  draft.changed();
  clearTimeout(timer);
  timer = setTimeout(
    () => {
      step.ask();
      show("forecast");
      if (form.querySelector("[data-preview][open]")) show("preview");
    },
    form.elements.script.value.length > LARGE ? PAUSE_OF_LARGE : PAUSE,
  );
}

async function show(kind) {
  const place = document.querySelector(`[data-${kind}-result]`);
  const url = form.dataset[`${kind}Url`];
  if (!place || !url) return;
  asking[kind]?.abort();
  if (kind === "forecast" && ownError(place)) return;
  const mine = new AbortController();
  asking[kind] = mine;
  const data = new FormData(form);
  data.set("csrfmiddlewaretoken", tokenOf(form));
  data.delete("code_files"); // the answer does not depend on their bytes
  if (form.elements.script.value.length > LARGE) data.set("script", form.elements.script.value.slice(0, LARGE + 1));
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, { method: "POST", body: data, credentials: "same-origin", signal: mine.signal });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (wasSignedOut(answer)) tellEnded();
    else if (answer.ok) place.replaceChildren(...document.importNode(fresh.body, true).childNodes);
    else place.textContent = said(gettext("The portal answered {status}; what you typed is kept."), { status: answer.status });
  } catch (error) {
    if (error.name === "AbortError") return;
    place.textContent = gettext("The portal does not answer; what you typed is kept.");
  } finally {
    if (asking[kind] === mine) place.removeAttribute("aria-busy");
  }
}

function ownError(place) {
  // what only this page knows to be wrong: the outlook of the rest would read as if all were well
  const kind = form.querySelector('[name="code_kind"]:checked')?.value;
  const words = { upload: gettext("Mend the upload first:"), files: gettext("Mend the script first:") }[kind];
  const name = { upload: "code_files", files: "script" }[kind];
  if (!name || !document.getElementById(`e-${name}`)) return false;
  const label = kind === "upload" ? gettext("Files") : gettext("Script");
  const line = Object.assign(document.createElement("p"), { className: "small", textContent: `${words} ` });
  line.append(Object.assign(document.createElement("a"), { className: "link", href: `#f-${name}`, textContent: label }));
  place.replaceChildren(line);
  place.removeAttribute("aria-busy");
  return true;
}

function goTo(event, id) {
  // a fieldset takes no focus: its first field does
  const place = document.getElementById(id);
  if (!place) return;
  event.preventDefault();
  for (let part = place.closest("details"); part; part = part.parentElement?.closest("details")) part.open = true;
  const field = place.matches("input, select, textarea") ? place : place.querySelector("input, select, textarea");
  field?.focus();
  place.scrollIntoView({ block: "center" });
}

function startCommit() {
  for (const button of form.querySelectorAll("[data-set-ref]")) {
    button.addEventListener("click", () => {
      setField(form, "git_ref", button.dataset.setRef);
      form.elements.written.value = "form";
      changed();
    });
  }
}

function startScript() {
  const { script } = form.elements;
  const most = Number(form.dataset.maxScript);
  const count = () => {
    const bytes = new Blob([script.value]).size;
    const lines = script.value ? script.value.replace(/\n$/, "").split("\n").length : 0;
    const words = said(ngettext("{lines} line, {size}", "{lines} lines, {size}", lines), { lines: lines.toLocaleString("en"), size: sizeOf(bytes) });
    form.querySelector("[data-script-count]").textContent = lines > 1 ? words : "";
    if (bytes > most) {
      const text = said(gettext("The script is {size}; at most {most} may be pasted. Upload it as a file instead."), { size: sizeOf(bytes), most: sizeOf(most) });
      showError(form, "script", [text]);
    } else if (document.getElementById("e-script")?.textContent.includes(sizeOf(most))) showError(form, "script", []);
  };
  script.addEventListener("input", count);
  script.addEventListener("paste", (event) => {
    // the browser's own way takes minutes for a megabyte, line by line, to be able to undo it
    const text = event.clipboardData?.getData("text") ?? "";
    if (text.length < LARGE) return;
    event.preventDefault();
    script.setRangeText(text, script.selectionStart, script.selectionEnd, "end");
    script.dispatchEvent(new Event("input", { bubbles: true }));
  });
  form.addEventListener("filled", count);
  count();
}

function sizeOf(bytes) {
  return bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} KB` : `${(bytes / 2 ** 20).toFixed(1)} MB`;
}

start();
