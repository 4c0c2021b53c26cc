// The style sheet of the screens under “Understanding” and “Runs”, there before they are.

const link = document.createElement("link");
link.rel = "stylesheet";
link.href = "/static/screens/more.css";
await new Promise((resolve) => {
  link.onload = link.onerror = resolve;
  document.head.append(link);
});

export {};
