// Copying: commands and addresses with a button that says when it is done.

import { make } from "/page/elements.js";

/** @param {string} text @returns {Promise<boolean>} whether it is in the clipboard now */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // pages without encryption have no clipboard: select the text of a field instead
    const box = make("textarea", { value: text, className: "rg-said", "aria-hidden": "true" });
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    return done;
  }
}

/** @param {() => string} text @param {string} label @returns {HTMLButtonElement} */
export function copyButton(text, label = "Copy") {
  const button = make("button", { type: "button", className: "rg-button rg-copy", textContent: label, on: { click: async () => {
    button.textContent = (await copyText(text())) ? "Copied" : "Press Ctrl+C";
    setTimeout(() => { button.textContent = label; }, 1600);
  } } });
  return button;
}

/** @param {string} text @param {string} label what it is, for screen readers @returns {HTMLElement} text as it is typed, with a button that copies it */
export function codeBlock(text, label) {
  return make("div", { className: "rg-code-block" },
    make("pre", { className: "rg-code", tabIndex: 0, role: "region", "aria-label": label, textContent: text }), copyButton(() => text));
}
