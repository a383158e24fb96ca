// The workbench: a map, a search, a table and a chart for each column, which narrow each other.

import { Bars, codeOfValue } from "./bars.js";
import { Documents } from "./documents.js";
import { make } from "./dom.js";
import { Drawer } from "./drawer.js";
import { Histogram } from "./histogram.js";
import { Legend } from "./legend.js";
import { MapPane } from "./map.js";
import { Orders, nextSort, readSort } from "./order.js";
import { Parts } from "./parts.js";
import { Selector, readSelection, writeSelection } from "./selection.js";
import { History, NAMES, withOutline, withQuery, withRange, withValue } from "./state.js";
import { unpack } from "./table.js";

const FEW_COLORS = 20;
const HITS = 100; // of a query, that become a part of the selection

class Workbench {
  constructor(root, { table, options = {}, host = {} }) {
    Object.assign(this, { root, options, host, kept: new Map() });
    this.state = { ...Object.fromEntries(NAMES.map((name) => [name, ""])), ...options.state };
    this.open(table);
  }

  /** Draw everything for a table. */
  open(buffer) {
    this.close();
    const before = this.table, tool = this.map?.hand.tool;
    this.table = unpack(buffer);
    this.selector = new Selector(this.table, this.table.map, (part) => this.resolve(part), () => this.refresh());
    const selection = readSelection(this.state.s), same = before?.name === this.table.name && before.map === this.table.map;
    if (same) this.history.take(selection); // a tag more, or a run: what was selected before can still be undone
    else this.history = new History(selection);
    this.build();
    if (tool) this.map?.use(tool);
    this.restore();
  }

  build() {
    const { table, host } = this, pick = (column, value, more) => this.pick(column, value, more);
    this.mapped = table.x.some((x) => x === x);
    this.map = !this.mapped ? null : new MapPane(table, {
      areas: (outline, how) => this.change(withOutline(this.history.now, outline, how, table.map)),
      opened: (row) => this.show(row), cleared: () => this.change({ mode: "all", parts: [] }),
      viewed: (view) => this.tell({ view }, true), peek: (row) => this.document(row), lit: () => this.selector.lit,
    });
    this.orders = new Orders(table);
    this.legend = new Legend(pick);
    this.parts = new Parts(table, { change: (selection) => this.change(selection), undo: () => this.step("undo"), redo: () => this.step("redo") });
    this.charts = table.columns.map((column) => this.chart(column, pick));
    this.documents = new Documents(table, { open: (row) => this.show(row), pick: (column, value) => this.pick(column, value, false), rows: host.rows && ((rows) => host.rows(rows)), sort: (name) => this.tell({ sort: nextSort(this.state.sort, name, table) }) });
    this.drawer = new Drawer(table, () => this.map?.mark(-1));
    this.element = make("div", { className: "wb", onkeydown: (event) => this.keydown(event) }, this.head(), this.panes(), this.drawer.element);
    this.root.replaceChildren(this.element);
    if (this.map) [this.map.beside, this.map.sized] = [[this.legend.element], () => this.legend.settle(this.map, this.column?.name)];
    this.theme();
  }

  chart(column, pick) {
    const body = column.kind === "class" ? new Bars(column, (value, more) => pick(column, value, more))
      : new Histogram(column, (low, high) => this.change(withRange(this.history.now, column.name, low, high)));
    const color = this.mapped && make("button.link", { type: "button", title: "Colour the map by this column", "aria-label": `Colour by ${column.title}`, onclick: () => this.paint(column.name) }, "Colour");
    body.section = make("section.chart", { "aria-label": column.title }, make("div.charthead", {}, make("h2.charttitle", { title: column.title }, column.title), color), body.element);
    return body;
  }

  head() {
    const { host, options } = this;
    this.box = make("input.search", { type: "search", placeholder: "Search these documents", "aria-label": "Search these documents", value: this.box?.value ?? "" });
    const form = host.search && make("form.searchform", { role: "search", onsubmit: (event) => (event.preventDefault(), this.search(this.box.value.trim())) },
      this.box, make("button.tool", { type: "submit" }, "Search"));
    this.colors = make("select.tool", { "aria-label": "Colour by", onchange: () => this.paint(this.colors.value) },
      make("option", { value: "-" }, "one colour"), this.table.columns.map(({ name, title }) => make("option", { value: name }, title)));
    const regions = this.mapped && this.table.regions.length > 0 && make("button.tool", { type: "button", title: "Show or hide the names of regions", onclick: () => this.tell({ names: this.state.names ? "" : "none" }) }, "Names");
    const folds = ["charts", "table"].map((name) => make("button.tool", { type: "button", "aria-pressed": "true", value: name, onclick: (event) => this.fold(event.currentTarget) }, name === "charts" ? "Charts" : "Table"));
    this.screen = make("button.tool", { type: "button", "aria-pressed": "false", onclick: () => this.full() }, "Full screen");
    this.regions = regions;
    this.actions = make("div.actions", { role: "group", "aria-label": "With the selection" }, (options.actions ?? []).map(({ name, label }) => {
      return make("button.tool", { type: "button", onclick: () => host.act?.(name, this.state) }, label);
    }));
    const colored = this.mapped && make("label.labelled", {}, "Colour by ", this.colors);
    return make("div.head", {}, make("div.bar", {}, form, colored, regions, folds, this.screen), make("div.under", {}, this.parts.element, this.actions));
  }

  panes() {
    const map = this.map && make("div.mappane", {}, this.map.element, this.legend.element);
    const charts = make("div.charts", { role: "region", "aria-label": "Charts", tabIndex: 0 }, this.charts.map(({ section }) => section));
    return make(`div.panes${this.map ? "" : ".nomap"}`, {}, map, charts, this.documents.element);
  }

  /** Show what `this.state` says. */
  restore() {
    const { state } = this, groups = firstGroups(this.table.columns);
    const column = this.table.byName.get(state.color) ?? (state.color === "-" ? null : groups);
    this.column = column;
    this.colors.value = column?.name ?? "-";
    const query = this.history.now.parts.findLast(({ kind }) => kind === "query")?.query ?? "";
    if (query !== this.asked) this.box.value = this.asked = query; // else somebody may be typing
    if (this.regions) this.regions.setAttribute("aria-pressed", state.names !== "none");
    if (this.map) {
      this.map.named = state.names !== "none";
      this.map.color(column, this.mode);
      if (state.view !== this.map.view.write()) [this.map.pending, this.map.stale] = [state.view, true];
    }
    this.refresh();
  }

  /** Compute the selection, and show it everywhere. */
  refresh() {
    const selection = this.history.now, { parts } = selection, began = performance.now();
    const { lit, counts } = this.selector.select(selection), selected = parts.length > 0;
    this.charts.forEach((chart) => this.showChart(chart, counts.get(chart.column.name), parts));
    const outlines = parts.filter(({ kind, map }) => kind === "area" && (!map || map === this.table.map)).flatMap((part) => part.outlines ?? []);
    this.map?.select(lit, outlines, selected && this.selector.count < this.table.rows);
    this.legend.show(this.column, this.column && counts.get(this.column.name), this.column && this.chosen(this.column, parts), this.mode, this.column && this.chosen(this.column, parts, true));
    if (this.map) this.legend.settle(this.map, this.column?.name);
    this.parts.show(selection, this.selector, this.history);
    const sort = readSort(this.state.sort, this.table);
    this.documents.show(this.selector.rows(parts, sort && this.orders.of(sort)), sort);
    Object.assign(this.element.dataset, { selected: this.selector.count, took: (performance.now() - began).toFixed(1), waiting: this.selector.waiting.size });
  }

  showChart(chart, counts, parts) {
    const { column } = chart, range = parts.find((part) => part.kind === "range" && this.table.byName.get(part.column) === column && !part.not);
    if (column.kind === "class") chart.show(counts, this.chosen(column, parts), this.mode, this.chosen(column, parts, true));
    else chart.show(counts, range, this.mode);
  }

  /** Return the codes of a column that are chosen, or with `not` those that are excluded. */
  chosen(column, parts, not = false) {
    const own = parts.filter((part) => part.kind === "values" && this.table.byName.get(part.column) === column && Boolean(part.not) === not);
    return new Set(own.flatMap(({ values }) => values.map((value) => codeOfValue(column, value))));
  }

  pick(column, value, more) {
    if (column.kind === "class") this.change(withValue(this.history.now, column.name, value, more));
    else this.change(withRange(this.history.now, column.name, value, value));
  }

  search(query) {
    this.change(withQuery(this.history.now, query, HITS));
  }

  resolve(part) {
    if (part.kind === "query") return this.host.search?.(part.query, part.k);
    return this.host.resolve?.(part);
  }

  change(selection) {
    if (this.history.take(selection)) this.selected();
  }

  step(way) {
    if (this.history[way]()) this.selected();
  }

  selected() {
    this.state.s = writeSelection(this.history.now);
    this.restore();
    this.host.changed?.({ ...this.state }, false);
  }

  paint(color) {
    this.tell({ color });
  }

  /** Take a change of the state that leaves the selection as it is. */
  tell(more, replace = false) {
    this.state = { ...this.state, ...more };
    if (!replace) this.restore();
    this.host.changed?.({ ...this.state }, replace);
  }

  async document(row) {
    if (!this.kept.has(row)) this.kept.set(row, (await this.host.rows?.([row]))?.[0]);
    if (this.kept.size > 2000) this.kept.delete(this.kept.keys().next().value);
    return this.kept.get(row);
  }

  /** Open a document: in the host's drawer, or in our own. */
  async show(row) {
    this.map?.mark(row);
    if (this.host.open) return this.host.open(row);
    const found = await this.document(row);
    if (found) this.drawer.open(row, found);
  }

  fold(button) {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", shown);
    this.element.classList.toggle(`wb-no${button.value}`, !shown);
  }

  /** Fill the screen, tools and all; the whole page goes along, so that the host's dialogs stay in sight. */
  full() {
    const on = this.element.classList.toggle("wb-full");
    this.screen.setAttribute("aria-pressed", on);
    const done = on ? document.documentElement.requestFullscreen?.() : document.fullscreenElement && document.exitFullscreen();
    done?.catch?.(() => {});
  }

  keydown(event) {
    if (event.target.matches("input, select, textarea") || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    event.preventDefault();
    this.step(event.shiftKey ? "redo" : "undo");
  }

  /** Take the theme of the options, or of the page's background. */
  theme() {
    const [red, green, blue, alpha = 1] = (getComputedStyle(this.element).backgroundColor.match(/[\d.]+/g) ?? [255, 255, 255]).map(Number);
    this.mode = this.options.theme ?? (alpha && 0.3 * red + 0.6 * green + 0.1 * blue < 110 ? "dark" : "light");
    this.element.dataset.theme = this.mode;
  }

  /** Take another table, other options, or a state such as that of an address one went back to. */
  update({ table, options, state }) {
    if (options) this.options = { ...this.options, ...options };
    if (state) this.state = { ...this.state, ...state };
    if (table) return this.open(table);
    if (state && writeSelection(this.history.now) !== (this.state.s || "")) this.history.take(readSelection(this.state.s));
    if (options) this.theme();
    this.restore();
  }

  close() {
    this.map?.close?.();
    this.charts?.forEach((chart) => chart.close?.());
  }
}

/** Return the column that colours the map unless another is chosen: the newest run with few groups, whole runs before their levels. */
function firstGroups(columns) {
  const runs = columns.filter(({ kind, name }) => kind === "class" && name.includes(":"));
  const few = runs.filter(({ names }) => names.length <= FEW_COLORS);
  return few.find(({ part }) => !part) ?? few[0] ?? runs[0] ?? null;
}

/** Put the workbench into an element; see docs/decisions/0051 for `options` and `host`. */
export function mount(root, given) {
  const made = new Workbench(root, given);
  root.workbench = made;
  return { update: (more) => made.update(more), close: () => (made.close(), root.replaceChildren()) };
}
