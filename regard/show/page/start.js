// The page that stands alone: the trace is in it.

import "./viewer.js";

const data = JSON.parse(/** @type {HTMLElement} */ (document.getElementById("trace")).textContent ?? "");
const viewer = /** @type {import("./viewer.js").ViewerElement} */ (document.querySelector("regard-viewer"));
viewer.leftOut = data.left_out;
viewer.rounded = data.rounded;
viewer.trace = data.trace;

// In a frame, such as a notebook's output, the page around it gives it the height of its content.
if (window.parent !== window) {
  const report = () => window.parent.postMessage({ regardHeight: Math.ceil(viewer.getBoundingClientRect().height) }, "*");
  new ResizeObserver(report).observe(viewer);
  addEventListener("message", (event) => { if (event.source === window.parent && event.data === "regard-height") report(); });
}
