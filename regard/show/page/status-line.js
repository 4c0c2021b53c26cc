// <regard-status>: one line that says what is selected, spoken aloud by screen readers.

import { define, make } from "./elements.js";

export class StatusElement extends HTMLElement {
  connectedCallback() {
    if (this.spoken) return;
    this.spoken = make("span", { role: "status", "aria-live": "polite", dir: "auto" });
    this.passing = make("span", { className: "passing", "aria-hidden": "true", dir: "auto" });
    this.append(this.spoken, this.passing);
  }

  /** @param {string} text announced, and kept until the next one */
  say(text) {
    if (this.spoken && this.spoken.textContent !== text) this.spoken.textContent = text;
  }

  /** @param {string} text shown while the pointer is over something; empty when it has left */
  showHover(text) {
    if (!this.passing || !this.spoken) return;
    this.passing.textContent = text;
    this.spoken.classList.toggle("covered", text !== "");
  }
}

define("regard-status", StatusElement);
