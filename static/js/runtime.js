// The editor of a runtime: rows of rules, and the box that tests them.
import { startLineTest } from "./line_test.js";

function start() {
  const form = document.querySelector("[data-runtime]");
  const list = form.querySelector("[data-rows=rule]");
  form.querySelector("[data-add=rule]").addEventListener("click", () => {
    const fresh = list.querySelector("template").content.cloneNode(true);
    const entry = fresh.querySelector("[data-entry]");
    list.append(fresh);
    entry.querySelector("input").focus();
  });
  list.addEventListener("click", (event) => event.target.closest("[data-remove]")?.closest("[data-entry]").remove());
  startLineTest(() =>
    [...list.querySelectorAll("[data-entry]")]
      .map((entry) => ({ pattern: entry.querySelector("[name=rule_pattern]").value, group: entry.querySelector("[name=rule_group]").value }))
      .filter((rule) => rule.pattern.trim())
      .map((rule) => (rule.group.trim() ? rule : { pattern: rule.pattern })),
  );
}

start();
