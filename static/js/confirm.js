// Forms with data-confirm ask once, in the page's one dialog; without JavaScript they simply post.
export function startConfirm() {
  const dialog = document.getElementById("confirm");
  if (!dialog) return;
  const reason = dialog.querySelector("[data-confirm-reason]");
  const yes = dialog.querySelector("[data-confirm-yes]");
  const usual = yes.textContent;
  let agreed = null;
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-confirm]");
    if (!form || form === agreed) return;
    event.preventDefault();
    const { submitter } = event;
    dialog.querySelector("[data-confirm-question]").textContent = form.dataset.confirm;
    yes.textContent = form.dataset.confirmWord ?? usual;
    dialog.returnValue = "no";
    reason.hidden = !("asksReason" in form.dataset);
    reason.querySelector("input").value = "";
    dialog.showModal();
    dialog.addEventListener("close", () => {
      if (dialog.returnValue !== "yes") {
        submitter?.focus();
        return;
      }
      agreed = form;
      if (!reason.hidden) form.append(hidden("reason", reason.querySelector("input").value));
      form.requestSubmit(submitter?.isConnected ? submitter : null);
      // after the form has been read: a disabled button sends nothing
      setTimeout(() => form.querySelectorAll("button").forEach((button) => (button.disabled = true)));
    }, { once: true });
  });
  reason.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return;
    event.preventDefault(); // who has typed why means it; the form's own default is to keep
    dialog.close("yes");
  });
  // a page that comes back from the browser's history asks again
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted || !agreed) return;
    agreed.querySelectorAll("button").forEach((button) => (button.disabled = false));
    agreed = null;
  });
}

function hidden(name, value) {
  const input = document.createElement("input");
  return Object.assign(input, { type: "hidden", name, value });
}
