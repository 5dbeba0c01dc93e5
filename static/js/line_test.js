// "Test my line": which metrics the portal would read from pasted output, asked from the same code that reads real logs.
import { gettext, said } from "./words.js";

const PAUSE = 250;

export function startLineTest(rules) {
  // rules() gives the metric rules to test with
  for (const box of document.querySelectorAll("[data-line-test]")) {
    const text = box.querySelector("textarea");
    let timer = 0;
    let asked = 0;
    const look = () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        const mine = ++asked;
        const found = text.value.trim() ? await ask(box.dataset.url, text.value, rules()) : null;
        if (mine === asked) show(box.querySelector("[data-line-result]"), found);
      }, PAUSE);
    };
    text.addEventListener("input", (event) => !event.isComposing && look());
    text.addEventListener("compositionend", look);
    box.closest("form")?.addEventListener("input", (event) => event.target.name?.startsWith("rule_") && text.value && look());
  }
}

async function ask(url, text, rules) {
  const token = document.querySelector("[name=csrfmiddlewaretoken]")?.value ?? "";
  try {
    const answer = await fetch(url, {
      method: "POST",
      credentials: "same-origin",
      headers: { "Content-Type": "application/json", "X-CSRFToken": token },
      body: JSON.stringify({ lines: text.split("\n").slice(0, 50), rules }),
    });
    const data = await answer.json();
    return answer.ok ? data : { problem: data.error?.message ?? said(gettext("The portal answered {status}."), { status: answer.status }) };
  } catch {
    return { problem: gettext("The portal does not answer.") };
  }
}

function show(place, found) {
  place.replaceChildren();
  if (!found) return;
  for (const { rule, message } of found.errors ?? []) add(place, said(gettext("Rule {rule}: {message}"), { rule, message }), "error");
  if (found.problem) add(place, found.problem, "error");
  for (const metric of found.metrics ?? []) {
    const where = metric.step === null || metric.step === undefined ? gettext("by line") : said(gettext("at step {step}"), { step: metric.step });
    add(place, said(gettext("{key} = {value} {where}, read by {by}"), { ...metric, where }), "mono");
  }
  for (const ignored of found.ignored ?? []) add(place, said(gettext("{key} is left out: {why}"), ignored), "muted");
  if (!place.childElementCount) add(place, gettext("No metric in these lines."), "muted");
}

function add(place, text, kind) {
  const line = document.createElement("p");
  line.className = kind;
  line.textContent = text;
  place.append(line);
}
