// The runtime that is chosen: what it is, what it fills in where the form says nothing, and what it has locked.
import { describe } from "./errors.js";
import { gettext } from "./words.js";

const FIELDS = "workers gpus gpu_type cpus memory shm parameter_servers time_limit retries stop_grace launcher priority command".split(" ");

export function startChosenRuntime(form) {
  const data = document.getElementById("runtimes");
  const catalogue = new Map(JSON.parse(data?.textContent || "[]").map((runtime) => [runtime.slug, runtime]));
  const typed = new Map(); // what was typed in a field that is locked now: it comes back with another runtime
  const first = new Map(FIELDS.map((name) => [name, form.elements[name]?.placeholder ?? ""]));
  const chosen = () => catalogue.get(form.elements.runtime.value);

  function show() {
    const runtime = chosen();
    const card = form.querySelector("[data-runtime-card]");
    card.hidden = !runtime;
    if (!runtime) return;
    const [note, description] = ["deprecation", "description"].map((part) => card.querySelector(`[data-runtime-${part}]`));
    note.hidden = !runtime.deprecation;
    note.querySelector("span").textContent = runtime.deprecation;
    description.textContent = runtime.description.replaceAll("`", "");
    card.querySelector("[data-runtime-image]").textContent = runtime.image;
    card.querySelector("[data-runtime-launchers]").textContent = runtime.launchers.join(", ");
    for (const part of card.querySelectorAll("[data-runtime-locked]")) part.hidden = !runtime.locked.length;
    card.querySelector("dd[data-runtime-locked]").textContent = runtime.locked.map((dotted) => `${dotted} ${given(runtime, dotted)}`.trim()).join(", ");
    for (const option of form.elements.launcher.options) option.hidden = option.disabled = option.value !== "" && !runtime.launchers.includes(option.value);
    for (const name of FIELDS) field(runtime, name);
    ofLauncher(runtime);
  }

  // Parameter servers are TensorFlow's; what was typed stays in sight, also where it is wrong.
  function ofLauncher(runtime) {
    const servers = form.elements.parameter_servers;
    const launcher = form.elements.launcher.value || given(runtime, "launcher") || runtime.launchers[0];
    servers.closest(".field").hidden = launcher !== "tensorflow" && servers.value === "";
  }

  function field(runtime, name) {
    const input = form.elements[name];
    if (!input) return;
    const dotted = runtime.locked.includes(name) ? name : `resources.${name}`;
    const locked = runtime.locked.includes(dotted);
    const value = given(runtime, dotted) || given(runtime, name);
    if (input.tagName === "SELECT") input.options[0].textContent = value || gettext("as the runtime says");
    else input.placeholder = value || first.get(name);
    if (locked && !typed.has(name)) {
      typed.set(name, input.value);
      input.value = "";
    } else if (!locked && typed.has(name)) {
      input.value = input.value || typed.get(name);
      typed.delete(name);
    } else if (locked) input.value = "";
    if (input.tagName === "SELECT") input.disabled = locked;
    else input.readOnly = locked;
    mark(input, locked);
  }

  function mark(input, locked) {
    const id = `locked-${input.name}`;
    const old = document.getElementById(id);
    if (!locked) old?.remove();
    else if (!old) {
      const words = Object.assign(document.createElement("p"), { id, className: "hint locked", textContent: gettext("set by the runtime") });
      input.after(words);
    }
    describe(input, id, locked);
  }

  form.elements.runtime.addEventListener("change", show);
  form.elements.launcher.addEventListener("change", show);
  form.addEventListener("filled", show);
  show();
  return chosen;
}

function given(runtime, dotted) {
  const value = dotted.split(".").reduce((data, part) => data?.[part], runtime.defaults);
  return value === undefined || value === null || typeof value === "object" ? "" : String(value);
}
