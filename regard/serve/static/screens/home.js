// The home screen: a live example, where to begin, the models that are served, and all screens.

import { define, make } from "/page/elements.js";
import { displayText } from "/page/token-text.js";
import { emptyMessage } from "../controls.js";
import { icon } from "../icons.js";
import "../live-example.js";
import { loadView, selectLooks } from "../look-selection.js";
import { dateText, openModelCard } from "../model-card.js";
import { SCREENS, firstScreen } from "../screen-list.js";

/** @typedef {import("../api.js").ModelCard} ModelCard */

class HomeScreen extends HTMLElement {
  /** @type {import("../app.js").Context} */
  context = /** @type {any} */ (null);
  #live = make("section", { className: "rg-live", "aria-labelledby": "rg-live", hidden: true });
  #shown = "";

  async update() {
    const { models } = this.context;
    this.context.legend(null, "");
    if (!this.childElementCount) {
      this.replaceChildren(
        make("p", { className: "rg-welcome", textContent: "See where your models look." }),
        this.#live, this.#path(), this.#models(),
        make("section", { "aria-labelledby": "rg-screens" },
          make("h2", { id: "rg-screens", textContent: "All screens" }),
          make("ul", { className: "rg-links" }, ...SCREENS.map((screen) => make("li", {},
            make("a", { href: `/${screen.name}` }, icon(screen.name), make("strong", { textContent: screen.title })), make("span", { textContent: screen.lead }))))));
    }
    const model = liveModel(models);
    if (model && this.#shown !== model.id) {
      this.#shown = model.id;
      await this.#showLive(model).catch(() => { this.#live.hidden = true; });
    }
  }

  /** @param {ModelCard} model */
  async #showLive(model) {
    const text = model.examples[0];
    const trace = await this.context.busy(this.context.api.explain(model.id, { text }));
    const chosen = selectLooks(trace, {}, {});
    if (!chosen) return;
    const view = await loadView(trace, chosen.looks, chosen.aggregate, true, "words");
    if (view.queries.length < 2 || view.queries.length > 40 || view.keys.length > 60) return;
    const example = /** @type {import("../live-example.js").LiveExampleElement} */ (document.createElement("rg-live-example"));
    const name = (/** @type {string} */ side) => side.charAt(0).toUpperCase() + side.slice(1);
    this.#live.replaceChildren(
      make("header", {}, make("h2", { id: "rg-live", textContent: "Move over a word" }),
        make("p", { className: "hint", textContent: `and see which words the model ‘${displayText(model.id, 40)}’ looked at for it.` })),
      example,
      make("a", { className: "rg-button primary", href: `/${firstScreen(model)}?model=${encodeURIComponent(model.id)}`, textContent: "Try your own sentence" }));
    this.#live.hidden = false;
    example.show(view, [name(view.querySide), name(view.keySide)]);
  }

  /** @returns {HTMLElement} three steps from seeing to understanding */
  #path() {
    const { models } = this.context;
    const first = liveModel(models);
    const words = models.find((model) => model.ready && model.screens.includes("sentiment"));
    const screenOf = (/** @type {ModelCard | undefined} */ model, /** @type {string} */ otherwise) => (model ? `/${firstScreen(model)}?model=${encodeURIComponent(model.id)}` : otherwise);
    const steps = [
      ["See it look", "Read a text with the model: every word of its answer, and where it looked.", screenOf(first, "/self-attention")],
      ["Change a word", "Delete or replace a word, and see the answer and the attention change.", screenOf(words ?? first, "/sentiment")],
      ["Take it apart", "Query, key, score, weight, sum: attention computed step by step.", "/steps"],
    ];
    return make("section", { "aria-labelledby": "rg-path" },
      make("h2", { id: "rg-path", textContent: "Start here" }),
      make("ol", { className: "rg-path" }, ...steps.map(([title, text, href], i) => make("li", {},
        make("a", { className: "rg-card", href }, make("span", { className: "rg-path-number", "aria-hidden": "true", textContent: String(i + 1) }),
          make("span", {}, make("strong", { textContent: title }), make("span", { textContent: text })))))));
  }

  #models() {
    const { models, api } = this.context;
    if (!models.length) return emptyMessage("No model is served", "The screens Steps and Scores work without one. Serve the examples that come with Regard with: regard serve");
    return make("section", { "aria-labelledby": "rg-models" },
      make("h2", { id: "rg-models", textContent: models.length === 1 ? "One model is served" : `${models.length} models are served` }),
      make("ul", { className: "rg-cards" }, ...models.map((model) => make("li", { className: "rg-model" },
        make("a", { className: "rg-card model", href: `/${model.ready ? firstScreen(model) : "training"}?model=${encodeURIComponent(model.id)}` },
          icon(firstScreen(model)),
          make("span", {}, make("strong", { textContent: model.id }), ...about(model).map((line) => make("span", { textContent: line })))),
        make("button", { type: "button", className: "rg-button rg-details", textContent: "Card", "aria-label": `Model card of ${model.id}`, on: { click: () => openModelCard(api, model) } })))));
  }
}

/** @param {ModelCard[]} models @returns {ModelCard | undefined} one that answers with a text and looks at another, or any that looks */
function liveModel(models) {
  const looking = models.filter((model) => model.ready && model.looks.length && model.examples.length);
  return looking.find((model) => model.languages && model.looks.includes("source")) ?? looking.find((model) => model.languages) ?? looking[0];
}

/** @param {number} parameters @returns {string} */
function parameterCount(parameters) {
  return parameters < 1e6 ? parameters.toLocaleString("en") : `${(parameters / 1e6).toFixed(1)} million`;
}

/** @param {ModelCard} model @returns {string[]} what it does and how well; from what it was made and when */
function about(model) {
  const languages = model.languages ? `${model.languages[0]} → ${model.languages[1]}` : "";
  const size = model.parameters === null ? "" : `${parameterCount(model.parameters)} parameters`;
  const lines = [
    [model.task, languages, model.data && `data: ${displayText(model.data, 60)}`],
    [model.ready ? model.metric && `${model.metric} in validation` : "in training", size],
    [dateText(model.written)],
  ];
  return lines.map((line) => line.filter(Boolean).join(" · ")).filter(Boolean);
}

define("rg-screen-home", HomeScreen);
