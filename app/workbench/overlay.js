// What lies over the points: outlines on a canvas, and names of regions as text that hides no selected point.

/** Draw outlines, and the line that is being drawn now, in pixels. */
export function drawOver(context, view, ratio, { outlines, line, ring, color }) {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  for (const outline of outlines) drawLine(context, outline.map((place) => view.toScreen(place)), color, [6, 4]);
  drawLine(context, line, color, []);
  if (ring) drawRing(context, view.toScreen(ring), color);
}

/** Draw a closed line, with a light one below it: it lies on points of any colour. */
function drawLine(context, line, color, dash) {
  if (line.length < 2) return;
  context.beginPath();
  line.forEach(([across, down], at) => (at ? context.lineTo(across, down) : context.moveTo(across, down)));
  context.closePath();
  stroke(context, color, dash);
}

function drawRing(context, [across, down], color) {
  context.beginPath();
  context.arc(across, down, 8, 0, 2 * Math.PI);
  stroke(context, color, []);
}

function stroke(context, color, dash) {
  for (const [style, width, dashes] of [["rgba(255, 255, 255, 0.8)", 4, []], [color, 2, dash]]) {
    [context.strokeStyle, context.lineWidth] = [style, width];
    context.setLineDash(dashes);
    context.stroke();
  }
  context.setLineDash([]);
}

const LONGEST = 34; // characters of a name

export class Names {
  /** `element` holds the names; `regions` are {x, y, name, level, size}. */
  constructor(element, regions) {
    this.regions = [...regions].sort((one, other) => one.level - other.level || other.size - one.size);
    element.replaceChildren(...this.regions.map(({ name, level }) => {
      const made = document.createElement("span");
      made.textContent = name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
      made.dir = "auto";
      made.className = `wb-level${Math.min(level, 3)}`;
      return made;
    }));
    this.spans = [...element.children];
    this.sizes = null;
  }

  /** Put names where their regions lie, the coarse levels first, and beside what is `taken`; finer ones come with the zoom. */
  place(view, shown, covered, taken) {
    this.sizes ??= this.spans.map((span) => [span.offsetWidth, span.offsetHeight]);
    this.regions.forEach(({ x, y, level }, at) => {
      const span = this.spans[at], [width, height] = this.sizes[at], [across, down] = view.toScreen([x, y]);
      const seen = shown && across > 0 && down > 0 && across < view.width && down < view.height && view.zoomed >= from(level);
      const box = seen && steps(height).map((step) => around(across, down + step, width, height, view)).find((one) => {
        return taken.every((other) => apart(one, other)) && !covered(one);
      });
      span.style.visibility = box ? "visible" : "hidden";
      if (!box) return;
      taken.push(box);
      span.style.transform = `translate(${box[0]}px, ${box[1]}px)`;
    });
  }
}

/** Return from which zoom a level is shown: 1, 1.8, 3.6, … */
function from(level) {
  return level <= 1 ? 0 : 1.8 * 2 ** (level - 2);
}

/** Return how far a name may move up and down to get out of the way. */
function steps(height) {
  return [0, -height - 2, height + 2, -2 * height - 4, 2 * height + 4];
}

function around(across, down, width, height, view) {
  const left = Math.min(Math.max(across - width / 2, 2), Math.max(view.width - width - 2, 2));
  return [left, down - height / 2, left + width, down + height / 2];
}

function apart(one, other) {
  return one[2] < other[0] || other[2] < one[0] || one[3] < other[1] || other[3] < one[1];
}
