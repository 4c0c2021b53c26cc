// The home screen: the models that are served, and all screens.

import { define, make } from "/page/elements.js";
import { icon } from "../icons.js";
import { SCREENS, firstScreen } from "../screen-list.js";

class HomeScreen extends HTMLElement {
  /** @type {import("../app.js").Context} */
  context = /** @type {any} */ (null);

  update() {
    const { models } = this.context;
    this.context.legend(null, "");
    this.replaceChildren(
      make("p", { className: "rg-welcome", textContent: "See where your models look." }),
      make("section", { "aria-labelledby": "rg-models" },
        make("h2", { id: "rg-models", textContent: models.length === 1 ? "One model is served" : `${models.length} models are served` }),
        make("ul", { className: "rg-cards" }, ...models.map((model) => make("li", {},
          make("a", { className: "rg-card model", href: `/${model.ready ? firstScreen(model) : "training"}?model=${encodeURIComponent(model.id)}` },
            icon(firstScreen(model)),
            make("span", {}, make("strong", { textContent: model.id }),
              make("span", { textContent: about(model) }))))))),
      make("section", { "aria-labelledby": "rg-screens" },
        make("h2", { id: "rg-screens", textContent: "Screens" }),
        make("ul", { className: "rg-cards" }, ...SCREENS.map((screen) => make("li", {},
          make("a", { className: "rg-card", href: `/${screen.name}` }, icon(screen.name),
            make("span", {}, make("strong", { textContent: screen.title }), make("span", { textContent: screen.lead }))))))));
  }
}

/** @param {number} parameters @returns {string} */
function parameterCount(parameters) {
  return parameters < 1e6 ? parameters.toLocaleString("en") : `${(parameters / 1e6).toFixed(1)} million`;
}

/** @param {import("../api.js").ModelCard} model */
function about(model) {
  const kind = model.config.model?.encoder || model.config.model?.model;
  const size = model.parameters === null ? "" : `${parameterCount(model.parameters)} parameters`;
  const languages = model.languages ? `${model.languages[0]} → ${model.languages[1]}` : "";
  return [model.task, languages, kind, size, model.ready ? "" : "in training"].filter(Boolean).join(" · ");
}

define("rg-screen-home", HomeScreen);
