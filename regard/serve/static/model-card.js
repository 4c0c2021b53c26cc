// The card of a model: what `regard info` prints, and the commands that use the run.

import { make } from "/page/elements.js";
import { displayText } from "/page/token-text.js";
import { errorMessage, loadingMessage } from "./controls.js";
import { codeBlock } from "./copy.js";

/** @typedef {import("./api.js").ModelCard} ModelCard */

/** @param {ModelCard} model @returns {string} how commands name its run */
export function commandArgument(model) {
  return model.argument ?? model.id;
}

/** @param {number | undefined} seconds @returns {string} */
export function dateText(seconds) {
  return seconds ? new Date(1000 * seconds).toISOString().slice(0, 10) : "";
}

/** @param {import("./api.js").Api} api @param {ModelCard} model */
export function openModelCard(api, model) {
  const body = make("div", {}, loadingMessage("Reading…"));
  const dialog = make("dialog", { className: "help rg-model-card", "aria-label": `Model card of ${model.id}` },
    make("h2", { textContent: displayText(model.id, 80) }), body,
    make("button", { type: "button", className: "rg-button", textContent: "Close", on: { click: () => dialog.close() } }));
  dialog.addEventListener("close", () => dialog.remove());
  document.querySelector("rg-app")?.append(dialog);
  dialog.showModal();
  api.card(model.id).then(
    (rows) => body.replaceChildren(
      make("dl", {}, ...rows.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: value, dir: "auto" })])),
      make("h3", { textContent: "Use it" }),
      codeBlock(`regard predict ${commandArgument(model)}\nregard info ${commandArgument(model)}`, "Commands")),
    (error) => body.replaceChildren(errorMessage(error)));
}
