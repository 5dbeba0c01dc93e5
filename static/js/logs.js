// The log of a job's page and the last lines on its overview: what the tools above the lines do, and the address that says how they stand.
import { LogFilters } from "./log_filters.js";
import { LogJumps } from "./log_jumps.js";
import { LogLinks } from "./log_links.js";
import { LogSearch } from "./log_search.js";
import { LogView } from "./log_view.js";
import { startHistory } from "./log_history.js";
import { momentOf, whole } from "./lines.js";
import { typing } from "./keys.js";
import { gettext, ngettext, said } from "./words.js";

const KEEP = 4000;
const KEEP_SMALL = 30;

function start() {
  const { job } = document.querySelector("[data-job]").dataset;
  for (const box of document.querySelectorAll("[data-log]")) {
    if (box.dataset.log === "tail") new LogView(box, { id: job, keep: KEEP_SMALL, small: true }).start();
    else new LogPage(box, job);
  }
}

class LogPage {
  constructor(box, job) {
    this.page = box.closest("[data-log-page]");
    this.form = this.page.querySelector("[data-log-form]");
    this.pill = this.page.querySelector("[data-log-pill]");
    this.loaded = this.page.querySelector("[data-log-loaded]");
    this.earlier = this.page.querySelector("[data-log-earlier]");
    this.total = this.page.querySelector("[data-log-total]");
    this.none = this.page.querySelector("[data-log-none]");
    const status = this.page.querySelector("[data-log-status]");
    const asked = new URLSearchParams(location.search);
    const chosen = { ...box.dataset, ...this.form.querySelector("[data-log-filters]").dataset };
    const filters = Object.fromEntries(["worker", "attempt", "level", "from", "to"].filter((name) => chosen[name]).map((name) => [name, chosen[name]]));
    this.state = {
      q: asked.get("q") ?? "", exact: asked.get("case") === "1", literal: asked.get("literal") === "1", only: asked.get("only") === "1",
    };
    const { form } = this;
    const view = (this.view = new LogView(box, { id: job, keep: KEEP, filters }));
    this.links = new LogLinks(view, { form, status });
    this.search = new LogSearch(view, { form, state: this.state, changed: () => this.changed() });
    this.filters = new LogFilters(view, { form, page: this.page, search: this.search, changed: () => this.changed() });
    new LogJumps(view, { form, status });
    startHistory(view);
    view.decorate = (element) => {
      this.search.mark(element);
      if (this.links.marked) this.links.mark(element);
    };
    this.seen = Number(document.querySelector("[data-job]").dataset.logSeq) || view.newest;
    this.listen();
    this.size();
    this.show();
    view.start();
    this.page.dataset.started = "";
    this.open();
  }

  async open() {
    // a link to a line says where to look; a link to a search goes to its first hit
    if (this.state.q) await this.search.run({ go: !location.hash });
    await this.links.goToHash();
  }

  listen() {
    const { view, form } = this;
    window.addEventListener("resize", () => this.size());
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const select of form.querySelectorAll("[data-log-filter]")) select.addEventListener("change", () => location.assign(this.url({ hash: "" })));
    for (const box of form.querySelectorAll("[data-log-wrap], [data-log-times]")) box.addEventListener("change", () => this.address());
    form.querySelector("[data-log-follow]").addEventListener("change", (event) => (event.target.checked ? view.toEnd() : view.pause()));
    this.pill.addEventListener("click", () => view.toEnd());
    this.earlier.addEventListener("click", () => view.older());
    view.box.addEventListener("log:window", () => this.show());
    view.box.addEventListener("log:arrived", (event) => this.arrived(event.detail));
    view.box.addEventListener("keydown", (event) => this.moved(event));
    // the whole moment, written for the one that is pointed at
    view.box.addEventListener("pointerover", (event) => {
      if (event.target.matches(".line > .t") && !event.target.title) event.target.title = momentOf(event.target.parentElement);
    });
    view.box.addEventListener("copy", (event) => this.copied(event));
    // before the page's own keys: n goes to the next hit where there is a search
    document.addEventListener("keydown", (event) => this.key(event), { capture: true });
  }

  // --- what the tools say ---

  size() {
    // down to the end of the window: the newest line is in sight without moving the page
    const { box, following } = this.view;
    const least = window.innerWidth > 940 ? 320 : window.innerHeight * 0.66;
    box.style.height = `${Math.max(least, window.innerHeight - box.getBoundingClientRect().top - window.scrollY - 48)}px`;
    if (following) this.view.scrollDown();
  }

  show() {
    const { view } = this;
    this.pill.hidden = view.following || (!view.unseen && !view.detached);
    const words = said(ngettext("↓ {count} new line", "↓ {count} new lines", view.unseen), { count: whole(view.unseen) });
    this.pill.textContent = view.unseen ? words : gettext("↓ To the newest line");
    this.form.querySelector("[data-log-follow]").checked = view.following;
    this.none.hidden = !view.only || view.lines.length > 0 || !view.noneBefore;
    this.earlier.hidden = view.atStart || !view.first || view.box.scrollTop > 40;
    const range = { first: whole(view.first), last: whole(view.last) };
    this.loaded.textContent = view.first && !view.only ? said(gettext("Lines {first} to {last} are loaded, the others as you scroll."), range) : "";
    this.seen = Math.max(this.seen, view.newest);
    this.total.textContent = said(ngettext("{count} line", "{count} lines", this.seen), { count: whole(this.seen) });
  }

  arrived(lines) {
    const last = lines.at(-1).attempt;
    const select = this.form.querySelector("[data-log-filter][name=attempt]");
    for (let number = select.options.length; number <= last; number += 1) select.append(new Option(number, number));
    select.closest("label").hidden = select.options.length < 3;
    if (last > 1) this.page.classList.remove("one-attempt");
  }

  url({ hash = location.hash } = {}) {
    const { state, form } = this;
    const wanted = {
      worker: form.elements.worker.value, attempt: form.elements.attempt.value, ...this.filters.chosen, q: state.q, case: state.exact ? "1" : "",
      literal: state.literal ? "1" : "", only: state.only ? "1" : "", wrap: form.elements.wrap.checked ? "1" : "",
      ts: form.elements.ts.checked ? "" : "0",
    };
    const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value)).toString();
    return `${location.pathname}${query ? `?${query}` : ""}${hash}`;
  }

  changed() {
    this.address();
    this.filters?.recount({ anew: true });
  }

  address() {
    history.replaceState(null, "", this.url());
  }

  // --- keys, and what is copied ---

  moved(event) {
    if (event.isComposing || event.keyCode === 229 || event.altKey) return;
    const command = event.ctrlKey || event.metaKey;
    const { view } = this;
    if (event.key === "End" && !event.shiftKey) view.toEnd();
    else if (event.key === "Home" && !event.shiftKey) view.toStart();
    else if (command && event.key.toLowerCase() === "f") this.search.field.select();
    else return;
    event.preventDefault();
  }

  key(event) {
    if (typing(event) || localStorage.getItem("keys-off") || document.querySelector("dialog[open]")) return;
    if (event.target.closest("button, a, summary") && event.key === "Enter") return;
    // a query that is wrong takes the keys as well: n must not become a key of the page
    if ((event.key === "n" || event.key === "N") && this.state.q) this.search.active && this.search.step(event.key === "n");
    else if (event.key === "f") this.view.following ? this.view.pause() : this.view.toEnd();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  copied(event) {
    // several lines as lines, with what is shown of them; numbers stay behind
    const selection = getSelection();
    const chosen = [...this.view.lines].filter((line) => selection.containsNode(line, true));
    if (chosen.length < 2) return;
    const times = this.form.elements.ts.checked;
    const workers = !this.page.classList.contains("one-worker");
    event.clipboardData.setData("text/plain", this.view.textOf(chosen, { times, workers }));
    event.preventDefault();
  }
}

start();
