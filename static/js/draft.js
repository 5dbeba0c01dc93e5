// The draft of the new-job form: kept on the portal while one types; in this browser only until it has arrived there.
import { valuesOf, fill } from "./form_fields.js";
import { toast } from "./toast.js";
import { sessionIsBack, tellEnded, tokenOf, wasSignedOut } from "./sending.js";
import { gettext, said } from "./words.js";

const PAUSE = 800;
const AGAIN = 10_000;
const ENDED = {}; // the answer of a portal that knows this browser no more
const MAX_AGE = 30 * 86400 * 1000;

export function startDraft(form) {
  const slot = `trainhall-new-job-${form.dataset.newJob}`; // of this person: others sign in with the same browser
  const place = form.querySelector("[data-draft-said]");
  let timer = 0;
  let unsaved = false;
  let stopped = false;
  let leaving = false;
  let running = Promise.resolve();
  const early = [...form.elements].some(typedIn); // by somebody quicker than this script

  const address = () => location.pathname + location.search;
  const keep = () => {
    try {
      localStorage.setItem(slot, JSON.stringify({ path: address(), at: Date.now(), id: form.elements.draft.value, values: valuesOf(form) }));
    } catch {
      // larger than the browser keeps: the portal has it a moment later
    }
  };

  async function save() {
    if (stopped || !unsaved) return;
    unsaved = false;
    const answer = await send(form, form.elements.draft.value);
    if (stopped) return;
    if (answer === ENDED) {
      unsaved = true;
      place.textContent = "";
      tellEnded();
      again();
      return;
    }
    if (!answer) {
      unsaved = true;
      place.textContent = gettext("The portal does not answer: the draft is kept in this browser.");
      return;
    }
    sessionIsBack();
    form.elements.draft.value = answer.id;
    // a reload that has begun comes back to the address as it was, and finds what was typed in this browser only
    if (leaving) return keep();
    const url = `${form.dataset.pageUrl}?draft=${answer.id}`;
    if (address() !== url) {
      form.action = url; // who signs in again in between comes back to it
      history.replaceState(history.state, "", url);
    }
    place.textContent = said(gettext("Draft saved {time}"), { time: new Date().toLocaleTimeString([], { hour12: false }) });
    if (!unsaved) localStorage.removeItem(slot);
  }

  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => (running = running.then(save)), PAUSE);
  };
  // somebody signs in in another tab: the draft finds out by itself
  const again = () => {
    clearTimeout(timer);
    timer = setTimeout(() => (running = running.then(save)), AGAIN);
  };
  window.addEventListener("focus", () => {
    if (stopped || !document.querySelector("[data-ended]")) return;
    unsaved = true;
    soon();
  });
  window.addEventListener("beforeunload", () => {
    leaving = true;
  });
  window.addEventListener("pagehide", () => {
    if (unsaved && !stopped) send(form, form.elements.draft.value, true);
  });
  window.addEventListener("online", soon);

  return {
    changed() {
      if (stopped) return;
      unsaved = true;
      leaving = false; // it was a download, or thought better of
      keep();
      soon();
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
      localStorage.removeItem(slot);
    },
    goOn() {
      stopped = false;
    },
    restore() {
      if (early) return this.changed();
      const kept = localStorage.getItem(slot);
      const draft = kept ? JSON.parse(kept) : null;
      if (!draft || form.dataset.filled) return;
      if (!draft.values || Date.now() - draft.at > MAX_AGE) localStorage.removeItem(slot);
      else if (draft.path === address()) {
        fill(form, draft.values);
        if (draft.id) form.elements.draft.value = draft.id;
        unsaved = true;
        soon();
        toast(gettext("What you typed before is back."));
      }
    },
  };
}

function typedIn(field) {
  if (field.type === "hidden" || field.type === "file") return false;
  if (field.options) return [...field.options].some((option) => option.defaultSelected && !option.selected);
  if (field.type === "radio" || field.type === "checkbox") return field.checked !== field.defaultChecked;
  return "defaultValue" in field && field.value !== field.defaultValue;
}

async function send(form, id, keepalive = false) {
  const base = form.dataset.draftsUrl;
  const ask = (url, method) =>
    fetch(url, {
      method,
      keepalive,
      credentials: "same-origin",
      headers: { "Content-Type": "application/json", "X-CSRFToken": tokenOf(form), Accept: "application/json" },
      body: JSON.stringify(valuesOf(form)),
    });
  try {
    let answer = id ? await ask(`${base}${id}/`, "PUT") : await ask(base, "POST");
    // its job was made, or it was removed on another device: what is typed here is a draft of its own
    if (id && answer.status === 404) answer = await ask(base, "POST");
    if (answer.status === 401 || answer.status === 403 || wasSignedOut(answer)) return ENDED;
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

export function startDraftList() {
  for (const button of document.querySelectorAll("[data-remove-draft]")) {
    button.addEventListener("click", async () => {
      const form = document.querySelector("[data-new-job]");
      const headers = { "X-CSRFToken": tokenOf(form), Accept: "application/json" };
      const answer = await fetch(button.dataset.removeDraft, { method: "DELETE", credentials: "same-origin", headers }).catch(() => null);
      if (!answer || (!answer.ok && answer.status !== 404)) return toast(gettext("The draft could not be removed; try again."));
      const row = button.closest("li");
      const list = row.closest("details");
      row.remove();
      toast(gettext("The draft was removed."));
      if (!list.querySelector("li")) list.remove();
      else list.querySelector("a").focus();
    });
  }
}
