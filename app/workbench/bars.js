// The bars of a class column: how many documents have each value, all of them and those that are selected.

import { counted, make, refill } from "./dom.js";

const FEW = 10; // bars before "Show all"

export class Bars {
  /** `pick(value, more)` is called with a name, null for none, or {other: true}. */
  constructor(column, pick) {
    Object.assign(this, { column, pick, all: false });
    this.list = make("ul.bars");
    this.element = make("div.chartbody", {}, this.list);
    const used = [...column.names.keys()].filter((code) => column.totals[code + 1]);
    this.order = used.sort((one, other) => column.totals[other + 1] - column.totals[one + 1]).map((code) => code + 1);
    if (column.totals[0]) this.order.push(0);
  }

  /** Show counts by code: Uint32Array, 0 for none; `chosen` are the codes that are selected here, `excluded` those that an inverted part leaves out. */
  show(counts, chosen, theme, excluded) {
    Object.assign(this, { counts, chosen, theme, excluded });
    const shown = this.all ? this.order : this.order.filter((code, at) => at < FEW || chosen.has(code));
    const most = this.order.reduce((top, code) => Math.max(top, this.column.totals[code]), 1);
    const rows = shown.map((code) => make("li", {}, this.bar(code, most)));
    if (this.order.length > FEW) rows.push(make("li", {}, this.toggle()));
    refill(this.list, rows);
  }

  bar(code, most) {
    const { column, counts, chosen, excluded } = this, name = code ? column.names[code - 1] : "none", own = chosen.has(code);
    const share = (count) => `${(100 * count) / most}%`;
    const bar = make("span.bartrack", { "aria-hidden": "true" }, make("span.bartotal"), make("span.barlit"));
    bar.firstElementChild.style.width = share(column.totals[code]);
    bar.lastElementChild.style.width = share(counts[code]);
    bar.lastElementChild.style.background = code ? column.colors[this.theme][code - 1] : "";
    const said = `${name}: ${counted(counts[code])} of ${counted(column.totals[code])}`;
    return make(`button.bar${leftOut(column, code, chosen, excluded) ? ".left" : ""}`, {
      type: "button", "data-key": `${column.name}/${code}`, "aria-pressed": own, "aria-label": said, title: `${said}. Shift-click adds it to the selection`,
      onclick: (event) => this.pick(valueOfCode(column, code), event.shiftKey || event.ctrlKey || event.metaKey),
    }, make("span.barname", {}, name), bar, make("span.barcount", {}, counted(counts[code])));
  }

  toggle() {
    return make("button.link", {
      type: "button", "data-key": `${this.column.name}/all`, "aria-expanded": this.all,
      onclick: () => ((this.all = !this.all), this.show(this.counts, this.chosen, this.theme, this.excluded)),
    }, this.all ? "Show fewer" : `Show all ${counted(this.order.length)}`);
  }
}

/** Return the value of a code as a part of a selection has it. */
export function valueOfCode(column, code) {
  if (!code) return null;
  return column.other && code === column.names.length ? { other: true } : column.names[code - 1];
}

/** Return whether a code is neither chosen nor under one that is, or is excluded or under one that is. */
export function leftOut({ above = [] }, code, chosen, excluded) {
  const within = [code];
  while (above[within.at(-1) - 1] >= 0 && within.length <= above.length) within.push(above[within.at(-1) - 1] + 1);
  return (chosen.size > 0 && !within.some((each) => chosen.has(each))) || within.some((each) => excluded.has(each));
}

/** Return the code of a value of a part; -1 for one that the column lacks. */
export function codeOfValue(column, value) {
  if (value === null) return 0;
  return value?.other ? column.names.length : column.names.indexOf(value) + 1 || -1;
}
