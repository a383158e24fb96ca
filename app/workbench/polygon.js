// Which points lie inside outlines, by the even-odd rule, as `inside` in pipelines/map/regions.py.

const SLABS = 512; // bands of equal height; a point looks only at the edges that cross its band

/** Return Uint8Array [n]: 1 for points inside one of the outlines; `xs` and `ys` hold n numbers each. */
export function insideOutlines(xs, ys, outlines) {
  const found = new Uint8Array(xs.length);
  for (const outline of outlines) if (outline.length > 2) markInside(xs, ys, outline, found);
  return found;
}

function markInside(xs, ys, outline, found) {
  const across = outline.map(([x]) => x), up = outline.map(([, y]) => y);
  const [left, right] = [Math.min(...across), Math.max(...across)], [low, high] = [Math.min(...up), Math.max(...up)];
  const slabs = bands(outline, low, high), step = SLABS / Math.max(high - low, 1e-300);
  for (let point = 0; point < xs.length; point++) {
    const x = xs[point], y = ys[point];
    if (!(x >= left && x <= right && y >= low && y <= high) || found[point]) continue;
    const edges = slabs[Math.min(Math.floor((y - low) * step), SLABS - 1)];
    let odd = 0;
    for (let at = 0; at < edges.length; at += 4) {
      const y1 = edges[at + 1], y2 = edges[at + 3];
      if (y1 > y !== y2 > y && x < ((edges[at + 2] - edges[at]) * (y - y1)) / (y2 - y1) + edges[at]) odd ^= 1;
    }
    found[point] = odd;
  }
}

/** Return for each band the edges that touch it: x1, y1, x2, y2 of one after the other. */
function bands(outline, low, high) {
  const step = SLABS / Math.max(high - low, 1e-300), slabs = Array.from({ length: SLABS }, () => []);
  const band = (y) => Math.min(Math.max(Math.floor((y - low) * step), 0), SLABS - 1);
  outline.forEach(([x1, y1], at) => {
    const [x2, y2] = outline[(at + 1) % outline.length];
    if (y1 === y2) return;
    const [first, last] = [band(Math.min(y1, y2)), band(Math.max(y1, y2))];
    for (let slab = Math.max(first - 1, 0); slab <= Math.min(last + 1, SLABS - 1); slab++) slabs[slab].push(x1, y1, x2, y2);
  });
  return slabs.map((edges) => Float64Array.from(edges));
}

/** Return an outline with at most `most` corners and six digits: what is in the address is what is computed with. */
export function simplified(outline, most = 200) {
  const step = Math.ceil(outline.length / most);
  return outline.filter((_, at) => at % step === 0).map((place) => place.map((value) => Number(value.toPrecision(6))));
}
