// A histogram with a brush, for numbers and dates; two fields take exact ends, also from the keyboard.

import { counted, make } from "./dom.js";
import { written } from "./table.js";

const HEIGHT = 64;

export class Histogram {
  /** `pick(low, high)` is called with both ends, included; with null when the brush is taken away. */
  constructor(column, pick) {
    Object.assign(this, { column, pick });
    this.canvas = make("canvas.histogram", { height: HEIGHT, "aria-hidden": "true" });
    const date = column.kind === "date", field = (name) => make("input.end", {
      type: date ? "date" : "number", step: "any", "aria-label": `${column.title}: ${name}`, onchange: () => this.typed(),
    });
    [this.low, this.high] = [field("from"), field("to")];
    this.none = make("span.barcount");
    const clear = make("button.link", { type: "button", onclick: () => pick(null), "aria-label": `Clear ${column.title}` }, "Clear");
    this.clear = clear;
    this.element = make("div.chartbody", {}, this.canvas, make("div.ends", {}, this.low, "to", this.high, clear, this.none));
    for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) this.canvas.addEventListener(kind, (event) => this[kind](event));
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.canvas);
  }

  show(counts, range, theme) {
    Object.assign(this, { counts, range, theme });
    this.fill();
    this.clear.hidden = !range;
    this.none.textContent = this.column.totals[0] ? `${counted(counts[0])} without a value` : "";
    this.draw();
  }

  fill() {
    const { column, range } = this, { low, high } = range ?? column;
    const write = column.kind === "date" ? (value) => written(column, value) : (value) => String(Number(value.toPrecision(12)));
    const root = this.low.getRootNode();
    if (root.activeElement !== this.low) this.low.value = write(low);
    if (root.activeElement !== this.high) this.high.value = write(high);
  }

  typed() {
    const read = (field) => (this.column.kind === "date" ? Date.parse(field.value) / 86_400_000 : Number(field.value));
    const [low, high] = [read(this.low), read(this.high)];
    const last = this.column.kind === "date" && !this.column.whole ? high + 1 - 1e-9 : high; // the whole of the last day
    if (Number.isFinite(low) && Number.isFinite(high) && low <= high) this.pick(low, last);
  }

  draw() {
    const { canvas, column, counts, range } = this, width = canvas.clientWidth;
    if (!width || !counts) return;
    const ratio = window.devicePixelRatio || 1, context = canvas.getContext("2d"), style = getComputedStyle(canvas);
    [canvas.width, canvas.height] = [width * ratio, HEIGHT * ratio];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const most = column.totals.subarray(1).reduce((top, count) => Math.max(top, count), 1), step = width / column.bars;
    const tall = (count) => (count ? Math.max((count / most) * (HEIGHT - 4), 1.5) : 0);
    for (let bar = 0; bar < column.bars; bar++) {
      const left = bar * step, wide = Math.max(step - 1, 1), middle = column.low + (bar + 0.5) * column.width;
      const inside = !range || (middle + column.width / 2 > range.low && middle - column.width / 2 <= range.high);
      context.fillStyle = style.getPropertyValue("--wb-pale");
      context.fillRect(left, HEIGHT - tall(column.totals[bar + 1]), wide, tall(column.totals[bar + 1]));
      context.fillStyle = style.getPropertyValue(inside ? "--wb-accent" : "--wb-muted");
      context.fillRect(left, HEIGHT - tall(counts[bar + 1]), wide, tall(counts[bar + 1]));
    }
    if (!range) return;
    const at = (value) => ((value - column.low) / (column.width * column.bars)) * width, extra = column.whole ? 1 : 0;
    context.strokeStyle = style.getPropertyValue("--wb-accent");
    context.lineWidth = 2;
    const left = Math.max(at(range.low), 1), right = Math.min(at(range.high + extra), width - 1);
    context.strokeRect(left, 1, Math.max(right - left, 2), HEIGHT - 2);
  }

  /** Return the value at a place of the canvas, at the edge of a bin; the last one of a range lies before its edge. */
  valueAt(event, last) {
    const { column } = this, box = this.canvas.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) * column.bars;
    if (column.whole) return column.low + (last ? Math.max(Math.ceil(share), 1) * column.width - 1 : Math.min(Math.floor(share), column.bars - 1) * column.width);
    return Math.min(column.low + share * column.width, column.high);
  }

  pointerdown(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.from = event;
  }

  pointermove(event) {
    if (!this.from || Math.abs(event.clientX - this.from.clientX) < 3) return;
    this.range = this.dragged(event);
    this.fill();
    this.draw();
  }

  pointerup(event) {
    if (!this.from) return;
    const { low, high } = this.dragged(event), clicked = Math.abs(event.clientX - this.from.clientX) < 3;
    this.from = null;
    clicked ? this.click(event) : this.pick(low, high);
  }

  pointercancel() {
    this.from = null;
  }

  dragged(event) {
    const [first, then] = event.clientX < this.from.clientX ? [event, this.from] : [this.from, event];
    return { low: this.valueAt(first, false), high: this.valueAt(then, true) };
  }

  /** A click takes one bar, and away from a range that there is. */
  click(event) {
    const { column } = this;
    if (this.range) return this.pick(null);
    if (column.whole) return this.pick(this.valueAt(event, false), this.valueAt(event, true));
    const bar = Math.min(Math.floor((this.valueAt(event) - column.low) / column.width), column.bars - 1);
    this.pick(column.low + bar * column.width, Math.min(column.low + (bar + 1) * column.width, column.high));
  }

  close() {
    this.watch.disconnect();
  }
}
