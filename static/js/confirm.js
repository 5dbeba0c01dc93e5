// Forms with data-confirm ask once, in the page's one dialog; without JavaScript they simply post.
export function startConfirm() {
  const dialog = document.getElementById("confirm");
  if (!dialog) return;
  let agreed = null;
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-confirm]");
    if (!form || form === agreed) return;
    event.preventDefault();
    const { submitter } = event;
    dialog.querySelector("[data-confirm-question]").textContent = form.dataset.confirm;
    dialog.returnValue = "no";
    dialog.showModal();
    dialog.addEventListener("close", () => {
      if (dialog.returnValue !== "yes") {
        submitter?.focus();
        return;
      }
      agreed = form;
      form.requestSubmit(submitter?.isConnected ? submitter : null);
      // after the form has been read: a disabled button sends nothing
      setTimeout(() => form.querySelectorAll("button").forEach((button) => (button.disabled = true)));
    }, { once: true });
  });
  // a page that comes back from the browser's history asks again
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted || !agreed) return;
    agreed.querySelectorAll("button").forEach((button) => (button.disabled = false));
    agreed = null;
  });
}
