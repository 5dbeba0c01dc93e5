// A dialog made by a script, with a heading and a way to close it; gone from the page once it is closed.
import { gettext } from "./words.js";

export function sheet(title, content) {
  const dialog = document.createElement("dialog");
  const heading = Object.assign(document.createElement("h2"), { textContent: title });
  const form = Object.assign(document.createElement("form"), { method: "dialog", className: "stack" });
  form.append(heading, ...content, Object.assign(document.createElement("button"), { className: "btn", textContent: gettext("Close") }));
  dialog.setAttribute("aria-label", title);
  dialog.append(form);
  const focused = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (focused?.isConnected) focused.focus({ preventScroll: true });
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
