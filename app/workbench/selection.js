// Selections: the parts of one, which rows pass, and the counts of all columns, on typed arrays.
// pipelines/facets computes the same on the server; tests/app/workbench compares the two.

import { insideOutlines } from "./polygon.js";
import { withBelow } from "./table.js";

export const MOST_PARTS = 30; // a row's failures are the bits of one integer

/** Return a selection out of the text of an address; anything that is none becomes one without parts. */
export function readSelection(text) {
  try {
    const { mode = "all", parts = [] } = JSON.parse(text || "{}");
    return { mode: mode === "any" ? "any" : "all", parts: parts.filter((part) => part && part.kind).slice(0, MOST_PARTS) };
  } catch {
    return { mode: "all", parts: [] };
  }
}

/** Return the text of a selection, "" for one without parts. */
export function writeSelection({ mode, parts }) {
  return parts.length ? JSON.stringify({ mode, parts }) : "";
}

export class Selector {
  /** `resolve(part)` returns a promise of rows for what the table alone cannot tell; `changed()` hears of its end. */
  constructor(table, map, resolve, changed) {
    Object.assign(this, { table, map, resolve, changed, masks: new Map(), scores: new Map() });
    this.fails = new Uint32Array(table.rows);
    this.lit = new Uint8Array(table.rows);
    this.kept = new Map(); // masks of parts, by their text; `waiting` ones are empty until they come
    this.waiting = new Set();
    this.problems = new Map();
  }

  /** Compute which rows are selected: `lit`, `count`, and `counts` of every column by its name. */
  select({ mode, parts }) {
    const { fails, lit, table } = this, full = parts.length === 32 ? -1 : (1 << parts.length) - 1;
    const keys = parts.map(keyOf);
    fails.fill(0);
    parts.forEach((part, at) => addFails(fails, this.mask(part, keys[at]), at, part.not ? 0 : 1));
    for (const key of this.kept.keys()) if (!keys.includes(key)) this.forget(key);
    this.count = mode === "any" && parts.length ? passAny(fails, lit, full) : passAll(fails, lit);
    this.counts = new Map(table.columns.map((column) => {
      const own = mode === "all" ? bitsOf(parts, column, table) : 0;
      return [column.name, own ? countOthers(column, fails, ~own) : countLit(column, lit)];
    }));
    return this;
  }

  forget(key) {
    if (this.kept.size > 40 || this.waiting.has(key)) this.kept.delete(key);
    this.problems.delete(key);
  }

  /** Return Uint8Array [rows]: 1 where a row has what a part asks for, its "not" left aside. */
  mask(part, key = keyOf(part)) {
    const known = this.kept.get(key);
    if (known) return known;
    const made = this.compute(part) ?? this.ask(part, key);
    this.kept.set(key, made);
    return made;
  }

  compute(part) {
    const { table } = this, column = table.byName.get(part.column);
    if (part.kind === "area" && (!part.map || part.map === this.map)) return insideOutlines(table.x, table.y, part.outlines ?? []);
    if (part.kind === "values" && column?.kind === "class") return withValues(column, part.values ?? []);
    if (part.kind === "range" && column && column.kind !== "class") return withinRange(column.values, part.low, part.high);
    return null;
  }

  /** Ask the host for the rows of a part; until they come, it finds nothing. */
  ask(part, key) {
    const mask = new Uint8Array(this.table.rows);
    this.waiting.add(key);
    Promise.resolve(this.resolve(part)).then(
      (found) => {
        if (!found) this.problems.set(key, "not available here");
        for (const row of found?.rows ?? []) mask[row] = 1;
        if (found?.scores) this.scores.set(key, found);
      },
      (error) => this.problems.set(key, error.message),
    ).finally(() => {
      this.waiting.delete(key);
      this.kept.set(key, mask);
      this.changed();
    });
    return mask;
  }

  /** Return the rows that are selected in an order of all rows; without one, the hits of the last query come first, the best of them first. */
  rows(parts, order) {
    const rows = new Uint32Array(this.count);
    let at = 0;
    if (order) {
      for (const row of order) if (this.lit[row]) rows[at++] = row;
      return rows;
    }
    for (let row = 0; row < this.lit.length; row++) if (this.lit[row]) rows[at++] = row;
    const query = parts.findLast((part) => part.kind === "query" && !part.not && this.scores.has(keyOf(part)));
    if (!query) return rows;
    const best = [...this.scores.get(keyOf(query)).rows].filter((row) => this.lit[row]), first = new Set(best);
    return Uint32Array.from([...best, ...rows.filter((row) => !first.has(row))]);
  }
}

/** Return the text by which a part's mask is kept: without its "not". */
export function keyOf({ not, ...part }) {
  return JSON.stringify(part);
}

function addFails(fails, mask, bit, wanted) {
  for (let row = 0; row < fails.length; row++) fails[row] |= (mask[row] ^ wanted) << bit;
}

function passAll(fails, lit) {
  let count = 0;
  for (let row = 0; row < fails.length; row++) count += lit[row] = fails[row] === 0 ? 1 : 0;
  return count;
}

function passAny(fails, lit, full) {
  let count = 0;
  for (let row = 0; row < fails.length; row++) count += lit[row] = (fails[row] & full) !== full ? 1 : 0;
  return count;
}

/** Return the bits of the parts that a column's own chart made: its other bars stay countable. */
function bitsOf(parts, column, { byName }) {
  return parts.reduce((bits, part, at) => (byName.get(part.column) === column ? bits | (1 << at) : bits), 0);
}

function countLit(column, lit) {
  const { codes, bars } = column, counts = new Uint32Array(bars + 1);
  for (let row = 0; row < codes.length; row++) counts[codes[row]] += lit[row];
  return withBelow(column, counts);
}

function countOthers(column, fails, others) {
  const { codes, bars } = column, counts = new Uint32Array(bars + 1);
  for (let row = 0; row < codes.length; row++) if ((fails[row] & others) === 0) counts[codes[row]]++;
  return withBelow(column, counts);
}

/** Mark the codes of the groups under those that are marked: `above[code - 1]` comes before it. */
export function markBelow({ above = [] }, marked) {
  above.forEach((group, code) => { if (group >= 0 && marked[group + 1]) marked[code + 1] = 1; });
  return marked;
}

function withValues(column, values) {
  const { names, codes } = column;
  const wanted = new Uint8Array(names.length + 1);
  for (const value of values) wanted[value === null ? 0 : value?.other ? names.length : names.indexOf(value) + 1 || names.length + 1] = 1; // beyond the end: ignored
  markBelow(column, wanted);
  const mask = new Uint8Array(codes.length);
  for (let row = 0; row < mask.length; row++) mask[row] = wanted[codes[row]];
  return mask;
}

function withinRange(values, low, high) {
  const mask = new Uint8Array(values.length);
  for (let row = 0; row < mask.length; row++) mask[row] = values[row] >= low && values[row] <= high ? 1 : 0;
  return mask;
}
