// What mouse, fingers and keys do on the map: move it, come nearer, draw a lasso or a box, open a point.

const STEP = 3; // pixels between two corners of a lasso
const SMALL = 5; // pixels below which a drag was a click
const NARROW = "(max-width: 700px)"; // as in style.css: the page is one column, and the map most of what is seen

/** Whether one finger should scroll the page past the map, instead of drawing on it, until a tool is chosen. */
export const onPhone = () => matchMedia(`${NARROW} and (pointer: coarse)`).matches;

export class Hand {
  /** Listen on an element; `acts` has moved(), hovered(place), clicked(place), drawing(line), drawn(outline, how), cleared(). */
  constructor(element, view, acts) {
    Object.assign(this, { element, view, acts, tool: "lasso", line: [], at: new Map() });
    for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel", "pointerleave", "dblclick", "wheel", "keydown"]) {
      element.addEventListener(kind, (event) => this[kind](event), { passive: false });
    }
  }

  place(event) {
    const box = this.element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  pointerdown(event) {
    if (event.button > 1) return;
    this.element.setPointerCapture(event.pointerId);
    this.at.set(event.pointerId, this.place(event));
    this.began = this.at.size > 1 ? null : this.place(event);
    this.moving = this.tool === "move" || event.button === 1 || this.at.size > 1;
    this.line = this.moving ? [] : [this.place(event)];
    this.acts.hovered(null);
  }

  pointermove(event) {
    const place = this.place(event), before = this.at.get(event.pointerId);
    if (!before) return this.acts.hovered(place);
    if (this.at.size > 1) this.pinch(event.pointerId, place);
    else if (this.moving) this.view.move(place[0] - before[0], place[1] - before[1]);
    this.at.set(event.pointerId, place);
    if (this.moving) return this.acts.moved();
    const last = this.line.at(-1);
    if (this.tool === "box") this.line = corners(this.line[0], place);
    else if (Math.hypot(place[0] - last[0], place[1] - last[1]) >= STEP) this.line.push(place);
    this.acts.drawing(this.line);
  }

  /** Two fingers: what lies between them stays there. */
  pinch(moved, place) {
    const [still] = [...this.at].filter(([id]) => id !== moved).map(([, other]) => other);
    const far = (one) => Math.hypot(one[0] - still[0], one[1] - still[1]);
    this.view.zoom(far(place) / Math.max(far(this.at.get(moved)), 1), still);
  }

  pointerup(event) {
    this.at.delete(event.pointerId);
    const line = this.line, place = this.place(event), began = this.began;
    this.line = [];
    this.acts.drawing([]);
    if (began && Math.hypot(place[0] - began[0], place[1] - began[1]) < SMALL && !(line.length > 2 && Math.max(...spread(line)) >= SMALL)) {
      return this.acts.clicked(place);
    }
    if (line.length < 3 || Math.max(...spread(line)) < SMALL) return;
    this.acts.drawn(line.map((at) => this.view.toMap(at)), event.altKey ? "both" : event.shiftKey ? "more" : "new");
  }

  pointercancel(event) {
    this.at.delete(event.pointerId);
    this.line = [];
    this.acts.drawing([]);
  }

  pointerleave() {
    this.acts.hovered(null);
  }

  /** Come nearer; the whole map has a button and the key 0. */
  dblclick(event) {
    this.view.zoom(event.shiftKey ? 0.5 : 2, this.place(event));
    this.acts.moved();
  }

  /** Zoom; in a narrow window only with Ctrl, as a touchpad's pinch has: the page must be able to scroll past the map. */
  wheel(event) {
    if (!event.ctrlKey && matchMedia(NARROW).matches) return;
    event.preventDefault();
    const lines = event.deltaMode ? 30 : 1;
    this.view.zoom(Math.exp(-Math.max(-120, Math.min(120, event.deltaY * lines)) / 400), this.place(event));
    this.acts.moved();
  }

  keydown(event) {
    const moves = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
    if (event.key in moves) this.view.move(...moves[event.key]);
    else if (event.key === "+" || event.key === "-") this.view.zoom(event.key === "+" ? 1.4 : 1 / 1.4);
    else if (event.key === "0") this.view.whole();
    else if (event.key === "Enter") return this.acts.clicked([this.view.width / 2, this.view.height / 2]);
    else if (event.key === "Escape") return this.acts.cleared();
    else return;
    event.preventDefault();
    this.acts.moved();
  }
}

function corners([left, top], [right, bottom]) {
  return [[left, top], [right, top], [right, bottom], [left, bottom]];
}

function spread(line) {
  return [0, 1].map((axis) => {
    const values = line.map((place) => place[axis]);
    return Math.max(...values) - Math.min(...values);
  });
}
