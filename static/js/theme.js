// Sets the chosen theme before the first paint; a classic script on purpose, modules come too late.
(() => {
  const chosen = localStorage.getItem("theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
