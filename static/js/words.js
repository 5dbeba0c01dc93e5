// The words of the scripts, translated by the catalogue that every page loads before its modules (django's JavaScriptCatalog).
// Placeholders are named: said("{name} was stopped", {name}); makemessages finds the calls of gettext and ngettext.
const catalogue = globalThis.django ?? {};

export const gettext = catalogue.gettext ?? ((text) => text);
export const ngettext = catalogue.ngettext ?? ((one, many, count) => (count === 1 ? one : many));

export function said(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
