// All points of a map as pixels, computed on the CPU: no GPU is needed, and each point is drawn exactly.
//
// Two layers are summed up: lit points with their colours, and dimmed ones, which are only counted. Where points overlap,
// a pixel shows their mean colour, and the more there are, the stronger it is: so a crowd shows its density.

const ALPHAS = 2048; // entries of the table from how many points to how strong

export class Raster {
  constructor() {
    [this.width, this.height] = [0, 0];
  }

  /** Take another size in pixels. */
  resize(width, height) {
    if (width === this.width && height === this.height) return;
    [this.width, this.height] = [width, height];
    this.sums = new Float32Array(4 * width * height); // red, green, blue, points
    this.dims = new Float32Array(width * height);
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  /** Forget what was drawn. */
  clear() {
    this.sums.fill(0);
    this.dims.fill(0);
  }

  /** Add lit points from `begin` to `end`; `to` has the factor and the offsets from places to pixels. */
  light({ xs, ys, codes }, { reds, greens, blues }, to, { offsets, weights, edge }, begin, end) {
    const { sums, width } = this, [right, bottom] = [width - edge, this.height - edge], { scale, across, down } = to;
    for (let point = begin; point < end; point++) {
      const x = Math.floor(xs[point] * scale + across), y = Math.floor(down - ys[point] * scale);
      if (!(x >= edge && y >= edge && x < right && y < bottom)) continue;
      const at = y * width + x, code = codes[point], red = reds[code], green = greens[code], blue = blues[code];
      for (let step = 0; step < offsets.length; step++) {
        const pixel = 4 * (at + offsets[step]), weight = weights[step];
        sums[pixel] += red * weight;
        sums[pixel + 1] += green * weight;
        sums[pixel + 2] += blue * weight;
        sums[pixel + 3] += weight;
      }
    }
  }

  /** Add dimmed points from `begin` to `end`. */
  dim({ xs, ys }, { scale, across, down }, { offsets, weights, edge }, begin, end) {
    const { dims, width } = this, [right, bottom] = [width - edge, this.height - edge];
    for (let point = begin; point < end; point++) {
      const x = Math.floor(xs[point] * scale + across), y = Math.floor(down - ys[point] * scale);
      if (!(x >= edge && y >= edge && x < right && y < bottom)) continue;
      for (let step = 0; step < offsets.length; step++) dims[y * width + x + offsets[step]] += weights[step];
    }
  }

  /** Turn the sums into an image: `least` is how strong a single lit point is, `grey` the [r, g, b] of dimmed ones. */
  develop(least, grey, dimmed) {
    const { sums, dims, pixels } = this, strong = alphas(least, this.peak()), weak = alphas(dimmed, 64, 2 * dimmed);
    const [red, green, blue] = grey;
    for (let at = 0; at < pixels.length; at++) {
      const many = sums[4 * at + 3], others = dims[at];
      if (many === 0 && others === 0) {
        pixels[at] = 0;
        continue;
      }
      const above = many && strong.table[Math.min((many * strong.step) | 0, ALPHAS - 1)];
      const below = others && (1 - above) * weak.table[Math.min((others * weak.step) | 0, ALPHAS - 1)], all = above + below || 1;
      const share = many ? above / many / all : 0, rest = below / all;
      pixels[at] = (Math.round(255 * (above + below)) << 24 | (sums[4 * at + 2] * share + blue * rest) << 16
        | (sums[4 * at + 1] * share + green * rest) << 8 | (sums[4 * at] * share + red * rest)) >>> 0;
    }
    return this.image;
  }

  /** Return how many lit points lie on the fullest of some pixels. */
  peak() {
    let most = 1;
    for (let at = 3; at < this.sums.length; at += 12) if (this.sums[at] > most) most = this.sums[at];
    return most;
  }

  /** Return whether a lit point was drawn in a rectangle of pixels. */
  litIn(left, top, right, bottom) {
    const last = Math.min(right, this.width - 1);
    for (let y = Math.max(top, 0); y <= Math.min(bottom, this.height - 1); y++) {
      for (let x = Math.max(left, 0); x <= last; x++) if (this.sums[4 * (y * this.width + x) + 3] > 0) return true;
    }
    return false;
  }
}

/** Return a table from points on a pixel to how strong it is: `least` for one, `full` for as many as there are at most. */
function alphas(least, most, full = 1) {
  const step = Math.min(8, (ALPHAS - 1) / most), steps = Math.log2(Math.max(most, 2));
  const table = Float32Array.from({ length: ALPHAS }, (_, at) => {
    const many = (at + 0.5) / step;
    return many <= 1 ? Math.min(least * (at ? many + 0.5 / step : 0.5), full) : Math.min(least + ((full - least) * Math.log2(many)) / steps, full);
  });
  return { table, step };
}

/** Return the pixels of a point of this diameter on a canvas of this width: squares below 3 pixels, else round. */
export function stampOf(diameter, width) {
  const offsets = [], weights = [], radius = diameter / 2, reach = diameter < 1.5 ? 0 : Math.ceil(radius);
  const from = diameter < 2.5 ? 0 : -reach, until = diameter < 1.5 ? 0 : diameter < 2.5 ? 1 : reach;
  for (let y = from; y <= until; y++) {
    for (let x = from; x <= until; x++) {
      const inside = diameter < 2.5 ? 1 : Math.min(Math.max(radius + 0.5 - Math.hypot(x, y), 0), 1);
      if (inside > 0) (offsets.push(y * width + x), weights.push(inside));
    }
  }
  return { offsets: Int32Array.from(offsets), weights: Float32Array.from(weights), edge: reach };
}

/** Return colours as three arrays, out of "#rrggbb". */
export function paletteOf(colors) {
  const channel = (at) => Float32Array.from(colors, (color) => parseInt(color.slice(at, at + 2), 16));
  return { reds: channel(1), greens: channel(3), blues: channel(5) };
}
