// The legend of the map's colours: it stays while a selection dims points, and a click isolates a group.

import { leftOut, valueOfCode } from "./bars.js";
import { counted, make, refill } from "./dom.js";
import { SCALE } from "./points.js";
import { written } from "./table.js";

const GAP = 6; // pixels between the legend and the edges of the map
const WIDEST = 230; // pixels, as in style.css: the map makes room for any legend, so that it does not move with its colours

export class Legend {
  /** `pick(column, value, more)` is called with the value of a group. */
  constructor(pick) {
    this.pick = pick;
    this.list = make("ul.keys");
    this.title = make("span.keytitle");
    this.fold = make("button.link", { type: "button", "aria-expanded": "true", onclick: () => this.toggle() }, "Hide");
    this.element = make("div.legend", { role: "group", "aria-label": "Legend" }, make("div.keyhead", {}, this.title, this.fold), this.list);
  }

  toggle() {
    this.list.hidden = !this.list.hidden;
    this.fold.textContent = this.list.hidden ? "Show" : "Hide";
    this.fold.setAttribute("aria-expanded", !this.list.hidden);
  }

  /** Show a column's groups with the number of selected documents, or its scale. */
  show(column, counts, chosen, theme, excluded) {
    this.element.hidden = !column;
    if (!column) return;
    this.title.textContent = column.title;
    refill(this.list, column.kind === "class" ? this.groups(column, counts, chosen, theme, excluded) : [scale(column)]);
  }

  /** Lie at the side where fewer points are under it while the whole map is shown, and let the points make room. */
  settle(map, name) {
    const { table, view } = map;
    const key = [name, view.width, view.height].join();
    if (key === this.settled || view.width < 2 || !this.element.offsetWidth) return;
    this.settled = key;
    const whole = !view.write();
    view.aside = 0;
    const { least, middle } = view, [wide, high] = [this.element.offsetWidth + GAP, this.element.offsetHeight + GAP];
    const low = middle[1] - (view.height / 2 - high) / least, side = (view.width / 2 - wide) / least;
    let [left, right] = [0, 0];
    for (let row = 0; row < table.rows; row++) {
      if (table.y[row] > low) continue;
      if (table.x[row] < middle[0] - side) left++;
      else if (table.x[row] > middle[0] + side) right++;
    }
    this.element.classList.toggle("wb-atright", right < left);
    if (getComputedStyle(this.element).position === "absolute") view.aside = right < left ? WIDEST : -WIDEST;
    if (!whole) return;
    view.whole();
    map.drawSoon();
  }

  groups(column, counts, chosen, theme, excluded) {
    const codes = [...column.names.keys()].map((code) => code + 1).filter((code) => column.own[code]); // a group has no point of its own where all lie under it
    codes.sort((one, other) => column.totals[other] - column.totals[one]);
    if (column.totals[0]) codes.push(0);
    return codes.map((code) => {
      const name = code ? column.names[code - 1] : "none", dot = make("span.dot");
      dot.style.background = code ? column.colors[theme][code - 1] : "var(--wb-none)";
      return make("li", {}, make(`button.key${leftOut(column, code, chosen, excluded) ? ".left" : ""}`, {
        type: "button", "data-key": `key${code}`, "aria-pressed": chosen.has(code), title: `Only ${name}. Shift-click adds it to the selection`,
        onclick: (event) => this.pick(column, valueOfCode(column, code), event.shiftKey || event.ctrlKey || event.metaKey),
      }, dot, make("span.barname", { dir: "auto" }, name), make("span.barcount", {}, counted(counts[code]))));
    });
  }
}

function scale(column) {
  const bar = make("div.scale");
  bar.style.background = `linear-gradient(to right, ${SCALE.join(", ")})`;
  return make("li", {}, bar, make("div.ends", {}, make("span", {}, written(column, column.low)), make("span", {}, written(column, column.high))));
}
