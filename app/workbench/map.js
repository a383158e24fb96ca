// The map: points, names of regions, tools, and what is shown over a point.

import { make } from "./dom.js";
import { Hand, onPhone } from "./hand.js";
import { Near } from "./near.js";
import { Names, drawOver } from "./overlay.js";
import { NONE, Points } from "./points.js";
import { Raster, paletteOf, stampOf } from "./raster.js";
import { View } from "./view.js";

const REACH = 9; // pixels between the pointer and a point that it shows
const FRAME = 22; // milliseconds that a frame may take while the map moves
const SLICE = 400_000; // points that are added at once when it rests
const REST = 140; // milliseconds without a move, after which all points are drawn
const MARK = "#d6006c";
const TOOLS = [
  ["lasso", "Lasso", "Draw around points. Hold Shift to add an area, or Alt to keep only what is in both"],
  ["box", "Box", "Draw a box around points. Hold Shift to add an area, or Alt to keep only what is in both"],
  ["move", "Move", "Drag to move the map. Use the wheel or two fingers to zoom; in a narrow window, Ctrl and the wheel"],
];

export class MapPane {
  /** `acts` has areas(outline, how), opened(row), cleared(), viewed(text), and peek(row), a promise of a document. */
  constructor(table, acts) {
    Object.assign(this, { table, acts, points: new Points(table), raster: new Raster(), view: new View(table.bounds) });
    [this.outlines, this.line, this.quick, this.named] = [[], [], 150_000, true];
    this.build();
    this.labels = new Names(this.names, table.regions);
    this.hand = new Hand(this.surface, this.view, {
      moved: () => this.moved(),
      hovered: (place) => this.hover(place),
      clicked: (place) => this.click(place),
      drawing: (line) => ((this.line = line), this.drawSoon(false)),
      drawn: (outline, how) => acts.areas(outline, how),
      cleared: () => acts.cleared(),
    });
    this.use(onPhone() ? "move" : "lasso");
    this.watch = new ResizeObserver(() => this.drawSoon());
    this.watch.observe(this.element);
  }

  build() {
    const tool = ([value, text, title]) => make("button.tool", { type: "button", value, title, onclick: () => this.use(value) }, text);
    const step = (text, title, act) => make("button.tool", { type: "button", title, "aria-label": title, onclick: act }, text);
    this.tools = make("div.tools", { role: "toolbar", "aria-label": "Tools of the map" }, TOOLS.map(tool),
      step("+", "Zoom in", () => this.zoom(1.6)), step("−", "Zoom out", () => this.zoom(1 / 1.6)),
      make("button.tool", { type: "button", title: "Show the whole map (key 0)", onclick: () => this.whole() }, "Reset view"));
    this.surface = make("div.surface", {
      tabIndex: 0, role: "application",
      "aria-label": "Map of the documents. Arrow keys move, plus and minus zoom, Enter opens the point in the middle, Escape clears the selection.",
    });
    [this.canvas, this.over, this.names] = [make("canvas"), make("canvas"), make("div.names", { "aria-hidden": "true" })];
    this.tip = make("div.tip", { hidden: true }, make("strong", { dir: "auto" }), make("span", { dir: "auto" }));
    this.element = make("div.map", {}, this.canvas, this.over, this.surface, this.names, this.tools, this.tip);
  }

  use(tool) {
    this.hand.tool = tool;
    this.element.dataset.tool = tool;
    for (const button of this.tools.children) if (button.value) button.setAttribute("aria-pressed", button.value === tool);
  }

  zoom(factor) {
    this.view.zoom(factor);
    this.moved();
  }

  whole() {
    this.view.whole();
    this.moved();
  }

  /** Take the colours of a column, or of none, on a light or a dark page. */
  color(column, theme) {
    [this.column, this.theme] = [column, theme];
    this.palette = paletteOf(this.points.color(column, theme));
    this.drawSoon();
  }

  /** Take what is selected: Uint8Array [rows], the outlines of areas, and whether anything is left out. */
  select(lit, outlines, some) {
    [this.outlines, this.some] = [outlines, some];
    this.points.select(lit);
    this.color(this.column, this.theme);
  }

  moved() {
    this.hover(null);
    this.last = performance.now();
    this.drawSoon(true);
    clearTimeout(this.told);
    this.told = setTimeout(() => this.acts.viewed(this.view.write()), 400);
  }

  /** Draw in the next frame: coarsely while the map moves, and all points as soon as it rests. */
  drawSoon(again = true) {
    this.stale ||= again;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (!this.palette || !this.element.clientWidth) return;
      const sized = this.fit();
      if (sized) this.sized?.();
      if (sized || this.stale) this.begin();
      this.paint();
    });
  }

  fit() {
    const { element, view } = this;
    const before = [view.width, view.height].join();
    view.resize(element.clientWidth, element.clientHeight);
    if (this.pending !== undefined) view.read(this.pending);
    this.pending = undefined;
    this.ratio = this.points.count > 150_000 ? 1 : Math.min(window.devicePixelRatio || 1, 2);
    for (const canvas of [this.canvas, this.over]) {
      const [width, height] = [Math.round(view.width * this.ratio), Math.round(view.height * this.ratio)];
      if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    }
    return before !== [view.width, view.height].join();
  }

  /** Start the image over. */
  begin() {
    const { raster, canvas, view, ratio, points } = this;
    raster.resize(canvas.width, canvas.height);
    raster.clear();
    [this.stale, this.shown] = [false, -1];
    this.to = {
      scale: view.scale * ratio, across: (view.width / 2 - view.x * view.scale) * ratio, down: (view.height / 2 + view.y * view.scale) * ratio,
    };
    this.size = this.sizeOf(points.lit);
    this.stamp = stampOf(this.size * ratio, raster.width);
    this.faint = stampOf(this.sizeOf(points.count) * ratio, raster.width);
    [this.lighted, this.dimmed] = [0, points.lit];
    const moving = performance.now() - (this.last ?? 0) < REST;
    const [most, began] = [moving ? this.quick : SLICE, performance.now()];
    this.more(most, moving ? this.quick / 2 : SLICE);
    if (!moving) return;
    const took = performance.now() - began + (this.developing ?? 8);
    this.quick = Math.min(Math.max(this.quick * Math.min(Math.max(FRAME / took, 0.6), 1.3), 20_000), points.count || 1);
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.drawSoon(), REST + 10);
  }

  /** Add some lit points, then some of the others. */
  more(lit, others) {
    const { points, raster, palette, to, stamp, faint } = this;
    const end = Math.min(this.lighted + lit, points.lit), last = Math.min(this.dimmed + others, points.count);
    raster.light(points, palette, to, stamp, this.lighted, end);
    raster.dim(points, to, faint, this.dimmed, last);
    [this.lighted, this.dimmed] = [end, last];
  }

  paint() {
    const { raster, view, ratio, points } = this;
    const moving = performance.now() - (this.last ?? 0) < REST;
    const whole = this.lighted === points.lit && this.dimmed === points.count;
    if (this.shown !== this.lighted + this.dimmed || !whole || moving) {
      const began = performance.now(), image = raster.develop(this.strength(), channels(NONE[this.theme]), this.theme === "dark" ? 0.45 : 0.3);
      this.canvas.getContext("2d", { willReadFrequently: true }).putImageData(image, 0, 0);
      this.developing = performance.now() - began;
    }
    const ring = this.ring >= 0 ? [this.table.x[this.ring], this.table.y[this.ring]] : null;
    drawOver(this.over.getContext("2d", { willReadFrequently: true }), view, ratio, { outlines: this.outlines, line: this.line, ring, color: MARK });
    if (!this.line.length) this.nameRegions();
    if (!whole && !moving) {
      this.more(SLICE, SLICE);
      this.drawSoon(false);
    }
    this.shown = whole ? this.lighted + this.dimmed : -1;
    this.element.dataset.drawn = whole ? points.count : "";
    this.element.dataset.lit = points.lit;
    this.frames = (this.frames ?? 0) + 1;
  }

  nameRegions() {
    const { raster, ratio, some } = this;
    const covered = (box) => some && raster.litIn(...box.map((side, at) => Math.round(side * ratio) + (at < 2 ? -1 : 1)));
    this.labels.place(this.view, this.named, covered, [this.tools, ...(this.beside ?? [])].map((element) => boxOf(element, this.element)));
  }

  /** Return the diameter of a point, in pixels of the page, where so many are drawn. */
  sizeOf(count) {
    const size = Math.min(Math.max(70 / Math.max(count, 1) ** 0.33, 1), 7);
    return Math.min(size * Math.max(this.view.zoomed, 1) ** 0.3, 12);
  }

  /** Return how strong a single point is: weaker where points overlap, so that a crowd stands out. */
  strength() {
    const share = (this.points.lit * this.size ** 2 * Math.max(this.view.zoomed, 0.1) ** -1.5) / (this.view.width * this.view.height);
    return Math.min(Math.max(0.8 - 0.12 * Math.log2(Math.max(share, 1e-6) / 0.1), 0.42), 0.95);
  }

  click(place) {
    const row = this.rowAt(place);
    if (row >= 0) this.acts.opened(row);
  }

  /** Return the row near a place of the screen, or -1; selected points come first. */
  rowAt(place) {
    const { table, view } = this, { lit } = this.acts;
    this.near ??= new Near(table.x, table.y, table.bounds);
    const reach = Math.max(REACH, this.size) / view.scale, at = view.toMap(place);
    const found = this.some ? this.near.find(at, reach, (row) => lit()[row]) : -1;
    return found >= 0 ? found : this.near.find(at, reach);
  }

  /** Show title and beginning of the text of the point near a place of the screen. */
  hover(place) {
    const row = place ? this.rowAt(place) : -1;
    if (row === this.hovered) return;
    this.hovered = row;
    this.tip.hidden = true;
    clearTimeout(this.peeked);
    if (row < 0) return;
    this.peeked = setTimeout(async () => {
      const found = await this.acts.peek(row).catch(() => null);
      if (found && this.hovered === row) this.say(found, row);
    }, 50);
  }

  say({ title, text }, row) {
    const { tip, view } = this, [across, down] = view.toScreen([this.table.x[row], this.table.y[row]]);
    [tip.firstElementChild.textContent, tip.lastElementChild.textContent] = [title, text.slice(0, 240)];
    tip.hidden = false;
    const left = Math.min(Math.max(across + 12, 4), Math.max(view.width - tip.offsetWidth - 4, 4));
    const fits = down + 12 + tip.offsetHeight < view.height;
    tip.style.transform = `translate(${left}px, ${fits ? down + 12 : Math.max(down - 12 - tip.offsetHeight, 4)}px)`;
  }

  /** Mark the point of the document that is open. */
  mark(row) {
    this.ring = row;
    this.drawSoon(false);
  }

  close() {
    this.watch.disconnect();
    cancelAnimationFrame(this.frame);
    for (const timer of [this.rest, this.told, this.peeked]) clearTimeout(timer);
  }
}

/** Return where an element lies within another: left, top, right, bottom. */
function boxOf(element, within) {
  const [inner, outer] = [element.getBoundingClientRect(), within.getBoundingClientRect()];
  return [inner.left - outer.left, inner.top - outer.top, inner.right - outer.left, inner.bottom - outer.top];
}

function channels(color) {
  return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
}
