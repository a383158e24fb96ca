// The point nearest to the mouse: points are sorted into the cells of a grid once, and a look takes the cells around.

const CELLS = 256; // across and up

class Near {
  /** `places` float32, x and y of one point after the other; `bounds` hold all of them. */
  constructor(places, [left, low, right, high]) {
    this.places = places;
    [this.left, this.low] = [left, low];
    [this.across, this.up] = [CELLS / Math.max(right - left, 1e-6), CELLS / Math.max(high - low, 1e-6)];
    const cells = new Uint32Array(places.length / 2);
    this.ends = new Uint32Array(CELLS * CELLS + 1);
    for (let point = 0; point < cells.length; point++) {
      cells[point] = this.row(places[2 * point + 1]) * CELLS + this.column(places[2 * point]);
      this.ends[cells[point] + 1]++;
    }
    for (let cell = 0; cell < CELLS * CELLS; cell++) this.ends[cell + 1] += this.ends[cell];
    const free = this.ends.slice();
    this.sorted = new Uint32Array(cells.length);
    for (let point = 0; point < cells.length; point++) this.sorted[free[cells[point]]++] = point;
  }

  column(x) {
    return Math.min(Math.max(Math.floor((x - this.left) * this.across), 0), CELLS - 1);
  }

  row(y) {
    return Math.min(Math.max(Math.floor((y - this.low) * this.up), 0), CELLS - 1);
  }

  /** Return the number of the nearest point within a distance, or -1; of two at one place, the one drawn last. */
  find([x, y], distance) {
    let nearest = -1, least = distance * distance;
    const last = this.column(x + distance);
    for (let row = this.row(y - distance); row <= this.row(y + distance); row++) {
      for (let cell = row * CELLS + this.column(x - distance); cell <= row * CELLS + last; cell++) {
        for (let at = this.ends[cell]; at < this.ends[cell + 1]; at++) {
          const point = this.sorted[at];
          const far = (this.places[2 * point] - x) ** 2 + (this.places[2 * point + 1] - y) ** 2;
          if (far <= least) [nearest, least] = [point, far];
        }
      }
    }
    return nearest;
  }
}
