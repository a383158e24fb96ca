// The workbench on a page of Streamlit: data by plain requests, the state in the address, the rest by Streamlit.

const STATE = ["s", "color", "names", "view", "sort"];
const LEAST = 560, BELOW = 18; // pixels: of the height, and under it

class Place {
  constructor(element, say) {
    Object.assign(this, { element, say, path: location.pathname });
    this.back = (event) => this.returned(event);
    this.fit = () => this.fill();
    window.addEventListener("popstate", this.back, true);
    window.addEventListener("resize", this.fit);
  }

  /** Take what Python sent; only another table is read again. */
  async update(data) {
    const before = this.data;
    this.data = data;
    if (before?.token === data.token) return this.made?.update({ options: this.options() });
    this.base = `${location.pathname.replace(/[^/]*\/?$/, "")}workbench/${data.token}/`;
    if (!this.made) this.element.textContent = `Loading ${data.rows.toLocaleString("en-US")} documents …`;
    try {
      const table = await (await this.ask("table")).arrayBuffer();
      if (this.data !== data || this.closed) return;
      this.fill();
      if (this.made) this.made.update({ table, options: this.options(), state: this.state() });
      else this.made = mount(this.element, { table, options: { ...this.options(), state: { ...data.state, ...this.state() } }, host: this.host() });
    } catch (error) {
      this.element.textContent = error.message;
      this.element.setAttribute("role", "alert");
    }
  }

  options() {
    return { actions: this.data.actions, theme: this.data.theme };
  }

  host() {
    const json = async (name, asked) => (await this.ask(name, asked)).json();
    return {
      rows: (rows) => json("rows", { rows: rows.join(",") }),
      search: (query, k) => json("search", { q: query, k }),
      resolve: (part) => json("resolve", { part: JSON.stringify(part) }),
      changed: (state, replace) => this.changed(state, replace),
      open: (row) => this.say("open", { row, token: this.data.token, turn: Date.now(), state: this.state() }),
      act: (name, state) => this.say("act", { name, state, turn: Date.now() }),
    };
  }

  async ask(name, asked = {}) {
    const answer = await fetch(`${this.base}${name}?${new URLSearchParams(asked)}`).catch(() => {
      throw new Error("The server does not answer. Check that it runs, and reload this page.");
    });
    if (answer.ok) return answer;
    throw new Error((await answer.json().catch(() => ({}))).message ?? "The server cannot answer this. Reload this page.");
  }

  /** Return the state of the address; only what it has. */
  state() {
    const address = new URLSearchParams(location.search);
    return Object.fromEntries(STATE.filter((name) => address.has(name)).map((name) => [name, address.get(name)]));
  }

  /** Put a state into the address: as another step of the browser's history, or in place of this one. */
  changed(state, replace) {
    const address = new URL(location.href);
    for (const name of STATE) state[name] ? address.searchParams.set(name, state[name]) : address.searchParams.delete(name);
    for (const old of ["q", "area"]) address.searchParams.delete(old);
    if (address.href !== location.href) history[replace ? "replaceState" : "pushState"](history.state, "", address);
  }

  /** Back and forward of the browser change what is selected; Streamlit would draw the whole page again. */
  returned(event) {
    if (location.pathname !== this.path || !this.made) return;
    event.stopImmediatePropagation();
    this.made.update({ state: { ...Object.fromEntries(STATE.map((name) => [name, ""])), ...this.state() } });
  }

  /** Take the height that the window leaves. */
  fill() {
    const room = window.innerHeight - this.element.getBoundingClientRect().top - window.scrollY - BELOW;
    this.element.style.height = window.innerWidth > 700 ? `${Math.max(LEAST, room)}px` : "";
  }

  close() {
    this.closed = true;
    window.removeEventListener("popstate", this.back, true);
    window.removeEventListener("resize", this.fit);
    this.made?.close();
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const element = parentElement.querySelector(".place");
  element.place ??= new Place(element, setTriggerValue);
  element.place.update(data);
  return () => {
    element.place?.close();
    element.place = null;
  };
}
