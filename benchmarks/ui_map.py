"""The workbench at many points in Chromium, without a graphics card: paint, frames while moving, lasso, counts, memory.

    python benchmarks/ui_map.py                              100,000 and 1,000,000 points in 60 clusters, 8 columns
    python benchmarks/ui_map.py --points 1000000 --picture map.png
    python benchmarks/ui_map.py --atlas w/embedding_atlas    the same points in embedding-atlas, from its unpacked wheel

First paint runs from the start of the page, with the table on this machine, to the frame that shows all points. Frames
are counted over 5 s in which each frame zooms a little, or moves by 4 pixels.
"""

import argparse
import functools
import http.server
import io
import json
import sys
import tempfile
import threading
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import psutil
from _side_by_side import machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

PAGE = """<!doctype html><meta charset="utf-8"><style>html, body {{ margin: 0; height: 100% }}
#root {{ height: 100vh }}{style}</style><div id="root"></div><script type="module">{script}
const table = await (await fetch("table.bin")).arrayBuffer();
const text = (row) => ({{ row, id: String(row), title: "", text: `document ${{row}}`, metadata: {{}} }});
mount(document.getElementById("root"), {{ table, host: {{ rows: async (rows) => rows.map(text) }} }});
</script>"""
MOVE = """async (zooming) => {
  const at = document.elementFromPoint(400, 400), began = performance.now(), gaps = [];
  const place = { clientX: 400, clientY: 400, bubbles: true, cancelable: true };
  const wheel = (by) => new WheelEvent("wheel", { deltaY: by, ...place });
  const map = document.getElementById("root")?.workbench?.map;
  let last = began;
  while (performance.now() - began < 5000) {
    if (zooming || !map) at.dispatchEvent(wheel(gaps.length % 60 < 30 ? -30 : 30));
    else { map.view.move(gaps.length % 60 < 30 ? 4 : -4, 1); map.moved(); }
    await new Promise((done) => requestAnimationFrame(done));
    gaps.push(performance.now() - last);
    last = performance.now();
  }
  gaps.sort((one, other) => one - other);
  return [gaps.length / 5, gaps[Math.floor(gaps.length * 0.95)]];
}"""
LASSO = """() => {
  const bench = document.getElementById("root").workbench, [left, low, right, high] = bench.table.bounds;
  const middle = [(left + right) / 2, (low + high) / 2], wide = (right - left) / 3, tall = (high - low) / 3;
  const outline = Array.from({ length: 1500 }, (_, at) => {
    const turn = (at / 1500) * 2 * Math.PI, far = 1 + 0.2 * Math.sin(9 * turn);
    return [middle[0] + wide * far * Math.cos(turn), middle[1] + tall * far * Math.sin(turn)];
  });
  const began = performance.now();
  bench.map.acts.areas(outline, "new");
  return [performance.now() - began, Number(bench.element.dataset.selected)];
}"""
COUNT = """() => {
  const bench = document.getElementById("root").workbench;
  const columns = bench.table.columns, times = [];
  for (const column of columns) {
    const part = column.kind === "class" ? { kind: "values", column: column.name, values: [column.names[0]] }
      : { kind: "range", column: column.name, low: column.low, high: (column.low + column.high) / 2 };
    const began = performance.now();
    bench.selector.select({ mode: "all", parts: [...bench.history.now.parts, part] });
    times.push(performance.now() - began);
  }
  times.sort((one, other) => one - other);
  return [times[times.length >> 1], times.at(-1)];
}"""
NARROWED = r"""() => {
  const [, some, all] = /([\d,]+) \/ ([\d,]+) points/.exec(document.body.innerText) ?? [];
  return some !== all;
}"""
DRAWN = "count => document.querySelector(`[data-drawn='${count}']`) !== null"


def main() -> None:
    """Measure each number of points, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--atlas", type=Path, help="embedding_atlas, of its unpacked wheel")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    print(machine("sonde", "playwright"))
    with tempfile.TemporaryDirectory() as folder:
        address = serve(Path(folder))
        for count in given.points:
            if given.atlas:
                write_atlas(Path(folder) / f"atlas{count}", given.atlas, count)
                print(f"embedding-atlas, {count:,} points: {measure_atlas(f'{address}/atlas{count}/', given.picture)}")
            else:
                write_page(Path(folder) / str(count), count)
                print(
                    f"workbench, {count:,} points: {measure(f'{address}/{count}/', count, given.picture)}", flush=True
                )


def points(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return float32 [n, 2] places in 60 clusters, and the cluster of each."""
    random = np.random.default_rng(seed)
    centres, spread, share = random.normal(0, 8, (60, 2)), random.uniform(0.2, 1.5, 60), random.dirichlet(np.ones(60))
    clusters = random.choice(60, count, p=share)
    return (centres[clusters] + random.normal(size=(count, 2)) * spread[clusters, None]).astype(np.float32), clusters


def columns(clusters: np.ndarray) -> dict[str, np.ndarray]:
    """Return 8 columns: 4 of classes, 3 of numbers, 1 of days."""
    random, count = np.random.default_rng(1), len(clusters)
    classes = {f"class {size}": random.integers(0, size, count) for size in (2, 12, 200)}
    numbers = {
        "stars": random.integers(1, 6, count),
        "price": random.lognormal(3, 1, count),
        "length": random.gamma(2, 90, count),
    }
    return {"cluster:kmeans": clusters, **classes, **numbers, "day": random.integers(18_000, 20_000, count)}


def write_page(folder: Path, count: int) -> None:
    """Write the workbench and its table."""
    from sonde.app.workbench import script, style
    from sonde.pipelines.facets import Column, Facets, Region

    places, clusters = points(count)
    made = []
    for name, values in columns(clusters).items():
        if name.startswith(("class", "cluster")):
            names = tuple(f"{name} {code}" for code in range(int(values.max()) + 1))
            made.append(Column(name, name, "class", values.astype(np.int32), names))
        else:
            made.append(Column(name, name, "date" if name == "day" else "number", values.astype(np.float64)))
    middles = [(places[clusters == one].mean(axis=0), int((clusters == one).sum())) for one in range(60)]
    regions = [
        Region(float(x), float(y), f"region {at}", 1 + at % 2, size) for at, ((x, y), size) in enumerate(middles)
    ]
    table = Facets("points", "map", np.arange(count), places, made, regions, ())
    folder.mkdir()
    (folder / "table.bin").write_bytes(table.pack())
    (folder / "index.html").write_text(PAGE.format(script=script(), style=style()), "utf-8")


def write_atlas(folder: Path, package: Path, count: int) -> None:
    """Write what `embedding-atlas --export-application` writes: its page, and the same points as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    places, clusters = points(count)
    (folder / "data").mkdir(parents=True)
    rest = {
        name: pa.array([f"c{value}" for value in values]) if name.startswith("c") else values
        for name, values in columns(clusters).items()
    }
    table = pa.table({"id": np.arange(count), "x": places[:, 0], "y": places[:, 1], **rest})
    pq.write_table(table, folder / "data" / "dataset.parquet")
    props = {"data": {"table": "dataset", "id": "id", "projection": {"x": "x", "y": "y"}}}
    metadata = {"props": props, "isStatic": True, "database": {"type": "wasm", "load": True}}
    (folder / "data" / "metadata.json").write_text(json.dumps(metadata))
    for part in (package / "static").resolve().iterdir():
        (folder / part.name).symlink_to(part)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files with the types that modules need, without a line for each."""

    def guess_type(self, path: Any) -> str:
        """Return the type of a file."""
        known = {".js": "text/javascript", ".wasm": "application/wasm"}
        return known.get(Path(path).suffix) or super().guess_type(path)

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""


def serve(folder: Path) -> str:
    """Serve a folder on a free port until the program ends; return the address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


class Window:
    """A page in a browser of its own, with the bytes that it loads and the memory that it takes."""

    def __init__(self, *flags: str) -> None:
        import browser as browsers
        from playwright.sync_api import sync_playwright

        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(executable_path=browsers.find(), args=["--no-sandbox", *flags])
        self.page = self.browser.new_page(viewport={"width": 1280, "height": 800})
        self.bytes: dict[str, int] = {}
        self.page.on(
            "response", lambda each: self.bytes.update({each.url: int(each.headers.get("content-length") or 0)})
        )

    def _loaded(self, answer: Any) -> None:
        self.bytes[answer.url] = int(answer.headers.get("content-length") or 0)

    @property
    def scripts(self) -> float:
        """Megabytes that were loaded and are no data."""
        return sum(size for url, size in self.bytes.items() if not url.endswith((".bin", ".parquet"))) / 1e6

    def memory(self) -> str:
        """Return megabytes that only the page's process holds, and the process that draws."""
        found: dict[str, float] = {}
        for process in psutil.Process().children(recursive=True):
            command = " ".join(process.cmdline())
            for kind, flag in {"page": "--type=renderer", "GPU process": "--type=gpu-process"}.items():
                if flag in command:
                    found[kind] = max(found.get(kind, 0), process.memory_full_info().uss / 1e6)
        return ", ".join(f"{kind} {size:.0f} MB" for kind, size in found.items())

    def close(self) -> None:
        """End the browser."""
        self.browser.close()
        self.playwright.stop()


def measure(address: str, count: int, picture: Path | None) -> str:
    """Return what the workbench does with a page's points."""
    window = Window()
    page = window.page
    began = monotonic()
    page.goto(address)
    page.wait_for_function(DRAWN, arg=count, polling=10)
    paint = monotonic() - began
    page.wait_for_timeout(2000)
    if picture:
        page.screenshot(path=picture.with_stem(f"{picture.stem}-{count}"))
    zoom, pan = page.evaluate(MOVE, True), page.evaluate(MOVE, False)
    page.wait_for_timeout(1000)
    quick = page.evaluate("document.getElementById('root').workbench.map.quick")
    taken, selected = page.evaluate(LASSO)
    page.wait_for_function(DRAWN, arg=count, polling=10)
    middle, worst = page.evaluate(COUNT)
    said = (
        f"script {window.scripts:.2f} MB; first paint {paint:.2f} s; zooming {zoom[0]:.0f} frames a second "
        f"(95 % within {zoom[1]:.0f} ms), moving {pan[0]:.0f} ({pan[1]:.0f} ms), then {quick:,.0f} points a frame; "
        f"lasso {taken:.0f} ms, {selected:,} points; a part with all counts {middle:.0f} ms (at most {worst:.0f}); "
        f"{window.memory()}"
    )
    if picture:
        page.screenshot(path=picture.with_stem(f"{picture.stem}-{count}-lasso"))
    window.close()
    return said


def measure_atlas(address: str, picture: Path | None) -> str:
    """Return what embedding-atlas shows of the same points; its map needs WebGPU with shader-f16."""
    from PIL import Image

    window = Window("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
    page = window.page
    began = monotonic()
    page.goto(address)
    page.get_by_text("points").first.wait_for(timeout=120_000)
    table = monotonic() - began
    page.wait_for_timeout(8000)
    with Image.open(io.BytesIO(page.screenshot(clip={"x": 100, "y": 100, "width": 400, "height": 250}))) as image:
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
    drawn = len(np.unique(pixels, axis=0)) > 20
    refused = page.get_by_text("WebGPU is unavailable").count() > 0
    if picture:
        page.screenshot(path=picture.with_stem(f"{picture.stem}-atlas"))
    bar = page.locator("button", has=page.get_by_text("c5", exact=True)).first  # in a chart; the table has no buttons
    bar.scroll_into_view_if_needed()
    began = monotonic()
    bar.click()
    page.wait_for_function(NARROWED, polling=10)
    filtered = monotonic() - began
    said = (
        f"script {window.scripts:.1f} MB; table and charts after {table:.1f} s; map drawn: {drawn} "
        f"(says that WebGPU is unavailable: {refused}); a click on a bar {filtered * 1000:.0f} ms; {window.memory()}"
    )
    window.close()
    return said


if __name__ == "__main__":
    main()
