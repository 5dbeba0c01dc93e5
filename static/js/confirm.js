// Forms with data-confirm ask once, in the page's one dialog; without JavaScript they simply post.
export function startConfirm() {
  const dialog = document.getElementById("confirm");
  if (!dialog) return;
  let asked = null;
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-confirm]");
    if (!form || form === asked) return;
    event.preventDefault();
    dialog.querySelector("[data-confirm-question]").textContent = form.dataset.confirm;
    dialog.returnValue = "no";
    dialog.showModal();
    dialog.addEventListener("close", () => {
      if (dialog.returnValue !== "yes") return;
      asked = form;
      form.requestSubmit();
      for (const button of form.querySelectorAll("button")) button.disabled = true;
    }, { once: true });
  });
}
