// The map on the page: takes what `mount.py` sends, draws it, and says which outlines a person drew.

const REACH = 8; // pixels between the mouse and a point that it shows
const GROWS = 0.3; // points grow with this power of the zoom
const LARGEST = 12;

class Chart {
  constructor(root) {
    this.root = root.querySelector(".chart");
    [this.below, this.canvas, this.over] = this.root.querySelectorAll("canvas");
    [this.tip, this.labels] = [this.root.querySelector(".tip"), this.root.querySelector(".names")];
    this.points = new Points(this.canvas);
    this.canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    this.canvas.addEventListener("webglcontextrestored", () => (this.points.build(), this.draw()));
    this.view = new View([0, 0, 1, 1]);
    this.hand = new Hand(this.root.querySelector(".surface"), this.view, {
      moved: () => (this.hover(null), this.draw()),
      hovered: (place) => this.hover(place),
      drawing: (line) => this.draw(line),
      drawn: (outline, more) => this.select([...(more ? this.data.outlines : []), outline]),
      cleared: () => this.select([]),
    });
    for (const button of this.root.querySelectorAll("button")) button.onclick = () => this.use(button.value);
    this.use("lasso");
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.root);
  }

  /** Take a tool in hand, or show the whole map, on the whole screen or not. */
  use(tool) {
    if (tool === "whole") return this.hand.dblclick();
    if (tool === "screen") return document.fullscreenElement ? document.exitFullscreen() : this.root.requestFullscreen();
    this.hand.tool = tool;
    this.root.dataset.tool = tool;
    for (const button of this.root.querySelectorAll("button")) button.setAttribute("aria-pressed", button.value === tool);
  }

  /** Draw what Python sent. */
  update(data, say) {
    [this.data, this.say] = [data, say];
    const column = (name) => data.points.getChild(name).toArray(), [x, y, colors] = ["x", "y", "color"].map(column);
    this.places = new Float32Array(2 * x.length);
    for (let point = 0; point < x.length; point++) [this.places[2 * point], this.places[2 * point + 1]] = [x[point], y[point]];
    this.points.load(this.places, new Uint8Array(colors.buffer, colors.byteOffset, colors.byteLength));
    this.near = null;
    if (String(this.view.bounds) !== String(data.bounds)) {
      this.view.bounds = data.bounds;
      this.view.whole();
    }
    this.name(data.names);
    this.draw();
  }

  name(names) {
    this.labels.replaceChildren(...names.map(({ text, level }) => {
      const element = document.createElement("span");
      element.textContent = text;
      element.className = level === 1 ? "large" : "small";
      return element;
    }));
    this.named = [...this.labels.children].map((element, at) => {
      return { element, x: names[at].x, y: names[at].y, width: element.offsetWidth, height: element.offsetHeight };
    });
  }

  /** Draw in the next frame; the line is what is being drawn now. */
  draw(line = []) {
    this.line = line;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (this.data && this.root.clientWidth) this.paint();
    });
  }

  paint() {
    const ratio = window.devicePixelRatio, { view, data } = this;
    view.resize(this.root.clientWidth, this.root.clientHeight);
    for (const canvas of [this.below, this.canvas, this.over]) {
      const [width, height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
      if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    }
    const size = Math.min(data.size * Math.max(view.zoomed, 1) ** GROWS, LARGEST);
    drawBelow(this.below.getContext("2d"), view, ratio, data.density);
    this.points.draw(view, size, data.opacity, ratio);
    drawOver(this.over.getContext("2d"), view, ratio, data, this.line);
    placeNames(this.named, view);
    this.root.dataset.drawn = this.points.count;
  }

  /** Show title and beginning of the text of a hit or a point near a place of the screen. */
  hover(place) {
    const found = place && (this.hitNear(place) ?? this.pointNear(place));
    this.tip.hidden = !found;
    if (!found) return;
    [this.tip.firstElementChild.textContent, this.tip.lastElementChild.textContent] = [found.title, found.text];
    const [across, down] = this.view.toScreen([found.x, found.y]);
    const left = Math.min(Math.max(across + 12, 4), this.view.width - this.tip.offsetWidth - 4);
    const fits = down + 12 + this.tip.offsetHeight < this.view.height;
    this.tip.style.transform = `translate(${left}px, ${fits ? down + 12 : down - 12 - this.tip.offsetHeight}px)`;
  }

  hitNear(place) {
    const far = (hit) => Math.hypot(...this.view.toScreen([hit.x, hit.y]).map((at, axis) => at - place[axis]));
    return this.data.hits.find((hit) => far(hit) < REACH);
  }

  pointNear(place) {
    this.near ??= new Near(this.places, this.data.bounds);
    const point = this.near.find(this.view.toMap(place), REACH / this.view.scale);
    if (point < 0) return null;
    const [title, text] = ["title", "text"].map((name) => this.data.points.getChild(name).get(point));
    return { title, text, x: this.places[2 * point], y: this.places[2 * point + 1] };
  }

  select(outlines) {
    this.data.outlines = outlines;
    this.draw();
    this.say("outlines", outlines);
  }

  close() {
    this.watch.disconnect();
    this.points.close();
  }
}

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".chart");
  try {
    root.made ??= new Chart(parentElement);
    root.made.update(data, setStateValue);
  } catch (error) {
    root.textContent = error.message;
  }
  return () => {
    root.made?.close();
    root.made = null;
  };
}
