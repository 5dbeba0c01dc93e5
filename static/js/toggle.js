// Light, dark, or what the system says: in turn, remembered on this device.
const ORDER = { auto: "dark", dark: "light", light: "auto" };

export function startTheme() {
  for (const button of document.querySelectorAll("[data-theme-toggle]")) {
    button.addEventListener("click", () => {
      const next = ORDER[localStorage.getItem("theme") || "auto"] || "auto";
      if (next === "auto") {
        localStorage.removeItem("theme");
        delete document.documentElement.dataset.theme;
      } else {
        localStorage.setItem("theme", next);
        document.documentElement.dataset.theme = next;
      }
      button.title = next;
      document.dispatchEvent(new CustomEvent("theme"));
    });
  }
}

export function whenThemeChanges(redraw) {
  document.addEventListener("theme", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}
