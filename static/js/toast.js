// Short words about what just happened: seen for some seconds, and said once by the page's polite live region.
const SHOWN = 6000;

export function announce(words) {
  const region = document.querySelector("[data-announce]");
  if (region) region.textContent = words;
}

export function toast(words) {
  announce(words);
  const place = document.querySelector(".toasts") || document.body.appendChild(container());
  const note = document.createElement("p");
  note.className = "toast";
  note.textContent = words;
  place.append(note);
  let timer = setTimeout(() => note.remove(), SHOWN);
  // who still reads it keeps it
  note.addEventListener("pointerenter", () => clearTimeout(timer));
  note.addEventListener("pointerleave", () => (timer = setTimeout(() => note.remove(), SHOWN / 2)));
}

function container() {
  const place = document.createElement("div");
  place.className = "toasts";
  place.setAttribute("aria-hidden", "true"); // the live region says it
  return place;
}

export function startVanishing() {
  // an offer that the server takes for some seconds only, such as an undo
  for (const offer of document.querySelectorAll("[data-vanishes]")) {
    setTimeout(() => offer.remove(), Number(offer.dataset.vanishes) * 1000);
  }
}
