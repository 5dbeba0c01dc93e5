// Loads plotly once, when the first chart is near the screen, and sets for all charts what must never differ.
import { gettext } from "./words.js";

let loading = null;

export const CONFIG = {
  displaylogo: false,
  showTips: false,
  displayModeBar: false, // the page's own tools do it for all charts, by keyboard too
  showSendToCloud: false, // plotly 4 would offer to send the figure to its maker
  plotlyServerURL: "",
  responsive: true,
  doubleClick: false, // the figure takes it: a zoom is the page's
};

export function plotly() {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  loading ||= new Promise((resolve, reject) => {
    const source = document.querySelector("[data-plotly]");
    const style = document.createElement("link");
    // with this id and class plotly puts no <style> of its own into the page, which the CSP forbids
    style.id = "plotly.js-style-global";
    style.className = "no-inline-styles";
    style.rel = "stylesheet";
    style.href = source.dataset.plotlyStyle;
    const script = document.createElement("script");
    script.src = source.dataset.plotly;
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => {
      loading = null; // the next chart tries again
      reject(new Error(gettext("The charts' library could not be loaded.")));
    });
    document.head.append(style, script);
  });
  return loading;
}
