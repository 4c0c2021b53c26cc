// Loads the style sheet of the screens under “Understanding” and “Runs” before they are drawn.

const link = document.createElement("link");
link.rel = "stylesheet";
link.href = "/static/screens/screens.css";
await new Promise((resolve) => {
  link.onload = link.onerror = resolve;
  document.head.append(link);
});

export {};
