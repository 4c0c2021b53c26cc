// <regard-heads>: a thumbnail of every head; layers are rows, heads columns.

import { onColourChange, palette } from "./colours.js";
import { define, make } from "./elements.js";
import { cellPicture } from "./matrix.js";
import { PLAIN, levels } from "./colour-scale.js";
import { measures, viewOf, weightsOf } from "./weights.js";

/** @typedef {import("./weights.js").LookRecord} LookRecord */
/** @typedef {import("./weights.js").TraceDocument} TraceDocument */

const PIXELS = 56;

/**
 * Call `show(trace, looks, chosen)`. Selecting a head is the event `regard-head`, hovering over one
 * `regard-preview`; the detail of both is the look, or null when the pointer has left.
 */
export class HeadsElement extends HTMLElement {
  /** @type {LookRecord[]} */
  #looks = [];
  /** @type {Map<LookRecord, HTMLButtonElement>} */
  #buttons = new Map();
  /** @type {TraceDocument | null} */
  #trace = null;
  #turn = 0;

  connectedCallback() {
    onColourChange(() => this.#fill());
  }

  /** @param {TraceDocument} trace @param {LookRecord[]} looks @param {LookRecord[]} chosen */
  show(trace, looks, chosen) {
    if (this.#trace !== trace || this.#looks.length !== looks.length || this.#looks.some((look, i) => look !== looks[i])) {
      this.#trace = trace;
      this.#looks = looks;
      this.#lay();
      this.#fill();
    }
    const focus = chosen[0] ?? looks[0];
    for (const [look, button] of this.#buttons) {
      button.setAttribute("aria-pressed", String(chosen.includes(look)));
      button.tabIndex = look === focus ? 0 : -1;
    }
  }

  #lay() {
    const orNone = (/** @type {number | undefined} */ n) => n ?? -1;
    const layers = [...new Set(this.#looks.map((look) => orNone(look.layer)))].sort((a, b) => a - b);
    const heads = [...new Set(this.#looks.map((look) => orNone(look.head)))].sort((a, b) => a - b);
    const grid = make("div", { className: "heads-grid", role: "group", "aria-label": "Heads, one row per layer" });
    grid.style.gridTemplateColumns = `auto repeat(${heads.length}, minmax(18px, var(--head-size, ${PIXELS}px)))`;
    this.#buttons.clear();
    grid.append(make("span", {}));
    for (const head of heads) grid.append(make("span", { className: "heads-name", textContent: head < 0 ? "" : String(head) }));
    for (const layer of layers) {
      grid.append(make("span", { className: "heads-name layer", textContent: layer < 0 ? "" : String(layer) }));
      for (const head of heads) {
        const look = this.#looks.find((one) => orNone(one.layer) === layer && orNone(one.head) === head);
        grid.append(look ? this.#thumbnail(look) : make("span", {}));
      }
    }
    this.#columns = heads.length;
    this.replaceChildren(grid);
  }

  #columns = 1;

  /** @param {LookRecord} look */
  #thumbnail(look) {
    const name = [look.layer === undefined ? "" : `layer ${look.layer}`, look.head === undefined ? "" : `head ${look.head}`].filter(Boolean).join(", ") || look.name;
    const tell = (/** @type {string} */ type, /** @type {LookRecord | null} */ detail) => this.dispatchEvent(new CustomEvent(type, { bubbles: true, detail }));
    const button = make(
      "button",
      {
        type: "button", className: "head", "aria-label": name, title: name, tabIndex: -1,
        on: {
          click: () => tell("regard-head", look),
          pointerenter: () => tell("regard-preview", look),
          pointerleave: () => tell("regard-preview", null),
          keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event, button),
        },
      },
      make("canvas", { width: PIXELS, height: PIXELS, "aria-hidden": "true" }),
    );
    this.#buttons.set(look, button);
    return button;
  }

  /** Draw the thumbnails one after the other, when nothing else waits. */
  async #fill() {
    const turn = ++this.#turn;
    for (const [look, button] of this.#buttons) {
      await new Promise((resolve) => ("requestIdleCallback" in window ? requestIdleCallback(resolve, { timeout: 300 }) : setTimeout(resolve, 4)));
      if (turn !== this.#turn || !this.#trace) return;
      const weights = await weightsOf(look);
      if (turn !== this.#turn) return;
      const view = viewOf(this.#trace, [look], [weights]);
      const pool = Math.max(1, Math.floor(Math.max(view.queries.length, view.keys.length) / PIXELS));
      const picture = cellPicture(view, levels(view, { ...PLAIN, kind: "sqrt" }), pool, palette().pixels);
      const canvas = /** @type {HTMLCanvasElement} */ (button.firstElementChild);
      const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
      context.imageSmoothingEnabled = false;
      context.drawImage(picture, 0, 0, PIXELS, PIXELS);
      if (look.head !== undefined && view.keys.length) {
        const { entropy, distance } = measures(weights, view.keys.length);
        button.title = `${button.getAttribute("aria-label")}: entropy ${entropy.toFixed(2)} bits, mean distance ${distance.toFixed(1)}`;
      }
    }
    this.dataset.drawn = String(this.#buttons.size);
  }

  /** @param {KeyboardEvent} event @param {HTMLButtonElement} button */
  #key(event, button) {
    const all = [...this.#buttons.values()];
    const at = all.indexOf(button);
    const moves = /** @type {Record<string, number>} */ ({
      ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - this.#columns, ArrowDown: at + this.#columns, Home: 0, End: all.length - 1,
    });
    const next = moves[event.key];
    if (next === undefined) return;
    event.preventDefault();
    all[Math.min(all.length - 1, Math.max(0, next))].focus();
  }
}

define("regard-heads", HeadsElement);
