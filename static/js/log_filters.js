// Which lines of a log are shown, by level and by time: the boxes above the lines, their counts, and what a click on a time offers.
import { momentOf, timeOf, whole } from "./lines.js";
import { ask } from "./socket.js";
import { gettext, said } from "./words.js";

const RECOUNT = 2000; // ms between two counts of new lines
const MINUTE = 60000;

export class LogFilters {
  constructor(view, { form, page, search, changed }) {
    Object.assign(this, { view, search, changed });
    this.levels = [...form.querySelectorAll("[data-log-level]")];
    this.fields = [...form.querySelectorAll("[data-log-time]")];
    this.places = [...form.querySelectorAll("[data-log-count]")];
    this.links = [...document.querySelectorAll("[data-log-get]")];
    this.span = form.querySelector("[data-log-span]");
    this.clear = form.querySelector("[data-log-clear]");
    this.menu = page.querySelector("[data-log-when]");
    form.querySelector("[data-log-zone]").textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
    for (const box of this.levels) box.addEventListener("change", () => this.chooseLevels());
    for (const field of this.fields) field.addEventListener("change", () => this.choose({ [field.dataset.logTime]: isoOf(field.value) }));
    this.clear.addEventListener("click", () => {
      this.choose({ level: "", from: "", to: "" });
      this.levels[0].focus();
    });
    view.box.addEventListener("click", (event) => this.clicked(event));
    view.box.addEventListener("log:heard", () => this.soon());
    this.listenToMenu();
    this.paint();
    this.recount({ anew: true });
  }

  get chosen() {
    const { level, from, to } = this.view.filters;
    return { level, from, to };
  }

  chooseLevels() {
    const chosen = this.levels.filter((box) => box.checked);
    this.choose({ level: chosen.length === this.levels.length ? "" : chosen.map((box) => box.value).join(",") });
  }

  async choose(more) {
    const { worker, attempt } = this.view.filters;
    const next = { ...this.view.filters, ...more };
    this.view.filters = Object.fromEntries(Object.entries({ worker, attempt, ...next }).filter(([, value]) => value));
    this.paint();
    this.changed();
    await this.search.filtered();
  }

  paint() {
    const { level, from, to } = this.view.filters;
    const levels = level ? level.split(",") : [];
    for (const box of this.levels) box.checked = levels.includes(box.value);
    for (const field of this.fields) field.value = fieldOf(this.view.filters[field.dataset.logTime]);
    this.clear.hidden = !level && !from && !to;
    if (from || to) this.span.open = true;
    for (const link of this.links) {
      const url = new URL(link.href);
      for (const name of ["level", "from", "to"]) {
        if (this.view.filters[name]) url.searchParams.set(name, this.view.filters[name]);
        else url.searchParams.delete(name);
      }
      link.href = url.href;
    }
  }

  // --- how many there are of each level, whatever levels are chosen; with a search, of its hits ---

  soon() {
    // lines came: those are counted, the others are known
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.recount();
    }, RECOUNT);
  }

  async recount({ anew = false } = {}) {
    if (anew) {
      this.counting = null;
      this.counted = { levels: {}, searched: 0 };
    }
    if (this.counting) return;
    const { counted } = this;
    this.counting = counted;
    const { level: _level, ...others } = this.view.filters;
    const query = { ...others, ...(this.search.active ? this.search.query : {}), levels: 1 };
    try {
      for (let done = false; !done; ) {
        const answer = await ask(`/api/v1/jobs/${this.view.id}/logs/?${new URLSearchParams({ ...query, after: counted.searched })}`);
        if (counted !== this.counted) return;
        for (const [name, count] of Object.entries(answer.levels)) counted.levels[name] = (counted.levels[name] ?? 0) + count;
        counted.searched = answer.searched;
        ({ done } = answer);
        this.show(done);
      }
    } catch (error) {
      if (!(error instanceof TypeError) && !error.status) throw error;
      if (counted === this.counted) this.show(false); // the portal is away, or the pattern is none; the next lines ask again
    } finally {
      if (this.counting === counted) this.counting = null;
    }
  }

  show(done) {
    for (const place of this.places) {
      const count = this.counted.levels[place.dataset.logCount];
      place.textContent = count === undefined ? "" : done ? whole(count) : `${whole(count)}+`;
    }
  }

  // --- a click on a time ---

  clicked(event) {
    const time = event.target.closest(".line > .t");
    if (!time) return;
    const line = time.parentElement;
    this.at = timeOf(line);
    if (!this.at) return;
    this.view.pause();
    const place = this.menu.offsetParent ?? this.menu.parentElement;
    const { left, top } = this.menu.parentElement.getBoundingClientRect();
    this.menu.hidden = false;
    this.menu.querySelector("[data-log-when-moment]").textContent = momentOf(line);
    this.menu.setAttribute("aria-label", said(gettext("Lines around {moment}"), { moment: momentOf(line) }));
    const rect = time.getBoundingClientRect();
    const room = place.clientWidth - this.menu.offsetWidth - 4;
    const below = rect.bottom - top + 2;
    this.menu.style.left = `${Math.max(4, Math.min(room, rect.left - left))}px`;
    this.menu.style.top = `${Math.max(4, Math.min(below, this.menu.parentElement.clientHeight - this.menu.offsetHeight - 4))}px`;
    this.menu.querySelector("button").focus({ preventScroll: true });
  }

  listenToMenu() {
    this.menu.addEventListener("click", (event) => {
      const does = event.target.closest("[data-log-when-do]")?.dataset.logWhenDo;
      if (!does) return;
      const at = Math.floor(this.at * 1000);
      const stretch = {
        from: { from: new Date(at).toISOString() },
        to: { to: new Date(at + 1).toISOString() }, // with this line
        around: { from: new Date(at - MINUTE / 2).toISOString(), to: new Date(at + MINUTE / 2).toISOString() },
      }[does];
      this.close();
      this.choose(stretch);
    });
    this.menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing || event.keyCode === 229) return;
      event.stopPropagation();
      this.close();
    });
    document.addEventListener("pointerdown", (event) => {
      if (!this.menu.hidden && !this.menu.contains(event.target)) this.menu.hidden = true;
    });
  }

  close() {
    this.menu.hidden = true;
    this.view.box.focus({ preventScroll: true });
  }
}

function isoOf(text) {
  // what a field says is of the reader's time zone
  const moment = new Date(text);
  return text && !Number.isNaN(moment.getTime()) ? moment.toISOString() : "";
}

function fieldOf(iso) {
  if (!iso) return "";
  const moment = new Date(iso);
  const local = new Date(moment.getTime() - moment.getTimezoneOffset() * MINUTE);
  return local.toISOString().slice(0, 19);
}
