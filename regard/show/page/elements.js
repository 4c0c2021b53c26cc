// What all elements share: properties that redraw when they change, and functions that make nodes.

import { onColourChange } from "./colours.js";
import { PLAIN } from "./colour-scale.js";

/** @typedef {import("./weights.js").View} View */
/** @typedef {import("./colour-scale.js").Scale} Scale */
/** @typedef {{row: number, column: number}} Selection a place in the view; -1 is none */

/**
 * A node with properties and children; strings become text, never markup.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any>} [options] properties, or attributes where the name has a dash
 * @param {...(Node | string | null | undefined)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === null) continue;
    if (name === "role" || name === "for" || name.includes("-")) node.setAttribute(name, value);
    else if (name === "on") {
      for (const [event, listener] of Object.entries(value)) {
        node.addEventListener(event, /** @type {EventListener} */ (listener));
      }
    } else /** @type {any} */ (node)[name] = value;
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/**
 * A node of a vector picture.
 * @param {string} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {...(Node | string)} children
 * @returns {SVGElement}
 */
export function draw(tag, attributes = {}, ...children) {
  const node = /** @type {SVGElement} */ (
    document.createElementNS("http://www.w3.org/2000/svg", tag)
  );
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/** @param {Element} element @returns {number} pixels of the screen per CSS pixel, also where a part of the page is zoomed */
export function pixelRatio(element) {
  return devicePixelRatio * (/** @type {{currentCSSZoom?: number}} */ (element).currentCSSZoom ?? 1);
}

/** @param {HTMLElement} element @param {MouseEvent} event @returns {{x: number, y: number}} where the pointer is, in CSS pixels of the element */
export function pointIn(element, event) {
  const box = element.getBoundingClientRect();
  const zoom = box.width / element.offsetWidth || 1;
  return { x: (event.clientX - box.left) / zoom, y: (event.clientY - box.top) / zoom };
}

/** @param {string} name @param {CustomElementConstructor} element */
export function define(name, element) {
  if (!customElements.get(name)) customElements.define(name, element);
}

/** @param {string} name @returns {string} a colour of the page */
export function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";
}

/**
 * A drawing of a view. Set `view`, `scale` and `selection`; it redraws before the next frame.
 * A selection by the user is the event `regard-select` with a Selection as its detail, a cell
 * under the pointer `regard-hover` (row -1 when it has left).
 */
export class Drawing extends HTMLElement {
  /** @type {View | null} */
  #view = null;
  /** @type {Scale} */
  #scale = PLAIN;
  /** @type {Selection} */
  #selection = { row: -1, column: -1 };
  #waiting = false;
  #built = false;

  get view() { return this.#view; }
  set view(view) {
    if (view === this.#view) return;
    this.#view = view;
    this.changed("view");
  }

  get scale() { return this.#scale; }
  set scale(scale) {
    if (JSON.stringify(scale) === JSON.stringify(this.#scale)) return;
    this.#scale = scale;
    this.changed("scale");
  }

  get selection() { return this.#selection; }
  set selection(selection) { this.#selection = selection; this.changed("selection"); }

  /** @type {Set<string>} what has changed since it was last drawn */
  pendingChanges = new Set();

  connectedCallback() {
    if (!this.#built) {
      this.#built = true;
      this.build();
      onColourChange(() => this.changed("colours"));
    }
    this.changed("view");
  }

  /** @param {string} what */
  changed(what) {
    this.pendingChanges.add(what);
    if (this.#waiting) return;
    this.#waiting = true;
    queueMicrotask(() => this.flush());
  }

  /** Draw now what has changed, without waiting for the end of the task. */
  flush() {
    this.#waiting = false;
    if (!this.isConnected || !this.#built || !this.pendingChanges.size) return;
    if (this.view) this.render(this.view);
    this.pendingChanges.clear();
  }

  /** Make the nodes that stay. */
  build() {}

  /** @param {View} view draw */
  render(view) { void view; }

  /** @param {number} row @param {number} column */
  choose(row, column) {
    this.dispatchEvent(
      new CustomEvent("regard-select", { bubbles: true, detail: { row, column } }),
    );
  }

  /** @param {number} row @param {number} column */
  hover(row, column) {
    this.dispatchEvent(
      new CustomEvent("regard-hover", { bubbles: true, detail: { row, column } }),
    );
  }

  /**
   * Arrows, Home and End move between cells; with Ctrl also to the first and last row.
   * @param {KeyboardEvent} event
   */
  walk(event) {
    if (!this.view || event.altKey || event.metaKey) return;
    const tall = this.view.queries.length;
    const wide = this.view.keys.length;
    let { row, column } = this.selection;
    row = Math.max(row, 0);
    column = Math.max(column, 0);
    const far = event.shiftKey ? 10 : 1;
    if (event.key === "ArrowUp") row -= far;
    else if (event.key === "ArrowDown") row += far;
    else if (event.key === "ArrowLeft") column -= far;
    else if (event.key === "ArrowRight") column += far;
    else if (event.key === "Home") { column = 0; if (event.ctrlKey) row = 0; }
    else if (event.key === "End") { column = wide - 1; if (event.ctrlKey) row = tall - 1; }
    else return;
    event.preventDefault();
    const within = (/** @type {number} */ n, /** @type {number} */ size) => Math.min(size - 1, Math.max(0, n));
    this.choose(within(row, tall), within(column, wide));
  }
}
