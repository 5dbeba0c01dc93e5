// Buttons with data-copy put their text on the clipboard and say so.
import { toast } from "./toast.js";
import { gettext, said } from "./words.js";

export function startCopy() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-page]");
    if (!button) return;
    event.preventDefault();
    try {
      await write(button.dataset.copy ?? location.href);
    } catch (error) {
      toast(said(gettext("It could not be copied: {why}"), { why: error.message }));
      return;
    }
    toast(button.dataset.copy === undefined ? gettext("Address copied. It shows this same view to everyone who may see this job.") : gettext("Copied"));
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1500);
  });
}

export async function write(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // without https browsers have no clipboard for pages, but still this
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused?.focus();
  if (!done) throw new Error(gettext("the browser does not allow it"));
}
