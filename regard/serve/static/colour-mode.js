// Light or dark: that of the system, or the one that was chosen in the app, which is remembered.

import { chooseDark, isDark } from "/page/colours.js";

const KEY = "regard-colours";
const DARK = "(prefers-color-scheme: dark)";
/** @type {WeakMap<CSSMediaRule, string>} rules for dark pages, with the condition that they were written with */
const rules = new WeakMap();

/** Follow what was chosen before; style sheets that load later too. */
export function startColourMode() {
  document.addEventListener("load", (event) => { if (event.target instanceof HTMLLinkElement) apply(); }, true);
  apply();
}

/** Switch between light and dark. */
export function switchColours() {
  const mode = isDark() ? "light" : "dark";
  try {
    localStorage.setItem(KEY, mode);
  } catch { /* a frame without storage forgets it */ }
  apply(mode);
}

/** @returns {string | null} */
function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** @param {string | null} [mode] */
function apply(mode = remembered()) {
  const chosen = mode === "dark" || mode === "light" ? mode : null;
  document.documentElement.style.colorScheme = chosen ?? "";
  for (const sheet of document.styleSheets) {
    for (const rule of sheet.cssRules) {
      if (!(rule instanceof CSSMediaRule)) continue;
      if (rule.media.mediaText.includes(DARK)) rules.set(rule, rule.media.mediaText);
      const written = rules.get(rule);
      if (written) rule.media.mediaText = chosen === null ? written : chosen === "dark" ? "all" : "not all";
    }
  }
  chooseDark(chosen === null ? null : chosen === "dark");
}
