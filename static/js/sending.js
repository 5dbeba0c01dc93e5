// The new-job form on its way: sent in place, so that a refused form, an ended session or a cut line lose nothing, secrets included.
import { adoptErrors, clearSummary } from "./errors.js";
import { gettext } from "./words.js";

export function tokenOf(form) {
  // signing in again gives the browser a new one, which this page has not seen
  const cookie = document.cookie.split("; ").find((one) => one.startsWith("trainhall_csrf="));
  return cookie ? cookie.split("=")[1] : form.elements.csrfmiddlewaretoken.value;
}

export function wasSignedOut(answer) {
  return answer.redirected && new URL(answer.url).pathname.startsWith("/login");
}

export function tellEnded({ focus = false } = {}) {
  // told once, wherever it was noticed first; who types is not interrupted
  const told = document.querySelector("[data-ended]");
  const words = gettext("Your session has ended. Nothing is lost: sign in in another tab, then submit here again.");
  if (!told) tell(words, { signIn: true, focus });
  else if (focus) told.focus();
}

export function sessionIsBack() {
  if (document.querySelector("[data-ended]")) clearSummary();
}

export function startSending(form, draft) {
  const button = form.querySelector(".primary[type=submit]");
  let made = ""; // the address of the job that this page has made

  form.addEventListener("submit", async (event) => {
    if (event.submitter?.hasAttribute("formaction")) return;
    event.preventDefault();
    if (form.dataset.sent) return; // a double click is one job
    form.dataset.sent = "1";
    button.setAttribute("aria-disabled", "true");
    const done = await send(form);
    if (done) {
      draft.stop();
      made = done;
      location.assign(done);
      return;
    }
    again();
  });

  const again = () => {
    delete form.dataset.sent;
    button.removeAttribute("aria-disabled");
  };
  // a page that comes back from the browser's history can be sent again: unchanged it is the same job, changed another one
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    again();
    draft.goOn();
    form.elements.draft.value = "";
    if (made) tell(gettext("This form has made a job. Sent again unchanged it is the same job, changed it is another one."), { made });
  });
  form.addEventListener("input", () => {
    if (!made) return;
    made = "";
    clearSummary();
    form.elements.idempotency_key.value = newKey();
  });
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `form-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

async function send(form) {
  const body = new FormData(form);
  body.set("csrfmiddlewaretoken", tokenOf(form));
  let answer = null;
  try {
    answer = await fetch(form.action, { method: "POST", body, credentials: "same-origin", headers: { Accept: "application/json" } });
  } catch {
    tell(gettext("The portal does not answer. Nothing is lost: submit again when it is back; it will be one job."));
    return "";
  }
  if (wasSignedOut(answer) || answer.status === 403) {
    tellEnded({ focus: true });
    return "";
  }
  const text = await answer.text();
  if (answer.status === 201) {
    clearSummary();
    return JSON.parse(text).url;
  }
  if (answer.status === 422) adopt(form, text);
  else if (answer.status === 413 || answer.status === 400) tell(gettext("The portal refused this form as too large: upload the code instead of pasting it."));
  else tell(gettext("The portal failed to take this form. Nothing is lost: submit again; it will be one job."));
  return "";
}

function adopt(form, text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  for (const name of ["upload_sha256", "upload_label", "idempotency_key"]) {
    const field = page.querySelector(`form.form [name="${name}"]`);
    if (field) form.elements[name].value = field.value;
  }
  adoptErrors(form, page);
  form.dispatchEvent(new Event("refused"));
}

function tell(words, { signIn = false, made = "", focus = true } = {}) {
  const note = document.createElement("section");
  note.className = made ? "panel queued summary" : "panel failed summary";
  note.tabIndex = -1;
  note.setAttribute("role", "alert");
  note.dataset.summary = "";
  note.append(Object.assign(document.createElement("p"), { textContent: words }));
  if (signIn) {
    note.dataset.ended = "";
    const link = Object.assign(document.createElement("a"), { href: "/login/", target: "_blank", className: "btn", textContent: gettext("Sign in") });
    note.append(link);
  }
  if (made) note.append(Object.assign(document.createElement("a"), { href: made, className: "btn", textContent: gettext("Open it") }));
  document.querySelector("[data-summary-place]").replaceChildren(note);
  if (focus) note.focus();
}
