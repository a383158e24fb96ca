// Which part of the map is seen: the middle of the canvas lies at (x, y) of the map, a unit is `scale` pixels, y points up.

const TOP = 42; // pixels at the top where the tools lie: the whole map begins below them
const ROOM = 1.08; // around the points, as a share of what they take
const EDGE = 8; // pixels between the points and an edge, where they make room for the legend
const NEAREST = 20_000; // times the whole map

export class View {
  constructor([left, low, right, high]) {
    this.bounds = [left, low, right, high];
    [this.width, this.height, this.aside] = [1, 1, 0]; // aside: pixels for the legend, at the left where negative
    this.whole();
  }

  /** Show all of it. */
  whole() {
    const [left, low, right, high] = this.bounds;
    const across = Math.max(right - left, 1e-6), up = Math.max(high - low, 1e-6);
    this.least = Math.min(this.width / across, Math.max(this.height - TOP, 1) / up) / ROOM;
    this.scale = this.least;
    [this.x, this.y] = this.middle;
  }

  /** Take another size in pixels; what was in the middle stays there. */
  resize(width, height) {
    if (width === this.width && height === this.height) return;
    const { x, y, least, scale } = this, whole = !this.write();
    [this.width, this.height] = [width, height];
    this.whole();
    if (!whole) [this.x, this.y, this.scale] = [x, y, (scale / least) * this.least];
  }

  /** Return the text that an address holds, "" for the whole map; `read` takes it back. */
  write() {
    if (Math.abs(this.zoomed - 1) < 1e-3 && this.centred) return "";
    return [this.x.toPrecision(6), this.y.toPrecision(6), this.zoomed.toPrecision(4)].map(Number).join(",");
  }

  read(text) {
    const [x, y, zoomed] = (text || "").split(",").map(Number);
    this.whole();
    if ([x, y, zoomed].every(Number.isFinite) && zoomed > 0) [this.x, this.y, this.scale] = [x, y, zoomed * this.least];
  }

  get centred() {
    const [x, y] = this.middle;
    return Math.hypot(this.x - x, this.y - y) * this.scale < 2;
  }

  /** What lies in the middle of the canvas where all of the map is shown. */
  get middle() {
    const [left, low, right, high] = this.bounds;
    const free = Math.max((this.width - (right - left) * this.least) / 2 - EDGE, 0);
    const shift = Math.sign(this.aside) * Math.min(free, Math.abs(this.aside) / 2);
    return [(left + right) / 2 + shift / this.least, (low + high) / 2 + TOP / 2 / this.least];
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
