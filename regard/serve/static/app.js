// The app: the address as the only state, and the frame around every screen of screens.json.
//
// A screen is a module `screens/NAME.js` that defines the element `<rg-screen-NAME>`. The app loads
// it when its address is first opened, sets `context` once and then calls `update()`: at the start
// and after every change of the state. A screen is `class extends HTMLElement` with
//
//   /** @type {import("../app.js").Context} */ context;
//   update() { … }      // draw what `this.context.state` says; may be async
//
// and lives in the light DOM, so that app.css and axe reach it. The context offers
//
//   api        what the server answers (api.js); `api.explain(model, body)` remembers traces, and a
//              failure is an `ApiError` whose message is the server's own `detail`
//   screen     its own entry of screens.json
//   models     all model cards; `suited` are those that the screen can show, and `model` is the
//              chosen one of them, or null when there is none
//   state      the query of the address, a record of strings: model, text, look, layer, head,
//              aggregate, scale, rows, threshold, specials, shape, row, column … and whatever else
//              a screen needs under names of its own. Left out means default.
//   setState(partial, options)   change it; `undefined` or "" takes a name out. The address is
//              replaced unless `{push: true}`; `update()` follows. For selections, `{quiet: true}`
//              changes the address only.
//   say(text)  the spoken status line; `showHover(text)` shows something while the pointer is over it
//   legend(view, scale)          the permanent legend; `legend(null, text)` where no view is drawn
//   busy(promise)                shows a progress bar until it is settled; returns the promise
//   keys(map)  keys of this screen, `{"]": () => …}`, that work outside of text boxes. `T` and `?`
//              are the app's: T puts "table" in and out of `state.shape`.
//
// controls.js has the parts that screens share: `<rg-input>`, `<rg-drawbar>`, `errorMessage`, `emptyMessage`; export.js has the menus.

import { make } from "/page/elements.js";
import "/page/legend.js";
import "/page/status-line.js";
import { Api } from "./api.js";
import { displayText } from "/page/token-text.js";
import { errorMessage } from "./controls.js";
import { startColourMode } from "./colour-mode.js";
import { makeTools } from "./frame-tools.js";
import { icon } from "./icons.js";
import { HOME, SCREENS, suits } from "./screen-list.js";

/** @typedef {import("./api.js").ModelCard} ModelCard */
/** @typedef {Record<string, string>} State */
/** @typedef {{push?: boolean, quiet?: boolean}} Change */
/**
 * @typedef {{api: Api, screen: Screen, models: ModelCard[], suited: ModelCard[], model: ModelCard | null, state: State,
 *   setState: (partial: Record<string, string | number | boolean | undefined>, change?: Change) => void,
 *   say: (text: string) => void, showHover: (text: string) => void,
 *   legend: (view: import("/page/weights.js").View | null, scale?: import("/page/colour-scale.js").Scale | string) => void,
 *   busy: <T>(promise: Promise<T>) => Promise<T>,
 *   keys: (map: Record<string, () => void>) => void}} Context
 */
/** @typedef {HTMLElement & {context: Context, update: () => void | Promise<void>}} ScreenElement */
/** @typedef {import("./screen-list.js").Screen} Screen */

const KEYS = [
  ["Tab", "move between parts"],
  ["← ↑ ↓ →", "move between cells or words; ten at a time with Shift"],
  ["Home  End", "first and last"],
  ["[  ]", "previous head, next head"],
  ["P", "presentation: large type, without navigation"],
  ["T", "switch between drawing and table"],
  ["+  −  0", "zoom in, zoom out, show the whole matrix"],
  ["Enter", "select the focused item"],
  ["?", "show this help"],
];

/** The frame: navigation, the screen, the status line with the legend. */
export class AppElement extends HTMLElement {
  api = new Api();
  /** @type {ModelCard[]} */
  models = [];
  /** @type {State} */
  state = {};
  /** @type {Record<string, () => void>} */
  #keys = {};
  /** @type {Screen} */
  #screen = HOME;
  /** @type {ScreenElement | null} */
  #screenElement = null;
  #turn = 0;
  #under = 0;
  /** @type {Record<string, any>} */
  parts = {};

  async connectedCallback() {
    if (this.parts.main) return;
    startColourMode();
    this.#build();
    addEventListener("popstate", () => void this.#open());
    document.addEventListener("keydown", (event) => this.#key(event));
    this.addEventListener("click", (event) => this.#follow(event));
    try {
      this.models = await this.busy(this.api.models());
    } catch (error) {
      this.parts.place.replaceChildren(errorMessage(error));
      return;
    }
    await this.#open();
  }

  #build() {
    const { parts } = this;
    parts.links = new Map();
    const groups = [...new Set(SCREENS.map((screen) => screen.group))];
    parts.nav = make("nav", { className: "rg-nav", "aria-label": "Screens" },
      ...groups.map((group) => make("section", {},
        make("h2", { className: "rg-nav-group", textContent: group }),
        ...SCREENS.filter((screen) => screen.group === group).map((screen) => {
          const link = make("a", { className: "rg-nav-link", href: `/${screen.name}` }, icon(screen.name), make("span", { textContent: screen.title }));
          parts.links.set(screen.name, link);
          return link;
        }))));
    parts.menu = make("button", {
      type: "button", className: "rg-menu", "aria-expanded": "false", "aria-label": "Screens",
      on: { click: () => this.#menu(!this.classList.contains("open")) },
    }, icon("menu"));
    parts.help = this.#help();
    parts.tools = makeTools({ present: () => this.#present(), say: (text) => parts.status.say(text) });
    parts.title = make("h1", {});
    parts.lead = make("p", { className: "rg-lead" });
    parts.place = make("div", { className: "rg-place" });
    parts.unknown = make("p", { className: "rg-unknown", role: "note", hidden: true });
    parts.progress = make("div", { className: "rg-progress", hidden: true, "aria-hidden": "true" });
    parts.main = make("main", { className: "rg-main", id: "main", tabIndex: -1 },
      make("header", { className: "rg-head" }, parts.title, parts.lead, parts.tools), parts.unknown, parts.place);
    parts.status = document.createElement("regard-status");
    parts.legend = document.createElement("regard-legend");
    parts.legendText = make("span", { className: "rg-legend-text", hidden: true });
    this.replaceChildren(
      make("a", { className: "rg-skip", href: "#main", textContent: "Skip to content", on: { click: (/** @type {Event} */ event) => { event.preventDefault(); parts.main.focus(); } } }),
      make("header", { className: "rg-side" },
        make("div", { className: "rg-top" }, parts.menu, make("a", { className: "rg-brand", href: "/" }, "Regard"),
          make("button", { type: "button", className: "rg-round", "aria-label": "Help", title: "Help (?)", textContent: "?", on: { click: () => parts.help.showModal() } })),
        parts.nav,
        make("p", { className: "rg-foot-links" }, make("a", { href: `/docs${location.hash}`, textContent: "HTTP interface" }))),
      parts.progress, parts.main,
      make("footer", { className: "rg-foot" }, parts.status,
        make("div", { className: "rg-legend" }, parts.legend, parts.legendText),
        make("p", { className: "rg-note" }, "Weights show where the model looked, ", make("a", { href: "/trust", textContent: "not why it answered" }), ".")),
      parts.help,
    );
  }

  /** Switch between presentation and the whole app. */
  #present() {
    this.#change({ view: this.state.view === "present" ? undefined : "present" }, {});
  }

  /** @param {MouseEvent} event links between screens stay in this page */
  #follow(event) {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || link.hasAttribute("download")) return;
    const url = new URL(link.href, location.href);
    const name = url.pathname.slice(1);
    if (url.origin !== location.origin || (name !== "" && !SCREENS.some((screen) => screen.name === name))) return;
    event.preventDefault();
    this.#menu(false);
    // the Trust screen opens with the model that is shown now, even if the address does not name it
    const model = this.state.model ?? (name === "trust" && this.#screen !== HOME ? this.#model()?.id : undefined);
    if (!url.search && model) url.search = String(new URLSearchParams({ model }));
    if (this.state.view && !url.searchParams.has("view")) url.searchParams.set("view", this.state.view);
    history.pushState(null, "", `${url.pathname}${url.search}${location.hash}`);
    void this.#open();
    this.parts.main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  /** @param {boolean} open */
  #menu(open) {
    this.classList.toggle("open", open);
    this.parts.menu.setAttribute("aria-expanded", String(open));
  }

  /** Show what the address names. */
  async #open() {
    const turn = ++this.#turn;
    const { parts } = this;
    const name = location.pathname.slice(1);
    const screen = SCREENS.find((one) => one.name === name) ?? HOME;
    this.state = Object.fromEntries(new URLSearchParams(location.search));
    for (const [key, link] of parts.links) {
      if (key === screen.name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (screen === this.#screen && this.#screenElement) return this.#update();
    this.#screen = screen;
    this.#screenElement = null;
    this.#keys = {};
    this.dataset.screen = screen.name;
    delete this.dataset.ready;
    document.title = screen === HOME ? "Regard" : `${screen.title} · Regard`;
    parts.title.textContent = screen.title;
    parts.lead.textContent = screen.lead;
    parts.place.replaceChildren();
    parts.status.say("");
    parts.status.showHover("");
    this.legend(null, "");
    try {
      await this.busy(import(`./screens/${screen.name}.js`));
      if (turn !== this.#turn) return;
      const element = /** @type {ScreenElement} */ (document.createElement(`rg-screen-${screen.name}`));
      this.#screenElement = element;
      element.context = this.#context();
      parts.place.replaceChildren(element);
      this.#update();
    } catch (error) {
      if (turn === this.#turn) parts.place.replaceChildren(errorMessage(error));
    }
  }

  /** @returns {Context} */
  #context() {
    const app = this;
    return {
      api: this.api,
      get screen() { return app.#screen; },
      get models() { return app.models; },
      get suited() { return app.#suited(); },
      get model() { return app.#model(); },
      get state() { return app.state; },
      setState: (partial, change = {}) => app.#change(partial, change),
      say: (text) => app.parts.status.say(text),
      showHover: (text) => app.parts.status.showHover(text),
      legend: (view, scale) => app.legend(view, scale),
      busy: (promise) => app.busy(promise),
      keys: (map) => { app.#keys = map; },
    };
  }

  /** @returns {ModelCard[]} the models that the screen can show */
  #suited() {
    return this.models.filter((model) => suits(this.#screen, model));
  }

  /** @returns {ModelCard | null} the model of the address where it suits the screen, or the first that does */
  #model() {
    const suited = this.#suited();
    const ready = suited.filter((model) => model.ready);
    return suited.find((model) => model.id === this.state.model)
      ?? ready.find((model) => model.screens.includes(this.#screen.name)) ?? ready[0] ?? suited[0] ?? null;
  }

  /** @param {Record<string, string | number | boolean | undefined>} partial @param {Change} change */
  #change(partial, { push = false, quiet = false }) {
    for (const [name, value] of Object.entries(partial)) {
      if (value === undefined || value === "" || value === false) delete this.state[name];
      else this.state[name] = value === true ? "1" : String(value);
    }
    const query = String(new URLSearchParams(this.state));
    const address = `${location.pathname}${query ? `?${query}` : ""}${location.hash}`;
    if (push) {
      next.address = "";
      history.pushState(null, "", address);
    } else replaceSoon(address);
    if (!quiet) this.#update();
  }

  /** Report the names in the address that are no model served here. */
  #reportUnknownModels() {
    const { state, models } = this;
    const named = [state.model, state.other, state.of, ...(state.runs ?? "").split(",")].filter(Boolean);
    const unknown = [...new Set(named)].filter((id) => !models.some((model) => model.id === id));
    this.parts.unknown.hidden = !unknown.length;
    this.parts.unknown.textContent = unknown.length
      ? `No model named ${unknown.map((id) => `‘${displayText(id)}’`).join(" or ")} is served here. Available: ${models.map((model) => displayText(model.id)).join(", ")}.` : "";
  }

  #update() {
    const element = this.#screenElement;
    if (!element) return;
    this.#reportUnknownModels();
    this.dataset.view = ["present", "embed"].includes(this.state.view) ? this.state.view : "full";
    this.parts.tools.querySelector(".rg-present").setAttribute("aria-pressed", String(this.state.view === "present"));
    Promise.resolve(element.update()).then(
      () => { if (element === this.#screenElement) this.dataset.ready = "yes"; },
      (error) => { if (element === this.#screenElement) this.parts.place.replaceChildren(errorMessage(error)); this.#screenElement = null; },
    );
  }

  /**
   * @param {import("/page/weights.js").View | null} view
   * @param {import("/page/colour-scale.js").Scale | string} [scale]
   */
  legend(view, scale) {
    const { legend, legendText } = this.parts;
    legend.hidden = !view;
    legendText.hidden = Boolean(view);
    if (typeof scale === "string") legendText.textContent = scale;
    else if (scale) legend.scale = scale;
    if (view) legend.view = view;
  }

  /**
   * @template T
   * @param {Promise<T>} promise
   * @returns {Promise<T>}
   */
  async busy(promise) {
    this.#under++;
    this.parts.progress.hidden = false;
    this.parts.main.setAttribute("aria-busy", "true");
    try {
      return await promise;
    } finally {
      if (--this.#under === 0) {
        this.parts.progress.hidden = true;
        this.parts.main.removeAttribute("aria-busy");
      }
    }
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { target } = event;
    if (!(target instanceof HTMLElement) || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && this.classList.contains("open")) return this.#menu(false);
    if (target.isContentEditable || target.closest("dialog") || target.matches("textarea, select, input:not([type=range]):not([type=checkbox])")) return;
    const own = this.#keys[event.key];
    if (own) own();
    else if (event.key === "p" || event.key === "P" || (event.key === "Escape" && this.state.view === "present")) this.#present();
    else if (event.key === "t" || event.key === "T") {
      const table = this.state.shape === "table";
      this.#change({ shape: table ? this.state.before : "table", before: table ? undefined : this.state.shape }, {});
    } else if (event.key === "?") this.parts.help.showModal();
    else return;
    event.preventDefault();
  }

  #help() {
    /** @type {HTMLDialogElement} */
    const dialog = make("dialog", { className: "help", "aria-label": "Help" },
      make("h2", { textContent: "Keys" }),
      make("dl", {}, ...KEYS.flatMap(([key, what]) => [make("dt", {}, make("kbd", { textContent: key })), make("dd", { textContent: what })])),
      make("p", { textContent: "Colours go from zero to the largest weight drawn; the legend at the bottom gives its value. The address of this page contains everything that you have selected: you can bookmark or share it." }),
      make("button", { type: "button", className: "rg-button", textContent: "Close", on: { click: () => dialog.close() } }));
    return dialog;
  }
}

/** @type {{address: string, waiting: boolean}} */
const next = { address: "", waiting: false };

/** @param {string} address browsers refuse more than a few hundred changes in half a minute */
function replaceSoon(address) {
  next.address = address;
  if (next.waiting) return;
  next.waiting = true;
  const { pathname } = location;
  setTimeout(() => {
    next.waiting = false;
    if (next.address && location.pathname === pathname) history.replaceState(null, "", next.address);
  }, 120);
}

customElements.define("rg-app", AppElement);
