// The table of the documents that are selected: a page of them at a time, with every column; a cell selects its value.

import { counted, make, refill } from "./dom.js";
import { valueOfCode } from "./bars.js";
import { valueOf, written } from "./table.js";

const PAGE = 25;

export class Documents {
  /** `acts` has open(row), pick(column, value), sort(column's name) and rows(numbers), a promise of documents. */
  constructor(table, acts) {
    Object.assign(this, { table, acts, page: 0, turn: 0, kept: new Map() });
    this.heads = new Map(table.columns.map((column) => [column, this.head(column)]));
    const head = make("tr", {}, make("th", { scope: "col" }, "Document"), [...this.heads.values()]);
    this.body = make("tbody");
    this.back = make("button.tool", { type: "button", onclick: () => this.go(this.page - 1), "aria-label": "Previous page of documents" }, "‹");
    this.on = make("button.tool", { type: "button", onclick: () => this.go(this.page + 1), "aria-label": "Next page of documents" }, "›");
    this.said = make("span.count", { role: "status" });
    this.scroll = make("div.scroll", { tabIndex: 0, role: "region", "aria-label": "Table of the selected documents" }, make("table.table", {}, make("thead", {}, head), this.body));
    this.element = make("section.documents", { "aria-label": "Documents" }, make("div.pager", {}, this.said, this.back, this.on), this.scroll);
  }

  head(column) {
    const title = `Sort by ${column.title}: ascending, descending, not at all`;
    return make("th", { scope: "col" }, make("button.sort", { type: "button", title, onclick: () => this.acts.sort(column.name) }, column.title));
  }

  /** Show rows: Uint32Array, in the order in which they are listed; `sort` is the column that they are sorted by, if any. */
  show(rows, sort) {
    this.rows = rows;
    for (const [column, head] of this.heads) {
      if (column === sort?.column) head.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    this.go(0);
  }

  go(page) {
    const pages = Math.max(1, Math.ceil(this.rows.length / PAGE));
    this.page = Math.min(Math.max(page, 0), pages - 1);
    [this.back.disabled, this.on.disabled] = [this.page === 0, this.page === pages - 1];
    const first = this.page * PAGE, last = Math.min(first + PAGE, this.rows.length);
    this.said.textContent = this.rows.length ? `${counted(first + 1)} to ${counted(last)} of ${counted(this.rows.length)}` : "No document is selected";
    clearTimeout(this.timer); // while a brush moves, only the last page is asked for
    this.timer = setTimeout(() => this.fill([...this.rows.subarray(first, last)]), 30);
    this.scroll.scrollTop = 0;
  }

  async fill(rows) {
    const turn = ++this.turn;
    refill(this.body, rows.map((row) => this.row(row)));
    if (!rows.some((row) => !this.kept.has(row)) || !this.acts.rows) return;
    const found = await this.acts.rows(rows).catch(() => []);
    for (const each of found) this.kept.set(each.row, each);
    if (this.kept.size > 5000) this.kept = new Map(found.map((each) => [each.row, each]));
    if (turn === this.turn) refill(this.body, rows.map((row) => this.row(row)));
  }

  row(row) {
    const found = this.kept.get(row), title = found?.title?.trim(), text = found?.text ?? "…";
    const open = make("button.doc", { type: "button", dir: "auto", "data-key": `row${row}`, onclick: () => this.acts.open(row) },
      title ? make("strong", {}, title, " ") : null, make("span", {}, text.slice(0, 300)));
    return make("tr", {}, make("th", { scope: "row" }, open), this.table.columns.map((column) => make("td", {}, this.cell(column, row))));
  }

  cell(column, row) {
    const value = valueOf(column, row), said = written(column, value);
    if (value === null && column.kind !== "class") return "";
    const picked = column.kind === "class" ? valueOfCode(column, column.codes[row]) : value;
    return make("button.cell", {
      type: "button", dir: "auto", title: `Select all documents with ${column.title}: ${said}`, "data-key": `cell${row}/${column.name}`,
      onclick: () => this.acts.pick(column, picked),
    }, said);
  }
}
