// Single keys: never in a field, with a modifier, or while an input method composes.
export function typing(event) {
  const field = event.target.closest("input, textarea, select, [contenteditable]");
  return Boolean(field) || event.isComposing || event.keyCode === 229 || event.ctrlKey || event.metaKey || event.altKey;
}

function step(by) {
  const links = [...document.querySelectorAll("[data-row] a.title")];
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  links[Math.min(links.length - 1, Math.max(0, at + by))].focus();
}

export function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (typing(event) || document.querySelector("dialog[open]")) return;
    const search = document.querySelector("[data-search]");
    const fresh = document.querySelector('a[href^="/jobs/new/"]');
    if (event.key === "/" && search) search.focus();
    else if (event.key === "n" && fresh) fresh.click();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else return;
    event.preventDefault();
  });
}
