// The words of the scripts, translated by the catalogue that every page loads before its modules (django's JavaScriptCatalog).
// Placeholders are named: said("{name} was stopped", {name}); makemessages finds the calls of gettext and ngettext.
const catalogue = globalThis.django ?? {};

export const gettext = catalogue.gettext ?? ((text) => text);
export const ngettext = catalogue.ngettext ?? ((one, many, count) => (count === 1 ? one : many));

export function said(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? uncovered(String(values[name])) : whole));
}

// Characters that turn the direction of what follows or have no width, as accounts/disguise.py knows them
const HIDDEN = new RegExp(
  "[\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]" +
  "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])", "gu",
);

export function codeOf(char) {
  return `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

export function uncovered(text) {
  return text.replace(HIDDEN, (char) => `[${codeOf(char)}]`);
}

export function hiddenIn(text) {
  // [{index, char}]
  return [...text.matchAll(HIDDEN)].map(({ index, 0: char }) => ({ index, char }));
}
