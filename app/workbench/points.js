// The points of the map in a random order, so that the first of them are a fair sample, with the code of each colour.

export const SCALE = [
  "#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725",
]; // viridis, from the least number to the greatest
const STEPS = 64;
export const NONE = { light: "#b9bcc4", dark: "#5a5f6a" };
const PLAIN = { light: "#0f6e84", dark: "#4fb8d0" };

export class Points {
  constructor({ x, y }) {
    const rows = shuffled(x);
    this.all = { rows, xs: taken(x, rows), ys: taken(y, rows) };
    this.count = this.lit = rows.length; // the first `lit` points are selected
    [this.rows, this.xs, this.ys] = [rows.slice(), this.all.xs.slice(), this.all.ys.slice()];
    this.codes = new Uint16Array(rows.length);
  }

  /** Put the selected rows first; both halves keep their random order. */
  select(lit) {
    const { rows, xs, ys } = this.all;
    this.lit = 0;
    for (let at = 0; at < this.count; at++) this.lit += lit[rows[at]];
    for (let at = 0, first = 0, then = this.lit; at < this.count; at++) {
      const to = lit[rows[at]] ? first++ : then++;
      this.rows[to] = rows[at];
      this.xs[to] = xs[at];
      this.ys[to] = ys[at];
    }
  }

  /** Take a column's colours; without one, all points have the same. Return the palette as "#rrggbb". */
  color(column, theme) {
    const { rows, codes } = this;
    if (!column) {
      codes.fill(0);
      return [PLAIN[theme]];
    }
    if (column.kind === "class") {
      for (let at = 0; at < rows.length; at++) codes[at] = column.codes[rows[at]];
      return [NONE[theme], ...column.colors[theme]];
    }
    const { values, low, high } = column, step = (STEPS - 1) / (high - low || 1);
    for (let at = 0; at < rows.length; at++) {
      const value = values[rows[at]];
      codes[at] = value === value ? 1 + Math.round((value - low) * step) : 0;
    }
    return [NONE[theme], ...Array.from({ length: STEPS }, (_, at) => scaled(at / (STEPS - 1)))];
  }
}

function taken(values, rows) {
  const found = new Float32Array(rows.length);
  for (let at = 0; at < rows.length; at++) found[at] = values[rows[at]];
  return found;
}

/** Return the rows that have a place, in an order that is random and always the same. */
function shuffled(x) {
  const rows = new Uint32Array(x.length);
  let count = 0, seed = 123456789;
  for (let row = 0; row < x.length; row++) if (x[row] === x[row]) rows[count++] = row;
  for (let last = count - 1; last > 0; last--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const other = Math.floor((seed / 2 ** 32) * (last + 1)), kept = rows[last];
    rows[last] = rows[other];
    rows[other] = kept;
  }
  return rows.subarray(0, count);
}

function scaled(share) {
  const place = share * (SCALE.length - 1), at = Math.min(Math.floor(place), SCALE.length - 2), part = place - at;
  const mixed = [1, 3, 5].map((from) => {
    const [low, high] = [SCALE[at], SCALE[at + 1]].map((color) => parseInt(color.slice(from, from + 2), 16));
    return Math.round(low + (high - low) * part).toString(16).padStart(2, "0");
  });
  return `#${mixed.join("")}`;
}
