"""The map's chart in a real Chromium, without Streamlit: what it draws, what hands and keys do, what it says back."""

# ruff: noqa: F811  (fixtures that are imported)

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from in_chromium import PATIENCE, activate, chromium  # noqa: F401  (fixture)
from PIL import Image
from playwright.sync_api import Browser, Page, expect
from ui_pages import MARKUP

from sonde.app.ui.views.map.chart.mount import SCRIPTS

CHART = Path(__file__).parents[3] / "app/ui/views/map/chart"
PAGE = """
<!doctype html><style>body {{ margin: 0; --st-background-color: #fff }} {css} .chart {{ width: 600px }}</style>{html}
<script>window.parts = []</script>
<script type="module">
  {js}
  window.Near = Near;
  window.View = View;
  window.show = show;
  window.said = [];
  window.send = (data) => {{
    const columns = {{ ...data.points, color: new Uint32Array(data.points.color) }};
    const points = {{ getChild: (name) => ({{ toArray: () => columns[name], get: (at) => columns[name][at] }}) }};
    const say = (name, value) => window.said.push([name, value]);
    window.close = show({{ data: {{ ...data, points }}, parentElement: document.body, setStateValue: say }});
  }};
</script>
"""
RED, BLUE = 0xFF0000FF, 0xFFFF0000
HEIGHT = 560
Send = Callable[..., Page]


@pytest.fixture
def send(chromium: Browser, tmp_path: Path) -> Iterator[Send]:
    """Show points, `(x, y, colour, title, text)`, and return the page; again, to send others to the same chart."""
    page = chromium.new_page(viewport={"width": 600, "height": 600})
    page.set_default_timeout(PATIENCE)
    js = "\n".join((CHART / name).read_text("utf-8") for name in SCRIPTS)
    js = js.replace("export default function", "function show")
    parts = {name: (CHART / f"chart.{name}").read_text("utf-8") for name in ("css", "html")}
    path = tmp_path / "chart.html"
    path.write_text(PAGE.format(js=js, **parts), "utf-8")
    page.goto(path.as_uri())

    def show(points: list[tuple[float, float, int, str, str]], **more: Any) -> Page:
        columns = dict(zip(("x", "y", "color", "title", "text"), map(list, zip(*points, strict=True)), strict=True))
        data = {
            "points": columns, "bounds": [0, 0, 10, 10], "size": 8, "opacity": 1, "density": None, "names": [],
            "hits": [], "hit": "#e6007e", "outlines": [],
        }  # fmt: skip
        page.evaluate("data => send(data)", data | more)
        page.locator("[data-drawn]").wait_for()
        frame(page)
        return page

    try:
        yield show
    finally:
        page.close()


TWO = [(2, 2, RED, "one", "a text"), (8, 8, BLUE, "two", "another")]


def at(x: float, y: float) -> tuple[float, float]:
    """Where a place of the whole map, 10 by 10, is on the screen: by hand, not by the chart's own code."""
    scale = HEIGHT / 10 / 1.08
    return 300 + (x - 5) * scale, HEIGHT / 2 - (y - 5) * scale


def pixel(page: Page, x: float, y: float) -> tuple[int, int, int]:
    """The colour that is seen at a place of the whole map."""
    across, down = at(x, y)
    with Image.open(io.BytesIO(page.screenshot())) as image:
        return image.convert("RGB").getpixel((round(across), round(down)))  # type: ignore[return-value]


def drag(page: Page, *places: tuple[float, float]) -> None:
    page.mouse.move(*at(*places[0]))
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*at(*place), steps=6)
    page.mouse.up()


def said(page: Page) -> list[Any]:
    """What the chart told Streamlit, rounded."""
    found: list[Any] = page.evaluate("said")
    assert {name for name, _ in found} <= {"outlines"}
    return [[[(round(x, 1), round(y, 1)) for x, y in outline] for outline in outlines] for _, outlines in found]


def test_points_lie_at_their_places_in_their_colours(send: Send) -> None:
    page = send(TWO)
    assert [pixel(page, *place) for place in ((2, 2), (8, 8), (5, 5))] == [(255, 0, 0), (0, 0, 255), (255, 255, 255)]
    send([(2, 2, BLUE, "", "")])
    assert [pixel(page, *place) for place in ((2, 2), (8, 8))] == [(0, 0, 255), (255, 255, 255)]
    send([(2, 2, RED, "", ""), (2, 2, BLUE, "", "")], opacity=0.5)
    assert pixel(page, 2, 2) == pytest.approx((128, 64, 191), abs=2), "the last is drawn above the others"


def test_the_mouse_shows_title_and_text_as_they_stand(send: Send) -> None:
    page = send([(2, 2, RED, MARKUP, MARKUP + " text"), (8, 8, BLUE, "", "no title")])
    tip = page.locator(".tip")
    page.mouse.move(*at(2, 2))
    expect(tip).to_be_visible()
    assert [part.inner_text() for part in tip.locator("> *").all()] == [MARKUP, MARKUP + " text"]
    assert tip.locator("b, script, a").count() == 0
    page.mouse.move(*at(5, 5))
    expect(tip).to_be_hidden()
    page.mouse.move(*at(8, 8.05))
    expect(tip.locator("span")).to_have_text("no title")
    expect(tip.locator("strong")).to_be_hidden()


def test_a_lasso_a_box_and_more_of_them(send: Send) -> None:
    page = send(TWO)
    drag(page, (1, 1), (3, 1), (3, 3), (1, 3))
    [[lasso]] = said(page)
    assert {(1, 1), (3, 1), (3, 3), (1, 3)} <= set(lasso)
    activate(page.get_by_role("button", name="Box"))
    page.keyboard.down("Shift")
    drag(page, (7, 7), (9, 9))
    page.keyboard.up("Shift")
    assert said(page)[1] == [lasso, [(7, 7), (9, 7), (9, 9), (7, 9)]]
    drag(page, (4, 4), (6, 6))
    assert said(page)[2] == [[(4, 4), (6, 4), (6, 6), (4, 6)]], "without Shift it takes the place of the others"
    page.mouse.click(*at(5, 5))
    assert len(said(page)) == 3, "a click selects nothing"
    page.keyboard.press("Escape")
    assert said(page)[3] == []


def test_outlines_and_hits_are_drawn_and_hits_are_shown_first(send: Send) -> None:
    hit = {"x": 2, "y": 2, "title": "1. the best", "text": "found"}
    page = send(TWO, hits=[hit], outlines=[[[4, 4], [6, 4], [6, 6], [4, 6]]], opacity=0.15)
    assert pixel(page, 2, 2) == (0xE6, 0x00, 0x7E)
    with Image.open(io.BytesIO(page.screenshot())) as image:
        across, down = (round(value) for value in at(5, 4))
        around = [image.convert("RGB").getpixel((across + step, down)) for step in range(-6, 6)]
    assert any(red > 220 and green < 80 for red, green, _ in around), around  # type: ignore[misc]
    page.mouse.move(*at(2, 2))
    expect(page.locator(".tip")).to_have_text("1. the bestfound")


def test_a_name_that_another_covers_appears_from_near(send: Send) -> None:
    names = [{"x": x, "y": 5, "text": text, "level": 1} for x, text in ((5, "a larger region"), (5.4, "a smaller one"))]
    page = send(TWO, names=names)
    larger, smaller = page.get_by_text("a larger region"), page.get_by_text("a smaller one")
    expect(larger).to_be_visible()
    expect(smaller).to_be_hidden()
    page.mouse.move(*at(5.2, 5))
    page.mouse.wheel(0, -120 * 8)
    for _ in range(8):
        page.mouse.wheel(0, -120)
    expect(smaller).to_be_visible()
    expect(larger).to_be_visible()
    activate(page.get_by_role("button", name="Whole map"))
    expect(smaller).to_be_hidden()


def test_moving_and_keys(send: Send) -> None:
    page = send(TWO)
    activate(page.get_by_role("button", name="Move"))
    drag(page, (2, 2), (4, 4))
    frame(page)
    assert said(page) == [], "moving selects nothing"
    assert pixel(page, 4, 4) == (255, 0, 0), "the point came along"
    send(TWO)
    assert pixel(page, 4, 4) == (255, 0, 0), "the same map sent again stays where it was moved to"
    send(TWO, bounds=[0, 0, 10.5, 10])
    send(TWO)
    assert pixel(page, 2, 2) == (255, 0, 0), "another one is shown as a whole"
    page.locator(".surface").focus()
    page.keyboard.press("ArrowRight")
    frame(page)
    assert pixel(page, 2 - 40 / (HEIGHT / 10 / 1.08), 2) == (255, 0, 0)
    page.keyboard.press("0")
    frame(page)
    assert pixel(page, 2, 2) == (255, 0, 0)


def test_the_whole_screen_and_back(send: Send) -> None:
    page = send(TWO)
    activate(page.get_by_role("button", name="Full screen"))
    page.wait_for_function("document.fullscreenElement?.className === 'chart'")
    activate(page.get_by_role("button", name="Full screen"))
    page.wait_for_function("!document.fullscreenElement")
    frame(page)
    assert pixel(page, 2, 2) == (255, 0, 0)


def test_shades_lie_behind_the_points(send: Send) -> None:
    density = {"bounds": [0, 0, 10, 10], "rows": 2, "columns": 2, "shades": [0, 0.5, 0, 1], "color": "#000000"}
    page = send(TWO, density=density)
    assert [pixel(page, *place) for place in ((2, 7), (7, 2), (7, 7))] == [(255,) * 3, (127,) * 3, (0, 0, 0)]
    assert pixel(page, 8, 8) == (0, 0, 255)


def test_a_browser_that_takes_the_context_away_draws_again(send: Send) -> None:
    page = send(TWO)
    page.evaluate(
        """() => {
          const gl = document.querySelector('.chart').made.points.gl;
          window.lost = gl.getExtension('WEBGL_lose_context');
          window.seen = [];
          for (const name of ['webglcontextlost', 'webglcontextrestored'])
            gl.canvas.addEventListener(name, () => seen.push(name));
        }"""
    )
    page.evaluate("lost.loseContext()")
    page.wait_for_function("seen.length === 1")
    page.evaluate("lost.restoreContext()")
    page.wait_for_function("seen.length === 2")
    frame(page)
    assert pixel(page, 2, 2) == (255, 0, 0)


def test_without_webgl_it_says_so(send: Send, chromium: Browser) -> None:
    page = send(TWO)
    page.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    page.reload()
    page.evaluate("show({ data: {}, parentElement: document.body, setStateValue: null })")
    expect(page.locator(".chart")).to_have_text("This browser has no WebGL, which the map is drawn with.")


def test_a_chart_that_leaves_the_page_gives_its_context_back(send: Send) -> None:
    page = send(TWO)
    page.evaluate("window.gl = document.querySelector('.chart').made.points.gl")
    assert page.evaluate("gl.isContextLost()") is False
    page.evaluate("close()")
    assert page.evaluate("gl.isContextLost()") is True


def test_the_nearest_point_is_that_of_a_look_at_all(send: Send) -> None:
    wrong = send(TWO).evaluate(
        """() => {
          let seed = 7;
          const chance = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
          const places = Float32Array.from({ length: 4000 }, () => (chance() < 0.1 ? 5 : 10 * chance()));
          const near = new Near(places, [0, 0, 10, 10]), wrong = [];
          for (let turn = 0; turn < 2000; turn++) {
            const [x, y, most] = [14 * chance() - 2, 14 * chance() - 2, 2 * chance() ** 3];
            const away = (at) => (places[2 * at] - x) ** 2 + (places[2 * at + 1] - y) ** 2;
            let least = Infinity;
            for (let at = 0; at < 2000; at++) least = Math.min(least, away(at));
            const found = near.find([x, y], most), far = found < 0 ? Infinity : away(found);
            if (far !== (least <= most * most ? least : Infinity)) wrong.push([x, y, most, far, least]);
          }
          return wrong;
        }"""
    )
    assert wrong == []


def test_zooming_keeps_the_place_under_the_mouse(send: Send) -> None:
    worst = send(TWO).evaluate(
        """() => {
          const view = new View([-3, 2, 9, 30]);
          view.resize(640, 480);
          let worst = 0;
          for (let turn = 0; turn < 500; turn++) {
            const place = [(turn * 37) % 640, (turn * 91) % 480], before = view.toMap(place);
            view.zoom(turn % 3 ? 1.3 : 0.6, place);
            const back = view.toScreen(before);
            worst = Math.max(worst, Math.abs(back[0] - place[0]), Math.abs(back[1] - place[1]));
          }
          return worst;
        }"""
    )
    assert worst < 1e-6


def frame(page: Page) -> None:
    """Wait until what was asked for is drawn."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
