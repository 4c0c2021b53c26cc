// The list of screens, which the server reads from the same file for its addresses.

/** @typedef {import("./api.js").ModelCard} ModelCard */
/**
 * `train` is the task to train for a model of the screen's own kind; null where any model will do.
 * @typedef {{name: string, title: string, lead: string, group: string, train: string | null}} Screen
 */

/** @type {Screen[]} */
export const SCREENS = await (await fetch("/static/screens.json")).json();

/** @type {Screen} */
export const HOME = { name: "home", title: "Regard", lead: "", group: "", train: null };

/** @param {Screen} screen @param {ModelCard} model @returns {boolean} whether the screen can show the model */
export function suits(screen, model) {
  return screen.train === null || model.screens.includes(screen.name);
}

/** @param {ModelCard} model @returns {string} the name of the screen that a model opens with */
export function firstScreen(model) {
  return model.screens.find((name) => SCREENS.some((screen) => screen.name === name)) ?? "self-attention";
}

/**
 * Whether `explain` takes a `target`, an output that the model reads along: that is part of what the
 * translation screen needs of a model.
 * @param {ModelCard} model
 * @returns {boolean}
 */
export function takesTarget(model) {
  return model.screens.includes("translation");
}
