// The beginning of the page.
import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import { takeToken } from "./api";
import { App } from "./app";
import { startTheme } from "./state";
import "./style.css";

/** Escape folds what holds the focus. */
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented) return;
  const open = document.activeElement?.closest<HTMLDetailsElement>("main details[open]");
  if (!open) return;
  open.open = false;
  open.querySelector("summary")?.focus();
});

// An address with a token, pasted into this tab, changes the fragment only.
addEventListener("hashchange", () => {
  if (!location.hash.includes("token=")) return;
  takeToken();
  location.reload();
});

startTheme();
takeToken();
render(<App />, document.getElementById("app")!);
