// The order of the rows by a column, for the table: values ascending or descending, rows without a value last.

/** Return the column and the direction that a state names, null for none: "stars" ascends, "-stars" descends. */
export function readSort(text, { byName }) {
  if (!text) return null;
  if (byName.has(text)) return { column: byName.get(text), down: false };
  const column = text.startsWith("-") ? byName.get(text.slice(1)) : null;
  return column ? { column, down: true } : null;
}

/** Return the state after a click on the heading of a column: ascending, then descending, then as before. */
export function nextSort(text, name, table) {
  const now = readSort(text, table);
  if (now?.column !== table.byName.get(name)) return name;
  return now.down ? "" : `-${name}`;
}

/** Orders of all rows, kept: a selection then only leaves rows out. Equal values stay in the order of the rows. */
export class Orders {
  constructor(table) {
    Object.assign(this, { rows: table.rows, kept: new Map() });
  }

  of({ column, down }) {
    const key = `${down ? "-" : "+"}${column.name}`;
    if (!this.kept.has(key)) this.kept.set(key, ordered(column, down, this.rows));
    return this.kept.get(key);
  }
}

function ordered(column, down, rows) {
  const [keys, none] = column.kind === "class" ? namePlaces(column) : [column.values, NaN];
  const known = [], without = [];
  for (let row = 0; row < rows; row++) (keys[row] !== keys[row] || keys[row] === none ? without : known).push(row);
  const sorted = Uint32Array.from(known).sort(down ? (a, b) => keys[b] - keys[a] || a - b : (a, b) => keys[a] - keys[b] || a - b);
  const order = new Uint32Array(rows);
  order.set(sorted);
  order.set(without, sorted.length);
  return order;
}

/** Return the place of each row's name in the alphabet, and the place that means none. */
function namePlaces({ names, values }) {
  const compare = new Intl.Collator("en", { numeric: true }).compare, place = new Int32Array(names.length);
  names.map((_, code) => code).sort((a, b) => compare(names[a], names[b])).forEach((code, at) => { place[code] = at; });
  return [Int32Array.from(values, (code) => (code < 0 ? -1 : place[code])), -1];
}
