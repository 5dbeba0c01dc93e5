// Colours and fonts of the page for what is drawn by scripts. Asking the browser makes it lay out the page, so once a theme.
const known = new Map();

export const tokens = {
  getPropertyValue(name) {
    if (!known.has(name)) known.set(name, getComputedStyle(document.documentElement).getPropertyValue(name));
    return known.get(name);
  },
};

export function forgetTokens() {
  known.clear();
}
