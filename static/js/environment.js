// The rows of the environment: a pasted .env becomes rows, and what sounds like a secret is offered to become one.
import { setSecret } from "./form_fields.js";
import { gettext, said } from "./words.js";

const SOUNDS_SECRET = /(KEY|TOKEN|PASSWORD|PASSWD|SECRET)$/i;

export function startEnvironment(form, changed, takeEnv) {
  const list = form.querySelector('[data-rows="env"]');
  const pasted = form.elements.env_text;

  const suggest = () => {
    for (const entry of list.querySelectorAll(":scope > [data-entry]")) {
      const name = entry.querySelector("input").value.trim();
      const offer = entry.querySelector("[data-offer]");
      if (!SOUNDS_SECRET.test(name)) offer?.remove();
      else if (offer?.dataset.offer !== name) {
        offer?.remove();
        entry.append(offerFor(entry, name));
      }
    }
  };

  function offerFor(entry, name) {
    const offer = Object.assign(document.createElement("p"), { className: "hint offer" });
    offer.dataset.offer = name;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "btn small", textContent: gettext("Make it a secret") });
    button.addEventListener("click", () => {
      setSecret(form, name, entry.querySelectorAll("input")[1].value);
      entry.remove();
      form.elements.written.value = "form";
      changed();
      form.querySelector("#f-secret input:not([value=''])")?.focus();
    });
    offer.append(said(gettext("{name} sounds like a secret, and everybody in the namespace can read the environment."), { name }), " ", button);
    return offer;
  }

  async function take() {
    if (!pasted.value.trim() || !(await takeEnv())) return;
    pasted.value = "";
    suggest();
    changed();
  }

  form.querySelector("[data-take-env]")?.addEventListener("click", take);
  list.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text") ?? "";
    if (!event.target.name?.endsWith("_name") || !/^\s*(export\s+)?\w+\s*=/m.test(text)) return;
    event.preventDefault(); // a whole file was pasted into the field of a name
    pasted.value = text;
    take();
  });
  form.addEventListener("input", suggest);
  form.addEventListener("filled", suggest);
  suggest();
}
