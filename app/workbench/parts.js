// The parts of the selection as chips, each of which can be inverted or removed; all or any of them; undo and redo.

import { counted, make, refill } from "./dom.js";
import { keyOf } from "./selection.js";
import { written } from "./table.js";

export class Parts {
  /** `acts` has change(selection), undo() and redo(). */
  constructor(table, acts) {
    Object.assign(this, { table, acts });
    this.said = make("strong.selected", { role: "status" });
    this.chips = make("ul.chips", { "aria-label": "Parts of the selection" });
    this.undo = make("button.tool", { type: "button", title: "Undo (Ctrl+Z)", "aria-label": "Undo", onclick: () => acts.undo() }, "↶");
    this.redo = make("button.tool", { type: "button", title: "Redo (Ctrl+Shift+Z)", "aria-label": "Redo", onclick: () => acts.redo() }, "↷");
    this.mode = make("select.tool", { "aria-label": "Documents that match", onchange: () => this.change({ mode: this.mode.value }) },
      make("option", { value: "all" }, "match all"), make("option", { value: "any" }, "match any"));
    this.clear = make("button.tool", { type: "button", onclick: () => this.change({ parts: [] }) }, "Clear");
    this.element = make("div.parts", {}, this.said, this.undo, this.redo, this.mode, this.chips, this.clear);
  }

  change(more) {
    this.acts.change({ ...this.selection, ...more });
  }

  show(selection, selector, history) {
    this.selection = selection;
    const { parts, mode } = selection, total = this.table.rows;
    this.said.textContent = parts.length ? `${counted(selector.count)} of ${counted(total, "document")}` : counted(total, "document");
    [this.undo.disabled, this.redo.disabled] = [!history.past, !history.future];
    this.mode.value = mode;
    this.mode.hidden = parts.length < 2;
    this.clear.hidden = !parts.length;
    refill(this.chips, parts.map((part, at) => this.chip(part, at, selector)));
  }

  chip(part, at, selector) {
    const text = describe(part, this.table), key = keyOf(part);
    const note = selector.waiting.has(key) ? " …" : selector.problems.has(key) ? ` (${selector.problems.get(key)})` : "";
    const others = (put) => this.change({ parts: this.selection.parts.flatMap((each, other) => (other === at ? put : [each])) });
    return make(`li.chip${part.not ? ".not" : ""}${selector.problems.has(key) ? ".wrong" : ""}`, {},
      make("button.chiptext", {
        type: "button", "data-key": `chip${at}`, "aria-pressed": Boolean(part.not), title: "Invert: select all other documents", onclick: () => others([inverted(part)]),
      }, part.not ? make("b", {}, "not ") : null, text + note),
      make("button.chipclose", { type: "button", "data-key": `close${at}`, "aria-label": `Remove ${text}`, onclick: () => others([]) }, "×"));
  }
}

function inverted({ not, ...part }) {
  return not ? part : { ...part, not: true };
}

/** Return a part in words. */
export function describe(part, table) {
  const column = table.byName.get(part.column), title = column?.title ?? part.column;
  if (part.kind === "area") return part.outlines?.length > 1 ? `${part.outlines.length} areas` : "area";
  if (part.kind === "values") {
    const names = (part.values ?? []).map((value) => (value === null ? "none" : value?.other ? "other" : String(value)));
    const listed = names.slice(0, 3).map((name) => (name.length > 40 ? `${name.slice(0, 39)}…` : name)).join(", ");
    return `${title}: ${listed}${names.length > 3 ? ` and ${names.length - 3} more` : ""}`;
  }
  if (part.kind === "range") return `${title}: ${written(column ?? { kind: "number" }, part.low)} to ${written(column ?? { kind: "number" }, part.high)}`;
  if (part.kind === "query") return `“${part.query}”: best ${part.k}`;
  return counted(part.ids?.length ?? 0, "document");
}
