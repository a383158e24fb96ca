// Elements with properties and children. Texts become text nodes: nothing that a document says is ever read as HTML.

/** Return an element: `make("button.wide", { onclick, title }, "Text", other)`. */
export function make(kind, properties = {}, ...children) {
  const [tag, ...classes] = kind.split("."), element = document.createElement(tag);
  if (classes.length) element.className = classes.map((name) => `wb-${name}`).join(" ");
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("aria-")) element.setAttribute(name, value); // "false" is a state of its own, and "" is none
    else if (value === false) continue;
    else if (name in element) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Replace the children of an element, and keep the focus where a child with the same `data-key` has it. */
export function refill(element, children) {
  const active = element.getRootNode().activeElement, key = element.contains(active) ? active?.dataset?.key : null;
  element.replaceChildren(...children);
  if (key) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

/** Return a number as people write it: 12,345. */
export function counted(count, noun) {
  const written = count.toLocaleString("en-US");
  return noun ? `${written} ${noun}${count === 1 ? "" : "s"}` : written;
}
