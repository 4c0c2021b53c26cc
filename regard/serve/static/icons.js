// Icons of the navigation, in the colour of the surrounding text.

import { draw } from "/page/elements.js";

/** @type {Record<string, string>} paths on a square of 20 */
const PATHS = {
  translation: "M3 5h6M6 3v2c0 3-1.5 5-3.5 6M4 8c1 1.6 2.6 2.6 4.5 3M9.5 17l3.5-9 3.5 9M10.8 14h4.4",
  language: "M3 5h14M3 9h10M3 13h7M14 12l3 2.5-3 2.5",
  "self-attention": "M3 3h5v5H3zM12 3h5v5h-5zM3 12h5v5H3zM12 12h5v5h-5z",
  sentiment: "M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM7 12c1.6 2 4.4 2 6 0M7.5 8v.4M12.5 8v.4",
  entities: "M3 6.5C3 5 4 4 5.500 4H11l6 6-6 6H5.500C4 16 3 15 3 13.500zM7 10v.1",
  memory: "M4 4h12v12H4zM4 8h12M4 12h12M8 1.500v2.500M12 1.500v2.500M8 16v2.500M12 16v2.500",
  experts: "M10 4.500a2 2 0 1 0 0-.1M4 15.500a2 2 0 1 0 0-.1M16 15.500a2 2 0 1 0 0-.1M10 7v3M10 10l-5 4M10 10l5 4M10 10v5",
  gradient: "M3 16l5-6 3 3 6-9M13 4h4v4",
  steps: "M3 16h4v-4h4V8h4V4h2",
  scores: "M3 3h14v14H3zM3 8h14M3 12.500h14M8 3v14M12.500 3v14",
  compare: "M8 4H3v12h5M12 4h5v12h-5M10 2v16",
  trust: "M10 2.500l6.500 2.300v4.700c0 4-2.700 6.800-6.500 8-3.800-1.200-6.500-4-6.500-8V4.800zM7 9.800l2.200 2.200L13.300 8",
  training: "M3 3v14h14M6 7c2 5 5 6 11 6.500",
  length: "M4 16v-9M8 16V4M12 16v-6M16 16v-3",
  experiments: "M8 3h4M8.500 3v5L4 15.500A1 1 0 0 0 5 17h10a1 1 0 0 0 1-1.500L11.500 8V3M6 12.500h8",
  comparisons: "M10 3v14M6 17h8M4 6h12M4 6l-2 6h4zM16 6l-2 6h4z",
  menu: "M3 6h14M3 10h14M3 14h14",
  save: "M10 3v9M6 9l4 4 4-4M4 16h12",
  present: "M3 4h14v9H3zM10 13v4M7 17h6",
  share: "M8 12l4-4M7 9L5 11a2.800 2.800 0 0 0 4 4l2-2M13 11l2-2a2.800 2.800 0 0 0-4-4L9 7",
  contrast: "M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM10 3v14M10 6h4.500M10 10h7M10 14h4.500",
  close: "M5 5l10 10M15 5L5 15",
};

/** @param {string} name @returns {SVGElement} */
export function icon(name) {
  return draw("svg", { viewBox: "0 0 20 20", width: 20, height: 20, "aria-hidden": "true", class: "rg-icon" },
    draw("path", { d: PATHS[name] ?? PATHS.menu, fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" }));
}
