// The form and its YAML kept in step by the server, which also says the command as it runs, the command line, and the changes.
import { shownErrors, showError } from "./errors.js";
import { fill, setSecret } from "./form_fields.js";
import { tokenOf, wasSignedOut } from "./sending.js";
import { gettext } from "./words.js";

export function startInStep(form) {
  const yaml = form.elements.yaml;
  const touched = new Set(); // a field is told what is wrong when it was left, not while it is typed
  let asking = null;

  form.addEventListener("change", (event) => event.target.name && touched.add(fieldName(event.target.name)));
  form.addEventListener("input", ({ target }) => {
    if (!target.name || target.name === "secret_value") return; // values of secrets are in the form only
    form.elements.written.value = target === yaml ? "yaml" : "form";
    if (target === yaml) form.elements.yaml_own.value = yaml.value.trim() ? "1" : "";
  });

  async function ask() {
    asking?.abort();
    const mine = (asking = new AbortController());
    const data = new FormData(form);
    data.delete("code_files");
    data.delete("env_text"); // taken by its own button
    const answer = await post(form, data, mine.signal);
    if (answer && asking === mine) adopt(answer, data.get("written"));
  }

  async function takeEnv() {
    const data = new FormData(form);
    data.delete("code_files");
    data.set("written", "form");
    const answer = await post(form, data);
    if (!answer) return false;
    if (!answer.fields) {
      showError(form, "env_text", answer.errors.env ?? answer.errors.form ?? [gettext("This could not be read.")]);
      return false;
    }
    showError(form, "env_text", []);
    form.elements.written.value = "form";
    fill(form, { env: answer.fields.env });
    return true;
  }

  function adopt(answer, written) {
    if (written === "form" && "yaml" in answer && document.activeElement !== yaml) yaml.value = answer.yaml;
    if (written === "yaml") {
      if (answer.fields) fill(form, answer.fields);
      for (const [name, value] of Object.entries(answer.secrets ?? {})) setSecret(form, name, value);
      if (answer.yaml) yaml.value = answer.yaml;
    }
    showErrors(answer, written);
    show("[data-rendered]", Boolean(answer.command));
    form.querySelector("[data-rendered-command]").textContent = answer.command;
    list(form.querySelector("[data-hints]"), answer.hints);
    show("[data-extra]", answer.extra.length > 0);
    form.querySelector("[data-extra-names]").textContent = answer.extra.join(", ");
    show("[data-cli]", Boolean(answer.cli));
    form.querySelector("[data-cli-line]").textContent = answer.cli;
    form.querySelector("[data-cli] [data-copy]").dataset.copy = answer.cli;
    if (answer.changes) changes(form.querySelector("[data-changes]"), answer.changes);
  }

  function showErrors({ errors, yaml_errors: ofYaml }, written) {
    for (const name of shownErrors(form)) if (!(name in errors) && name !== "code_files" && name !== "env_text") showError(form, name, []);
    for (const [name, texts] of Object.entries(errors)) if (touched.has(name) || shownErrors(form).includes(name)) showError(form, name, texts);
    showError(form, "yaml", written === "yaml" ? (ofYaml ?? errors.yaml ?? []) : (errors.yaml ?? []));
  }

  function show(selector, on) {
    form.querySelector(selector).hidden = !on;
  }

  return { ask, takeEnv };
}

function fieldName(name) {
  return name.replace(/^(param|env|secret|shared|volume)_(name|value)$/, "$1");
}

async function post(form, data, signal) {
  data.set("csrfmiddlewaretoken", tokenOf(form)); // of who signed in again in another tab
  try {
    const answer = await fetch(form.dataset.documentUrl, { method: "POST", body: data, credentials: "same-origin", signal });
    return answer.ok && !wasSignedOut(answer) ? await answer.json() : null;
  } catch {
    return null; // asked again with the next change; the forecast tells when the portal is away
  }
}

function list(place, texts) {
  place.replaceChildren(...texts.map((text) => Object.assign(document.createElement("p"), { textContent: text })));
}

function changes(place, found) {
  if (!found.length) return list(place, [gettext("Nothing but the name.")]);
  const lines = document.createElement("ul");
  lines.className = "changes small";
  for (const change of found) {
    const line = document.createElement("li");
    line.append(Object.assign(document.createElement("b"), { className: "wrap", textContent: change.label }), " ");
    if (change.lines) line.append(change.lines);
    else line.append(word(change.before), " → ", word(change.after, "strong"));
    lines.append(line);
  }
  place.replaceChildren(lines);
}

function word(text, kind = "") {
  return Object.assign(document.createElement("span"), { className: `wrap ${kind}`, textContent: text || gettext("not set") });
}
