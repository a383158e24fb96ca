// Which part of the map is seen: the middle of the canvas lies at (x, y) of the map, a unit is `scale` pixels, y points up.

const ROOM = 1.08; // around the points, as a share of what they take
const NEAREST = 4000; // times the whole map

class View {
  constructor([left, low, right, high]) {
    this.bounds = [left, low, right, high];
    [this.width, this.height] = [1, 1];
    this.whole();
  }

  /** Show all of it. */
  whole() {
    const [left, low, right, high] = this.bounds;
    [this.x, this.y] = [(left + right) / 2, (low + high) / 2];
    const across = Math.max(right - left, 1e-6), up = Math.max(high - low, 1e-6);
    this.least = Math.min(this.width / across, this.height / up) / ROOM;
    this.scale = this.least;
  }

  /** Take another size in pixels; what was in the middle stays there. */
  resize(width, height) {
    if (width === this.width && height === this.height) return;
    const { x, y, least, scale } = this;
    [this.width, this.height] = [width, height];
    this.whole();
    [this.x, this.y, this.scale] = [x, y, (scale / least) * this.least];
  }

  get zoomed() {
    return this.scale / this.least;
  }

  toScreen([x, y]) {
    return [(x - this.x) * this.scale + this.width / 2, this.height / 2 - (y - this.y) * this.scale];
  }

  toMap([across, down]) {
    return [(across - this.width / 2) / this.scale + this.x, (this.height / 2 - down) / this.scale + this.y];
  }

  /** Move by pixels. */
  move(across, down) {
    this.x -= across / this.scale;
    this.y += down / this.scale;
  }

  /** Come nearer by a factor, or go away below 1; what lies at a place of the screen stays there. */
  zoom(factor, place = [this.width / 2, this.height / 2]) {
    const fixed = this.toMap(place);
    this.scale = Math.min(Math.max(this.scale * factor, this.least / 2), this.least * NEAREST);
    const moved = this.toMap(place);
    this.x += fixed[0] - moved[0];
    this.y += fixed[1] - moved[1];
  }
}
