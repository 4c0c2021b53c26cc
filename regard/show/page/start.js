// The page that stands alone: the trace is in it.

import "./viewer.js";

const held = JSON.parse(/** @type {HTMLElement} */ (document.getElementById("trace")).textContent ?? "");
const viewer = /** @type {import("./viewer.js").ViewerElement} */ (document.querySelector("regard-viewer"));
viewer.leftOut = held.left_out;
viewer.trace = held.trace;
