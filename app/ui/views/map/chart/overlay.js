// What lies over the points: hits and outlines on a canvas of their own, names of regions as text; and the shades below.

/** Draw outlines, hits, and the line that is being drawn now, in pixels. */
function drawOver(context, view, ratio, { outlines, hits, hit }, line) {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  for (const { x, y } of [...hits].reverse()) { // the best above the others
    context.beginPath();
    context.arc(...view.toScreen([x, y]), 5.5, 0, 2 * Math.PI);
    context.fillStyle = hit;
    context.fill();
    context.strokeStyle = "white";
    context.lineWidth = 1.2;
    context.stroke();
  }
  for (const outline of outlines) drawLine(context, outline.map((place) => view.toScreen(place)), hit, [6, 4]);
  drawLine(context, line, hit, []);
}

/** Draw a closed line, with a light one below it: it lies on points of any colour. */
function drawLine(context, line, color, dash) {
  if (line.length < 2) return;
  context.beginPath();
  line.forEach(([across, down], at) => (at ? context.lineTo(across, down) : context.moveTo(across, down)));
  context.closePath();
  for (const [style, width, dashes] of [["rgba(255, 255, 255, 0.8)", 4, []], [color, 2, dash]]) {
    [context.strokeStyle, context.lineWidth] = [style, width];
    context.setLineDash(dashes);
    context.stroke();
  }
  context.setLineDash([]);
}

/** Draw how many documents lie where: `shades` from 0 to 1, row by row from below, over the whole of `bounds`. */
function drawBelow(context, view, ratio, density) {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  if (!density) return;
  const { bounds: [left, low, right, high], columns, rows, shades, color } = density;
  const cell = [((right - left) / columns) * view.scale, ((high - low) / rows) * view.scale];
  context.fillStyle = color;
  shades.forEach((shade, at) => {
    if (!shade) return;
    const column = at % columns, row = Math.floor(at / columns);
    const place = [left + (column * (right - left)) / columns, low + ((row + 1) * (high - low)) / rows];
    const [across, down] = view.toScreen(place);
    context.globalAlpha = shade;
    context.fillRect(Math.floor(across), Math.floor(down), Math.ceil(cell[0]) + 1, Math.ceil(cell[1]) + 1);
  });
  context.globalAlpha = 1;
}

/** Put names where their regions lie; the largest first, none over another or beyond the edge. */
function placeNames(elements, view) {
  const taken = [];
  for (const { element, x, y, width, height } of elements) {
    const [across, down] = view.toScreen([x, y]);
    const box = [across - width / 2, down - height / 2, across + width / 2, down + height / 2];
    const seen = across > 0 && down > 0 && across < view.width && down < view.height;
    const free = seen && taken.every((other) => box[2] < other[0] || other[2] < box[0] || box[3] < other[1] || other[3] < box[1]);
    element.style.visibility = free ? "visible" : "hidden";
    if (!free) continue;
    taken.push(box);
    const left = Math.min(Math.max(box[0], 2), Math.max(view.width - width - 2, 2));
    element.style.transform = `translate(${left}px, ${box[1]}px)`;
  }
}
