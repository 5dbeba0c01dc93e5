// Ctrl or Cmd K: pages, namespaces and jobs by name or id, without leaving the keyboard.
import { gettext, said } from "./words.js";
import { ask } from "./socket.js";

const PAUSE = 150; // ms of not typing before the portal is asked
const JOBS = 12;

export function openPalette() {
  if (document.querySelector("dialog.palette")) return;
  const dialog = document.createElement("dialog");
  dialog.className = "palette";
  dialog.setAttribute("aria-label", gettext("Go to"));
  const input = Object.assign(document.createElement("input"), { type: "search", autocomplete: "off", placeholder: gettext("Page, namespace, or job by name or id") });
  for (const [name, value] of [["role", "combobox"], ["aria-expanded", "true"], ["aria-controls", "palette-list"], ["aria-label", gettext("Go to")]]) input.setAttribute(name, value);
  const list = Object.assign(document.createElement("ul"), { id: "palette-list" });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", gettext("Places"));
  dialog.append(input, list);
  const focused = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    focused?.focus?.({ preventScroll: true });
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  new Finder(input, list).start();
}

function pages() {
  // what the rail offers: pages and namespaces
  return [...document.querySelectorAll(".rail a.item[href]")].map((link) => ({
    href: link.getAttribute("href"),
    label: link.querySelector(".label")?.textContent || link.textContent.trim(),
    kind: link.href.includes("namespace=") ? gettext("namespace") : gettext("page"),
  })).concat({ href: "/jobs/new/", label: gettext("New job"), kind: gettext("page") });
}

class Finder {
  constructor(input, list) {
    Object.assign(this, { input, list, at: 0, asked: 0, timer: 0, jobs: [] });
    this.pages = pages();
  }

  start() {
    this.input.addEventListener("input", (event) => {
      clearTimeout(this.timer);
      this.show();
      if (!event.isComposing) this.timer = setTimeout(() => this.find(), PAUSE);
    });
    this.input.addEventListener("compositionend", () => this.find());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.go([...this.list.children].indexOf(option));
    });
    this.find();
    this.show();
  }

  async find() {
    const number = ++this.asked;
    const words = this.input.value.trim();
    // one's own newest until one types; then every job one may see
    const query = new URLSearchParams({ limit: JOBS, fields: "name,status,namespace", ...(words ? { q: words } : { user: "me" }) });
    let jobs = [];
    try {
      jobs = (await ask(`/api/v1/jobs/?${query}`)).results;
    } catch {
      jobs = []; // the portal is away: the pages are here all the same
    }
    if (number !== this.asked) return;
    this.jobs = jobs.map((job) => ({
      href: `/jobs/${job.id}/`, label: job.name,
      kind: said(gettext("{status} · {namespace} · {id}"), { status: job.status, namespace: job.namespace, id: job.id }),
    }));
    this.show();
  }

  show() {
    const words = this.input.value.normalize("NFKC").trim().toLowerCase();
    const fits = (one) => `${one.label} ${one.kind}`.toLowerCase().includes(words);
    this.found = [...this.pages.filter((one) => fits(one)), ...this.jobs.filter((one) => !words || fits(one) || words.includes(" "))];
    this.at = 0;
    this.list.replaceChildren(...this.found.map((one, index) => this.option(one, index)));
    if (!this.found.length) {
      const nothing = this.list.appendChild(document.createElement("li"));
      nothing.className = "muted small";
      nothing.textContent = gettext("Nothing of this name.");
    }
    this.choose(0);
  }

  option(one, index) {
    const item = Object.assign(document.createElement("li"), { id: `palette-${index}` });
    item.setAttribute("role", "option");
    item.append(
      Object.assign(document.createElement("span"), { className: "wrap", textContent: one.label }),
      Object.assign(document.createElement("span"), { className: "muted small", textContent: one.kind }),
    );
    return item;
  }

  choose(at) {
    if (!this.found.length) return;
    this.at = (at + this.found.length) % this.found.length;
    [...this.list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === this.at)));
    this.input.setAttribute("aria-activedescendant", `palette-${this.at}`);
    this.list.children[this.at].scrollIntoView({ block: "nearest" });
  }

  key(event) {
    if (event.isComposing || event.keyCode === 229) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) this.choose(this.at + by);
    else if (event.key === "Enter") this.go(this.at);
    else return;
    event.preventDefault();
  }

  go(at) {
    if (this.found[at]) location.href = this.found[at].href;
  }
}
