// <rg-screen-experiments>: claims about attention, whether they held, and the pictures and numbers of
// each result that was saved.

import { define, make } from "/page/elements.js";
import { displayText } from "/page/token-text.js";
import { emptyMessage, errorMessage, loadingMessage } from "../controls.js";
import { codeBlock } from "../copy.js";
import { makeTableToggle } from "../drawing-options.js";
import { sheetMenu, sideBySide } from "../export.js";
import { plainTable, tableFrame } from "../interval-bars.js";
import { dateText } from "../model-card.js";
import "./stylesheet.js";

/** @typedef {import("../app.js").Context} Context */
/** @typedef {{mean: number | null, low: number | null, high: number | null, n: number}} Measured */
/**
 * @typedef {{name: string, claim: string, source?: string, held: boolean, summary: string, size?: string, processor_seconds?: number, written: number,
 *   numbers: Record<string, Measured>, tables?: Record<string, {columns: string[], rows: string[][]}>, svg?: string[]}} Result
 */
/** @typedef {{name: string, claim: string, source: string, minutes: number | null, result: Result | null}} Experiment */

class ExperimentsScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  #turn = 0;
  message = document.createElement("div");
  list = make("ul", { className: "rg-claims" });
  heading = make("h2", {});
  claim = make("p", { className: "rg-claim" });
  verdict = make("p", { className: "rg-verdict-line" });
  about = make("p", { className: "hint" });
  body = make("div", { className: "rg-stack" });
  tools = make("div", { className: "rg-fields" });
  card = make("section", { className: "rg-panel-card", "aria-label": "Result" });
  board = make("div", { className: "rg-evidence", hidden: true });
  /** @type {import("../drawing-options.js").TableToggleElement | null} */
  shape = null;
  /** @type {Experiment[] | null} */
  #all = null;
  /** @type {Map<string, Result>} */
  #known = new Map();
  /** @type {Result | null} */
  #result = null;

  #build() {
    const { context } = this;
    this.shape = makeTableToggle(context, "Picture");
    this.tools.append(this.shape, sheetMenu(() => `experiment-${this.#result?.name ?? ""}`, {
      title: () => this.#result?.claim ?? "",
      picture: () => sideBySide((this.#result?.svg ?? []).map((text) => ["", pictureFrom(text)]), 1),
      tables: () => (this.#result ? [this.#numbers(this.#result)] : []),
      json: () => this.#result,
    }, context));
    this.card.append(make("div", { className: "rg-card-head" }, this.heading, this.tools), this.claim, this.verdict, this.about, this.body);
    this.board.append(make("nav", { className: "rg-panel-card", "aria-label": "Claims" }, this.list), this.card);
    this.append(this.message, this.board);
    context.keys({});
  }

  async update() {
    const turn = ++this.#turn;
    if (!this.card.isConnected) this.#build();
    const { context, message } = this;
    context.legend(null, "numbers: means over seeds with 95 % intervals");
    try {
      if (!this.#all) {
        message.replaceChildren(loadingMessage("Reading…"));
        this.#all = await context.busy(context.api.experiments());
      }
      const all = /** @type {Experiment[]} */ (this.#all);
      const chosen = all.find((one) => one.name === context.state.experiment) ?? all.find((one) => one.result) ?? all[0];
      if (chosen?.result && !this.#known.has(chosen.name)) this.#known.set(chosen.name, await context.busy(context.api.experiment(chosen.name)));
      if (turn !== this.#turn) return;
      message.replaceChildren();
      this.board.hidden = false;
      this.#list(all, chosen);
      this.#draw(chosen);
    } catch (error) {
      if (turn !== this.#turn) return;
      this.board.hidden = true;
      message.replaceChildren(errorMessage(error));
    }
  }

  /** @param {Experiment[]} all @param {Experiment} chosen */
  #list(all, chosen) {
    const focused = this.list.contains(document.activeElement);
    this.list.replaceChildren(...all.map((one) => make("li", {}, make("button", {
      type: "button", className: "rg-claim-link", "aria-current": one === chosen ? "true" : "false",
      on: { click: () => this.context.setState({ experiment: one.name }, { push: true }) },
    }, make("span", {}, make("strong", { textContent: displayText(one.name, 40) }), badge(one.result)), make("span", { className: "hint", textContent: displayText(one.claim, 200), dir: "auto" })))));
    const current = this.list.querySelector("[aria-current=true]");
    if (current instanceof HTMLElement) {
      if (focused) current.focus();
      // the list scrolls, the page does not
      this.list.scrollTop = Math.max(0, current.offsetTop - this.list.offsetTop - 80);
    }
  }

  /** @param {Experiment} one */
  #draw(one) {
    const { context } = this;
    const command = codeBlock(`regard experiment ${one.name}`, "Command");
    const result = this.#result = one.result ? this.#known.get(one.name) ?? null : null;
    this.heading.replaceChildren(displayText(one.name, 60), " ", badge(result));
    this.claim.replaceChildren(displayText(result?.claim ?? one.claim, 600), " ", make("span", { className: "hint", textContent: `(${displayText(result?.source ?? one.source, 200)})` }));
    this.verdict.hidden = this.about.hidden = this.tools.hidden = !result;
    if (!result) {
      this.body.replaceChildren(emptyMessage("Not run yet", `Run it${one.minutes ? ` (about ${one.minutes < 1 ? "half a minute" : one.minutes === 1 ? "a minute" : `${one.minutes} minutes`} on two cores)` : ""}, and reload this page:`, command));
      context.say(`${one.name}: not run yet`);
      return;
    }
    this.shape?.show();
    this.verdict.textContent = `The claim ${result.held ? "held" : "did not hold"}: ${displayText(result.summary, 1500)}`;
    const size = result.size === "tiny" ? " This was the smallest size, which only shows that the experiment runs: the verdict means nothing." : "";
    this.about.textContent = `Size ${result.size ?? "default"}, ${numberText(result.processor_seconds)} seconds of processor time, ${dateText(result.written)}.${size}`;
    const table = context.state.shape === "table";
    this.body.replaceChildren(
      ...(table ? [] : (result.svg ?? []).map((text, i) => figure(text, `Picture ${i + 1} of the experiment ${result.name}`))),
      tableFrame("What was measured", this.#numbers(result)),
      ...otherTables(result),
      make("details", { className: "rg-samples" }, make("summary", { textContent: "Run it yourself" }), command));
    context.say(`${one.name}: the claim ${result.held ? "held" : "did not hold"}`);
  }

  /** @param {Result} result @returns {HTMLTableElement} */
  #numbers(result) {
    return plainTable("What was measured", ["measured", "mean", "95 % interval", "seeds"], Object.entries(result.numbers).map(([name, one]) => [
      displayText(name, 200), numberText(one?.mean), typeof one?.low === "number" && typeof one?.high === "number" ? `${numberText(one.low)} to ${numberText(one.high)}` : "–", String(one?.n ?? "")]));
  }
}

/** @param {Result} result @returns {HTMLElement[]} what an experiment shows beside its numbers */
function otherTables(result) {
  const lines = (/** @type {unknown} */ row) => (Array.isArray(row) ? row.slice(0, 20).map((cell) => displayText(String(cell), 200)) : []);
  return Object.entries(result.tables ?? {}).slice(0, 8).map(([name, table]) => {
    const title = displayText(name, 200);
    const rows = Array.isArray(table?.rows) ? table.rows.slice(0, 200).map(lines) : [];
    return tableFrame(title, plainTable(title, lines(table?.columns), rows));
  });
}

/** @param {Result | null} result @returns {HTMLElement} */
function badge(result) {
  if (!result) return make("span", { className: "rg-badge", textContent: "not run" });
  return make("span", { className: `rg-badge ${result.held ? "good" : "bad"}`, textContent: result.held ? "held" : "did not hold" });
}

/** @param {number | null | undefined} value @returns {string} four digits that count */
function numberText(value) {
  if (typeof value !== "number") return "–";
  const size = Math.abs(value);
  const text = value === 0 ? "0" : size >= 1e5 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
  return text.replaceAll("-", "−");
}

/** @param {string} text SVG @param {string} name @returns {HTMLElement} as an image, in which nothing can run */
function figure(text, name) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  const about = ["title", "desc"].map((tag) => parsed.querySelector(tag)?.textContent ?? "").filter(Boolean).join(". ");
  return make("figure", { className: "rg-figure" }, make("img", { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`, alt: displayText(about || name, 600) }));
}

const SVG = "http://www.w3.org/2000/svg";
/** Elements that only draw. */
const DRAWN = new Set("g path rect circle ellipse line polyline polygon text tspan title desc defs linearGradient radialGradient stop clipPath marker pattern".split(" "));

/** @param {string} text @returns {SVGElement | null} for files: without anything that runs or is loaded */
function pictureFrom(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.localName !== "svg" || root.namespaceURI !== SVG) return null;
  for (const node of root.querySelectorAll("*")) if (node.namespaceURI !== SVG || !DRAWN.has(node.localName)) node.remove();
  for (const node of [root, ...root.querySelectorAll("*")]) {
    for (const { name, value } of [...node.attributes]) if (/^on|href$/i.test(name) || /url\s*\(\s*["']?\s*[^#"'\s]/i.test(value)) node.removeAttribute(name);
  }
  return /** @type {SVGElement} */ (/** @type {unknown} */ (document.importNode(root, true)));
}

define("rg-screen-experiments", ExperimentsScreen);
