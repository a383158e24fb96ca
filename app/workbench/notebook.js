// The host of a notebook: the kernel answers for texts, hits and parts, and hears of each selection.

/** Return the bytes of a DataView in a buffer of their own, aligned as the table's arrays need them. */
function bufferOf(view) {
  return view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
}

function render({ model, el }) {
  const root = document.createElement("div"), view = `${Math.random()}`, waiting = new Map();
  let turn = 0, kept = JSON.stringify(model.get("state"));
  root.style.height = `${model.get("height")}px`;
  el.append(root);

  const ask = (what, given) => new Promise((resolve, reject) => {
    const id = `${view}/${++turn}`;
    waiting.set(id, { resolve, reject });
    model.send({ id, what, ...given });
  });
  const answered = ({ id, found, error }) => {
    const asked = waiting.get(id); // another view of the same widget hears it too
    waiting.delete(id);
    if (error) asked?.reject(new Error(error));
    else asked?.resolve(found);
  };
  const host = {
    rows: (rows) => ask("rows", { rows: [...rows] }), search: (query, k) => ask("search", { query, k }), resolve: (part) => ask("part", { part }),
    changed: (state) => {
      kept = JSON.stringify(state);
      model.set("state", state);
      model.save_changes();
    },
  };
  const shown = mount(root, { table: bufferOf(model.get("table")), options: { state: model.get("state") }, host });
  const restored = () => {
    if (JSON.stringify(model.get("state")) !== kept) shown.update({ state: model.get("state") });
    kept = JSON.stringify(model.get("state"));
  };
  const renewed = () => shown.update({ table: bufferOf(model.get("table")) });
  model.on("msg:custom", answered);
  model.on("change:state", restored);
  model.on("change:table", renewed);
  return () => {
    model.off("msg:custom", answered);
    model.off("change:state", restored);
    model.off("change:table", renewed);
    shown.close();
  };
}

export default { render };
