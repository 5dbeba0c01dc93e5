// xterm.js under a Content-Security-Policy without inline styles: what it would put into <style> elements becomes a
// constructed style sheet, and its style attributes become properties, neither of which the policy is about.
import { FitAddon } from "../vendor/xterm/addon-fit.mjs";
import { Terminal } from "../vendor/xterm/xterm.mjs";

const createElement = (name, options) => Document.prototype.createElement.call(document, name, options);

function styleSheet() {
  // stands where xterm believes its <style> to be
  const holder = createElement("span");
  const sheet = new CSSStyleSheet();
  holder.hidden = true;
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(holder, "textContent", { set: (text) => sheet.replaceSync(text) });
  holder.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    Element.prototype.remove.call(holder);
  };
  return holder;
}

function withoutInlineStyle(name, options) {
  if (name === "style") return styleSheet();
  const element = createElement(name, options);
  if (name === "span") {
    element.setAttribute = (attribute, value) => {
      if (attribute === "style") element.style.cssText = value;
      else Element.prototype.setAttribute.call(element, attribute, value);
    };
  }
  return element;
}

// of this page, and as long as it is open: xterm makes elements with every line it draws
document.createElement = withoutInlineStyle;

export function openTerminal(place, options) {
  const look = getComputedStyle(place);
  const terminal = new Terminal({
    fontFamily: look.fontFamily,
    fontSize: parseFloat(look.fontSize),
    theme: themeOf(place),
    minimumContrastRatio: 4.5,
    cursorBlink: false,
    scrollback: 5000,
    ...options,
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  fit.fit();
  const observer = new ResizeObserver(() => place.clientWidth && fit.fit());
  observer.observe(place);
  const dress = () => {
    terminal.options.theme = themeOf(place);
  };
  new MutationObserver(dress).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dress);
  return terminal;
}

function themeOf(place) {
  const look = getComputedStyle(place);
  const token = (name) => look.getPropertyValue(name).trim();
  return {
    background: look.backgroundColor,
    foreground: look.color,
    cursor: token("--accent"),
    cursorAccent: token("--accent-ink"),
    selectionBackground: token("--accent-soft"),
    selectionForeground: token("--text"),
    scrollbarSliderBackground: token("--line-2"),
    scrollbarSliderHoverBackground: token("--muted"),
    scrollbarSliderActiveBackground: token("--muted"),
  };
}
