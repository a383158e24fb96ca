// A document at the side, where the host has no drawer of its own.

import { make } from "./dom.js";
import { valueOf, written } from "./table.js";

export class Drawer {
  constructor(table, closed) {
    Object.assign(this, { table, closed });
    this.title = make("h2.drawertitle", { tabIndex: -1, dir: "auto" });
    this.text = make("div.drawertext", { dir: "auto" });
    this.facts = make("dl.facts");
    this.element = make("aside.drawer", { role: "dialog", "aria-label": "Document", hidden: true, onkeydown: (event) => event.key === "Escape" && this.close() },
      make("button.tool.drawerclose", { type: "button", onclick: () => this.close() }, "Close"), this.title, this.text, this.facts);
  }

  open(row, { id, title, text, metadata = {} }) {
    this.back = this.element.getRootNode().activeElement;
    this.title.textContent = title?.trim() || id;
    this.text.textContent = text;
    const known = this.table.columns.map((column) => [column.title, written(column, valueOf(column, row))]);
    const names = new Set(this.table.columns.map(({ name }) => name));
    const rest = Object.entries(metadata).filter(([name]) => !names.has(name)).map(([name, value]) => [name, String(value)]);
    this.facts.replaceChildren(...[["id", id], ...known, ...rest].filter(([, value]) => value).flatMap(([name, value]) => [make("dt", { dir: "auto" }, name), make("dd", { dir: "auto" }, value)]));
    this.element.hidden = false;
    this.title.focus({ preventScroll: true });
  }

  close() {
    this.element.hidden = true;
    this.back?.focus?.({ preventScroll: true });
    this.closed();
  }
}
