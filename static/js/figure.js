// One card: its points by REST in buckets, then live; zooming asks again until true points come.
import { badges, sentence } from "./caption.js";
import { cutOf, inOrder, layout, looks, notPositive, traces } from "./drawing.js";
import { Goal } from "./goal.js";
import { Crosshair } from "./hover.js";
import { Legend } from "./legend.js";
import { load } from "./loader.js";
import { hasMarks, Marks } from "./marks.js";
import { Menu } from "./menu.js";
import { isLogged, sizeOf } from "./pins.js";
import { CONFIG, plotly } from "./plotly.js";
import { number } from "./row.js";
import { Series } from "./series.js";
import { PointsTable } from "./table.js";
import { tokens } from "./tokens.js";
import { change, toggled, view } from "./view_state.js";
import { gettext, said } from "./words.js";

const FEWEST_BUCKETS = 600;
const MOST_BUCKETS = 2000;
const GROWN = 4; // times its buckets: so long a line may become before the server is asked for buckets again
const BESIDE = 6; // px of a plot's place that stay free below it
const MARGIN = 0.05; // read beyond what is looked at, so that lines go on to the edge

export class Figure {
  constructor(card, { axis, redraw }) {
    this.card = card;
    this.key = card.dataset.key;
    this.group = card.dataset.group;
    this.job = card.dataset.job;
    this.axis = axis;
    this.guests = []; // keys that are drawn over this one's
    this.redraw = () => redraw(this);
    this.series = new Map();
    this.lines = []; // as they are drawn: {series, look, x}
    this.visible = false;
    this.mounted = false;
    this.asked = 0;
    this.missed = null; // what came while the server was asked
  }

  get keys() {
    return [this.key, ...this.guests];
  }

  get plot() {
    return this.card.querySelector(".plot");
  }

  get isReady() {
    return this.mounted && this.series.size > 0 && window.Plotly !== undefined;
  }

  get logY() {
    return (view.logY || isLogged(this.key)) !== view.logy.has(this.key); // a chart may differ from the others
  }

  async mount() {
    if (this.mounted) return;
    this.mounted = true;
    this.furnish();
    this.crosshair.start();
    this.reload();
    try {
      await plotly();
      this.redraw();
    } catch (error) {
      this.note(error.message);
    }
  }

  furnish() {
    // what a card gets when it is first looked at, not before: there may be thousands
    if (this.legend) return;
    const { plot } = this;
    plot.tabIndex = 0;
    plot.setAttribute("role", "application");
    plot.setAttribute("aria-roledescription", gettext("chart"));
    plot.setAttribute("aria-label", this.key);
    plot.addEventListener("pointerdown", () => {
      this.held = true; // what is drawn stays under the pointer while it drags
      const drag = new AbortController();
      const release = () => {
        drag.abort();
        this.held = false;
        this.redraw();
      };
      // a touch that becomes a scroll of the page is cancelled, and never let go of
      for (const end of ["pointerup", "pointercancel"]) addEventListener(end, release, { signal: drag.signal });
    });
    this.crosshair = new Crosshair(this);
    this.marks = new Marks(this);
    this.goal = new Goal(this);
    this.legend = new Legend(this);
    this.table = new PointsTable(this);
    this.menu = new Menu(this);
  }

  unmount() {
    if (!this.mounted) return;
    this.mounted = false;
    this.asked += 1;
    this.missed = null;
    this.series.clear();
    this.lines = [];
    this.crosshair.stop();
    this.marks.hide();
    if (this.drawn) {
      window.Plotly.purge(this.plot);
      this.plot.replaceChildren();
      this.plot.classList.remove("js-plotly-plot");
    }
    this.drawn = false;
  }

  get buckets() {
    return Math.min(MOST_BUCKETS, Math.max(FEWEST_BUCKETS, 2 * this.plot.clientWidth));
  }

  // small, wide or full, as the layout says
  fit() {
    const size = sizeOf(this.key);
    if (size === (this.card.dataset.size ?? "small")) return;
    this.card.dataset.size = size;
    if (!this.drawn) return;
    window.Plotly.Plots.resize(this.plot);
    this.redraw(); // also higher
    this.reload(); // more room takes more buckets
  }

  async reload() {
    if (!this.mounted) return;
    this.goal.look();
    const mine = (this.asked += 1);
    this.missed = [];
    try {
      await this.axis.ready();
      const options = this.query();
      const found = await Promise.all(this.keys.map((key) => load(this.job, key, options)));
      if (mine !== this.asked) return; // asked again since, for more or for another range
      this.series = new Map();
      this.keys.forEach((key, place) => {
        for (const one of found[place]) if (one.step.length) this.put(new Series(one, { x: this.axis.source }), place);
      });
      this.reached = Math.max(0, ...[...this.series.values()].map((one) => one.step.length));
      for (const news of this.missed) this.take(news);
      if (!this.series.size) this.note(gettext("No points here."));
    } catch (error) {
      if (mine !== this.asked) return;
      if (!this.series.size) this.note(said(gettext("Could not be loaded: {why}"), { why: error.message }));
    }
    this.missed = null;
    this.redraw();
  }

  query() {
    const query = { buckets: this.buckets, x: this.axis.source, smooth: view.sm ?? "auto", smooth_by: view.by };
    if (view.allAttempts) query.attempt = "all";
    const range = this.axis.asked();
    if (range) {
      const [from, to] = range;
      const more = (to - from) * MARGIN;
      const whole = this.axis.source === "step";
      query.from = whole ? Math.floor(from - more) : from - more;
      query.to = whole ? Math.ceil(to + more) : to + more;
    }
    return query;
  }

  put(one, place) {
    one.place = place;
    this.series.set(`${one.key} ${one.name}`, one);
  }

  add(news) {
    if (!this.mounted || !view.live) return;
    this.goal.add(news);
    if (this.missed) this.missed.push(news);
    const newest = Math.max(0, ...[...this.series.values()].map((one) => one.attempt));
    this.take(news);
    const most = Math.max(...[...this.series.values()].map((one) => one.step.length));
    // an attempt that begins again takes the place of what an earlier one had from there on
    const begins = newest && news.attempt > newest && !view.allAttempts;
    const grown = most > Math.max(GROWN * this.buckets, 2 * (this.reached || 0));
    if ((begins || grown) && !view.range && !this.missed) this.reload();
    else this.redraw();
  }

  take(news) {
    if (view.range) return; // a zoomed view stands still; the reset brings what came meanwhile
    const name = `${news.key} ${news.attempt}/${news.rank}`;
    if (!this.series.has(name)) this.put(Series.empty(news, { x: this.axis.source }), this.keys.indexOf(news.key));
    this.series.get(name).add(news);
  }

  showLatest(value) {
    const place = this.card.querySelector(".val");
    if (place) place.textContent = number(value);
  }

  preview() {
    for (const one of this.series.values()) one.preview(view.sm, view.by);
    this.redraw();
  }

  paint() {
    if (this.held) return;
    const style = tokens;
    this.revision = (this.revision || 0) + 1;
    const { key, axis, revision, logY } = this;
    axis.fit(this.series.values());
    const found = looks(this.series, { key, style });
    const all = inOrder(this.series).map((series, index) => ({ series, look: found[index], x: axis.of(series) }));
    this.lines = all.filter(({ look }) => !view.hide.has(look.id));
    const cut = view.y.has(key) ? null : cutOf(this.lines, { logY });
    const goal = this.goal.state;
    const about = { key, axis, style, revision, logY, cut, goal, flags: hasMarks(), width: this.plot.clientWidth, height: this.plot.clientHeight - BESIDE };
    window.Plotly.react(this.plot, traces(this.lines, about), layout(about), CONFIG);
    this.legend.show(found);
    this.say(badges(this.lines, { cut, notPositive: logY ? notPositive(this.lines) : 0, zoomed: Boolean(view.range), goal }));
    this.marks.show();
    this.table.refresh();
    if (this.drawn) return;
    this.drawn = true;
    this.plot.on("plotly_relayout", (event) => this.relayout(event));
    this.plot.on("plotly_afterplot", () => this.mounted && this.marks.show()); // also after the window has changed
    this.plot.on("plotly_doubleclick", () => change({ range: null, y: withoutKey(view.y, this.key) }));
  }

  relayout(event) {
    const names = Object.keys(event ?? {});
    const { xaxis, yaxis } = this.plot._fullLayout;
    const edges = (axis) => axis.range.map((edge) => axis.l2c(axis.r2l(edge)));
    const part = {};
    if (names.some((name) => name.startsWith("xaxis.range"))) part.range = tidy(edges(xaxis).map((edge) => this.axis.real(edge)));
    if (names.some((name) => name.startsWith("yaxis.range"))) part.y = new Map(view.y).set(this.key, tidy(edges(yaxis)));
    if (part.range || part.y) change(part);
  }

  toggleLog() {
    change({ logy: toggled(view.logy, this.key) });
  }

  say(marks) {
    const says = JSON.stringify(marks);
    const caption = this.card.querySelector("figcaption");
    if (says !== this.says) {
      this.says = says;
      caption.replaceChildren(...marks.map(({ text, kind, title }) => {
        const badge = document.createElement("span");
        badge.className = kind;
        badge.textContent = text;
        if (title) badge.title = title;
        return badge;
      }));
    }
    const label = sentence(this.key, this.lines, marks);
    if (document.activeElement !== this.plot) this.plot.setAttribute("aria-label", label); // not under a reader's ears
  }

  note(words) {
    this.says = "";
    this.card.querySelector("figcaption").textContent = words;
  }
}

function tidy([low, high]) {
  // as short as it can be said without moving an edge by more than can be seen
  const digits = Math.max(0, 4 - Math.floor(Math.log10(high - low || 1)));
  return [low, high].map((edge) => (digits > 20 ? edge : Number(edge.toFixed(Math.min(20, digits)))));
}

function withoutKey(map, key) {
  const next = new Map(map);
  next.delete(key);
  return next;
}
