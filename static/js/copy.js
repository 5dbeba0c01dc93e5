// Buttons with data-copy put their text on the clipboard and say so.
export function startCopy() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    event.preventDefault();
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      announce("Copied");
      button.classList.add("done");
      setTimeout(() => button.classList.remove("done"), 1500);
    } catch (error) {
      announce(`Could not be copied: ${error.message}`);
    }
  });
}

export function announce(words) {
  // the page's one polite live region
  const region = document.querySelector("[data-announce]");
  if (region) region.textContent = words;
}
