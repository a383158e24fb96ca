// The bars of a class column: how many documents have each value, all of them and those that are selected.

import { counted, make, refill } from "./dom.js";

const FEW = 10; // bars before "Show all"
const INDENT = 12; // pixels for each group above
const TIME = /^\d{4}-(\d\d|Q\d|W\d\d)\b/; // 2026-04, 2026-04-13, 2026-Q2, 2026-W16

export class Bars {
  /** `pick(value, more)` is called with a name, null for none, or {other: true}. */
  constructor(column, pick) {
    Object.assign(this, { column, pick, all: false });
    this.list = make("ul.bars");
    this.element = make("div.chartbody", {}, this.list);
    this.order = treeOrder(column);
    if (column.totals[0]) this.order.push(0);
  }

  /** Show counts by code: Uint32Array, 0 for none; `chosen` are the codes that are selected here, `excluded` those that an inverted part leaves out. */
  show(counts, chosen, theme, excluded) {
    Object.assign(this, { counts, chosen, theme, excluded });
    const shown = this.all ? this.order : fewOf(this.order, counts, chosen, this.column);
    const most = this.order.reduce((top, code) => Math.max(top, this.column.totals[code]), 1);
    const rows = shown.map((code) => make("li", {}, this.bar(code, most)));
    if (this.order.length > FEW) rows.push(make("li", {}, this.toggle(shown)));
    refill(this.list, rows);
  }

  bar(code, most) {
    const { column, counts, chosen, excluded } = this, name = code ? column.names[code - 1] : "none", own = chosen.has(code);
    const share = (count) => `${(100 * count) / most}%`;
    const bar = make("span.bartrack", { "aria-hidden": "true" }, make("span.bartotal"), make("span.barlit"));
    bar.firstElementChild.style.width = share(column.totals[code]);
    bar.lastElementChild.style.width = share(counts[code]);
    bar.lastElementChild.style.background = code ? column.colors[this.theme][code - 1] : "";
    const lineage = lineageOf(column, code), path = lineage.map((each) => column.names[each - 1] ?? name).reverse().join(" > ");
    const said = `${path}: ${counted(counts[code])} of ${counted(column.totals[code])}`;
    return make(`button.bar${leftOut(column, code, chosen, excluded) ? ".left" : ""}`, {
      type: "button", "data-key": `${column.name}/${code}`, "aria-pressed": own, "aria-label": said, title: `${said}. Shift-click adds it to the selection`,
      onclick: (event) => this.pick(valueOfCode(column, code), event.shiftKey || event.ctrlKey || event.metaKey),
    }, make("span.barname", { dir: "auto", style: `padding-left: ${INDENT * (lineage.length - 1)}px` }, name), bar, make("span.barcount", {}, counted(counts[code])));
  }

  toggle(shown) {
    const { column, counts } = this, narrowed = this.order.some((code) => counts[code] < column.totals[code]), seen = new Set(shown);
    const hidden = narrowed ? this.order.filter((code) => counts[code] && !seen.has(code)).length : 0;
    return make("button.link", {
      type: "button", "data-key": `${this.column.name}/all`, "aria-expanded": this.all,
      onclick: () => ((this.all = !this.all), this.show(this.counts, this.chosen, this.theme, this.excluded)),
    }, this.all ? "Show fewer" : `Show all ${counted(this.order.length)}${hidden ? ` (${counted(hidden)} more with hits)` : ""}`);
  }
}

/** Return the codes that have documents: each group before those under it, and among those of one group the largest first; months and other periods by time. */
export function treeOrder({ names, totals, above = [], other: cut }) {
  const timed = names.every((name, code) => TIME.test(name) || (cut && code === names.length - 1)); // "other" comes after all digits
  const before = (one, other) => (timed ? (names[one] < names[other] ? -1 : 1) : totals[other + 1] - totals[one + 1]);
  const under = new Map(), found = [];
  for (const code of names.keys()) if (totals[code + 1]) under.set(above[code] ?? -1, [...(under.get(above[code] ?? -1) ?? []), code]);
  const walk = (group) => {
    for (const code of (under.get(group) ?? []).sort(before)) (found.push(code + 1), walk(code));
  };
  walk(-1);
  return found;
}

/**
 * Return the bars to show of a chart that has more: those with the most selected documents, else the largest; and what is chosen.
 *
 * Which bars are shown depends on the selection, so that a bar with hits is never hidden behind empty ones. Their order does not: a
 * bar that moved while one narrows a selection step by step would be hard to follow. Crossfilter keeps the order for the same reason.
 */
export function fewOf(order, counts, chosen, column) {
  const ranked = order.map((code, at) => [counts[code], at, code]).sort(([one, at], [other, next]) => other - one || at - next); // a group before those under it
  const few = new Set(ranked.slice(0, FEW).map(([, , code]) => code));
  for (const code of chosen) for (const each of lineageOf(column, code)) few.add(each);
  return order.filter((code) => few.has(code));
}

/** Return a code and those of the groups above it, the nearest first. */
export function lineageOf({ above = [] }, code) {
  const within = [code];
  while (above[within.at(-1) - 1] >= 0 && within.length <= above.length) within.push(above[within.at(-1) - 1] + 1);
  return within;
}

/** Return the value of a code as a part of a selection has it. */
export function valueOfCode(column, code) {
  if (!code) return null;
  return column.other && code === column.names.length ? { other: true } : column.names[code - 1];
}

/** Return whether a code is neither chosen nor under one that is, or is excluded or under one that is. */
export function leftOut(column, code, chosen, excluded) {
  const within = lineageOf(column, code);
  return (chosen.size > 0 && !within.some((each) => chosen.has(each))) || within.some((each) => excluded.has(each));
}

/** Return the code of a value of a part; -1 for one that the column lacks. */
export function codeOfValue(column, value) {
  if (value === null) return 0;
  return value?.other ? column.names.length : column.names.indexOf(value) + 1 || -1;
}
