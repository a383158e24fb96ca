// The table of a collection's documents, out of one buffer: pipelines/facets packs it (see docs/decisions/0051).

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int32: Int32Array, uint16: Uint16Array, uint8: Uint8Array, uint32: Uint32Array,
};
const BINS = 40; // of a histogram, at most
const WHOLE = 40; // integers up to this far apart have a bin each

/** Read a packed table. Every column gets `codes`, Uint16Array [rows]: 0 for none, else 1 + its value's bar; its rows by code
 * in `own`; and in `totals` those rows and the ones of the groups below. */
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  if (header.version !== 1) throw new Error(`This page cannot read version ${header.version} of the table. Reload it.`);
  const arrays = Object.fromEntries(header.arrays.map(({ name, type, length: size, offset }) => {
    return [name, new ARRAYS[type](buffer, offset, size)];
  }));
  const columns = header.columns.filter(({ same }) => !same).map((column) => withCodes(column, arrays[column.array]));
  const byName = new Map(columns.map((column) => [column.name, column]));
  for (const { name, same } of header.columns) if (same) byName.set(name, byName.get(same)); // an address may name either
  return {
    name: header.collection ?? "", map: header.map ?? "", rows: header.rows, x: arrays.x, y: arrays.y, columns, regions: header.regions ?? [],
    bounds: header.bounds, byName,
  };
}

function withCodes(column, values) {
  const found = { ...column, values, title: column.title ?? column.name };
  if (column.kind === "class") {
    found.bars = column.names.length;
    found.codes = new Uint16Array(values.length);
    for (let row = 0; row < values.length; row++) found.codes[row] = values[row] + 1;
  } else {
    Object.assign(found, binsOf(found, values));
    found.codes = binned(values, found.low, found.width, found.bars);
  }
  found.own = countsOf(found.codes, found.bars);
  found.totals = withBelow(found, found.own.slice());
  return found;
}

/** Add to the counts of each group those of the groups under it; `above` has the code of the group above each, -1 for none. */
export function withBelow({ above = [] }, counts) {
  for (let code = above.length - 1; code >= 0; code--) if (above[code] >= 0) counts[above[code] + 1] += counts[code + 1];
  return counts;
}

/** Return where bins begin and how wide they are: one for each integer where these are few. */
function binsOf({ low, high }, values) {
  if (low == null || high == null) [low, high] = ends(values);
  const whole = allWhole(values);
  if (whole && high - low < WHOLE) return { low, high, whole, width: 1, bars: high - low + 1 };
  const width = whole ? Math.ceil((high - low + 1) / BINS) : (high - low) / BINS || 1;
  return { low, high, whole, width, bars: Math.max(1, whole ? Math.ceil((high - low + 1) / width) : BINS) };
}

function allWhole(values) {
  for (let row = 0; row < values.length; row++) if (values[row] === values[row] && values[row] !== Math.floor(values[row])) return false;
  return true;
}

function ends(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 0];
}

function binned(values, low, width, bars) {
  const codes = new Uint16Array(values.length);
  for (let row = 0; row < values.length; row++) {
    const value = values[row];
    if (value !== value) continue;
    const bar = ((value - low) / width) | 0;
    codes[row] = bar < bars ? bar + 1 : bars;
  }
  return codes;
}

function countsOf(codes, bars) {
  const counts = new Uint32Array(bars + 1);
  for (let row = 0; row < codes.length; row++) counts[codes[row]]++;
  return counts;
}

/** Return how a value is written; `null` for none. */
export function written(column, value) {
  if (value === null) return "none";
  if (value === undefined || value !== value) return "";
  if (column.kind === "date") return new Date(value * 86_400_000).toISOString().slice(0, 10);
  if (column.kind === "number") return Number(value.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 6, useGrouping: Math.abs(value) >= 10_000 });
  return String(value);
}

/** Return the value of a row: a name, a number, or null for none. */
export function valueOf(column, row) {
  const value = column.values[row];
  if (column.kind === "class") return value < 0 ? null : column.names[value];
  return Number.isNaN(value) ? null : value;
}
