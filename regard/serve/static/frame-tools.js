// The tools beside the title: present, share, light or dark.

import { make } from "/page/elements.js";
import { switchColours } from "./colour-mode.js";
import { codeBlock, copyText } from "./copy.js";
import { icon } from "./icons.js";

/** @param {string} [view] @returns {string} the address of what is shown, without the token */
function address(view) {
  const query = new URLSearchParams(location.search);
  query.delete("view");
  if (view) query.set("view", view);
  const text = String(query);
  return `${location.origin}${location.pathname}${text ? `?${text}` : ""}`;
}

/** @param {string} text @returns {string} */
function quoted(text) {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}

/**
 * @param {{present: () => void, say: (text: string) => void}} app
 * @returns {HTMLElement}
 */
export function makeTools(app) {
  const share = make("details", { className: "rg-menu-box" },
    make("summary", { className: "rg-button", "aria-label": "Share", title: "Share" }, icon("share")),
    make("div", { className: "rg-menu-items" },
      make("button", { type: "button", textContent: "Copy link", on: { click: async () => {
        share.open = false;
        app.say((await copyText(address())) ? "The link is in the clipboard." : "Copy the address of this page.");
      } } }),
      make("button", { type: "button", textContent: "Embed…", on: { click: () => {
        share.open = false;
        openEmbedding();
      } } })));
  share.addEventListener("focusout", (event) => {
    if (!(event.relatedTarget instanceof Node) || !share.contains(event.relatedTarget)) share.open = false;
  });
  return make("div", { className: "rg-tools", role: "group", "aria-label": "This page" },
    make("button", { type: "button", className: "rg-button rg-present", title: "Presentation (P)", "aria-label": "Presentation", on: { click: () => app.present() } }, icon("present")),
    share,
    make("button", { type: "button", className: "rg-button", title: "Light or dark", "aria-label": "Switch between light and dark", on: { click: switchColours } }, icon("contrast")));
}

/** Show the HTML that embeds this page. */
function openEmbedding() {
  const snippet = `<iframe src="${quoted(address("embed"))}" width="100%" height="640" title="Regard" loading="lazy"></iframe>`;
  const dialog = make("dialog", { className: "help rg-embed", "aria-label": "Embed" },
    make("h2", { textContent: "Embed what is shown" }),
    codeBlock(snippet, "HTML to embed"),
    make("p", {}, "Other sites may embed the app only if the server allows it: start it with ", make("code", { textContent: "--allow-embedding ORIGIN" }), ". Visitors need access to this server. For a page that needs no server, use ", make("strong", { textContent: "Save → HTML" }), ": that file can be embedded anywhere."),
    make("button", { type: "button", className: "rg-button", textContent: "Close", on: { click: () => dialog.close() } }));
  dialog.addEventListener("close", () => dialog.remove());
  document.querySelector("rg-app")?.append(dialog);
  dialog.showModal();
}
