// The point nearest to the mouse: points are sorted into the cells of a grid once, and a look takes the cells around.

const CELLS = 256; // across and up

export class Near {
  /** `xs` and `ys` are the places, NaN for a point that lies nowhere; `bounds` hold all others. */
  constructor(xs, ys, [left, low, right, high]) {
    [this.xs, this.ys] = [xs, ys];
    [this.left, this.low] = [left, low];
    [this.across, this.up] = [CELLS / Math.max(right - left, 1e-6), CELLS / Math.max(high - low, 1e-6)];
    const cells = new Uint32Array(xs.length);
    this.ends = new Uint32Array(CELLS * CELLS + 1);
    for (let point = 0; point < cells.length; point++) {
      cells[point] = this.row(ys[point]) * CELLS + this.column(xs[point]); // NaN becomes cell 0, and is never near
      this.ends[cells[point] + 1]++;
    }
    for (let cell = 0; cell < CELLS * CELLS; cell++) this.ends[cell + 1] += this.ends[cell];
    const free = this.ends.slice();
    this.sorted = new Uint32Array(cells.length);
    for (let point = 0; point < cells.length; point++) this.sorted[free[cells[point]]++] = point;
  }

  column(x) {
    return Math.min(Math.max(Math.floor((x - this.left) * this.across), 0), CELLS - 1) || 0;
  }

  row(y) {
    return Math.min(Math.max(Math.floor((y - this.low) * this.up), 0), CELLS - 1) || 0;
  }

  /** Return the nearest point within a distance that `fits` accepts, or -1; of two at one place, the later one. */
  find([x, y], distance, fits = () => true) {
    let nearest = -1, least = distance * distance;
    const last = this.column(x + distance);
    for (let row = this.row(y - distance); row <= this.row(y + distance); row++) {
      for (let cell = row * CELLS + this.column(x - distance); cell <= row * CELLS + last; cell++) {
        for (let at = this.ends[cell]; at < this.ends[cell + 1]; at++) {
          const point = this.sorted[at];
          const far = (this.xs[point] - x) ** 2 + (this.ys[point] - y) ** 2;
          if (far <= least && fits(point)) [nearest, least] = [point, far];
        }
      }
    }
    return nearest;
  }
}
