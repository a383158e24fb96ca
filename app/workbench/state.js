// What the workbench shows, as an address keeps it; and what undo and redo go through.

import { simplified } from "./polygon.js";
import { writeSelection } from "./selection.js";

export const NAMES = ["s", "color", "names", "view", "sort"]; // of the texts of a state; "" is the default

export class History {
  constructor(selection) {
    Object.assign(this, { now: selection, before: [], after: [] });
  }

  /** Take another selection; return whether it is another one. */
  take(selection) {
    if (writeSelection(selection) === writeSelection(this.now)) return false;
    this.before.push(this.now);
    [this.now, this.after] = [selection, []];
    return true;
  }

  undo() {
    return this.step(this.before, this.after);
  }

  redo() {
    return this.step(this.after, this.before);
  }

  step(from, to) {
    if (!from.length) return false;
    to.push(this.now);
    this.now = from.pop();
    return true;
  }

  get past() {
    return this.before.length > 0;
  }

  get future() {
    return this.after.length > 0;
  }
}

/** Return a selection with an outline more: "new" in place of the others, "more" beside them, "both" within them. */
export function withOutline({ mode, parts }, outline, how, map) {
  const made = { kind: "area", map, outlines: [simplified(outline)] };
  const last = parts.findLastIndex((part) => part.kind === "area" && part.map === map && !part.not);
  if (how === "more" && last >= 0) {
    const joined = { ...parts[last], outlines: [...parts[last].outlines, ...made.outlines] };
    return { mode, parts: parts.map((part, at) => (at === last ? joined : part)) };
  }
  if (how === "both") return { mode: "all", parts: [...parts, made] };
  return { mode, parts: [...parts.filter((part) => part.kind !== "area"), made] };
}

/** Return a selection with a value of a column: alone, or with `more` beside those that are chosen; chosen ones leave. */
export function withValue({ mode, parts }, column, value, more) {
  const at = parts.findIndex((part) => part.kind === "values" && part.column === column && !part.not);
  const text = JSON.stringify(value), before = at < 0 ? [] : parts[at].values, chosen = before.some((each) => JSON.stringify(each) === text);
  let values = more ? [...before, value] : [value];
  if (chosen) values = more || before.length === 1 ? before.filter((each) => JSON.stringify(each) !== text) : [value];
  const made = values.length ? [{ kind: "values", column, values }] : [];
  return { mode, parts: at < 0 ? [...parts, ...made] : parts.flatMap((part, other) => (other === at ? made : [part])) };
}

/** Return a selection with a range of a column in place of the one that it had; without one for null. */
export function withRange({ mode, parts }, column, low, high) {
  const made = low === null ? [] : [{ kind: "range", column, low, high }];
  const at = parts.findIndex((part) => part.kind === "range" && part.column === column && !part.not);
  return { mode, parts: at < 0 ? [...parts, ...made] : parts.flatMap((part, other) => (other === at ? made : [part])) };
}

/** Return a selection with the hits of a query in place of those of another one. */
export function withQuery({ mode, parts }, query, k) {
  const rest = parts.filter((part) => part.kind !== "query");
  return { mode, parts: query ? [...rest, { kind: "query", query, k }] : rest };
}

