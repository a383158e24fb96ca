"""Writing a plot: as one HTML page with everything it needs, or as a PNG or SVG image."""

from pathlib import Path
from typing import Any, Protocol

from ...indexer.errors import MissingExtraError
from ...indexer.files import check_target, write_output

SUFFIXES = (".html", ".png", ".svg")
DOTS_PER_INCH = 150
PRINTED = 300
"""Dots per inch of an image file, as journals ask for."""
MANY = 2_000
"""Points beyond which an .svg holds them as one picture; its text and lines stay vectors."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
"""Whatever the reader's machine has: a page never fetches a font."""


class Plot(Protocol):
    """What can be drawn both ways."""

    def interactive(self) -> Any:
        """Return a Plotly figure."""
        ...

    def still(self) -> Any:
        """Return a matplotlib figure."""
        ...


def check_plot_target(path: str | Path) -> None:
    """Check where a plot is to be written, before anything is computed.

    Raises:
        UsageError: It is a folder, or the suffix is none of .html, .png and .svg.
        SondeError: The folder does not exist.
        MissingExtraError: The library that draws it is not installed.
    """
    path = Path(path)
    check_target(path, SUFFIXES, "draw")
    plotly() if path.suffix.lower() == ".html" else matplotlib()


def write_plot(plot: Plot, path: str | Path) -> None:
    """Write a plot by the file's suffix; the file appears when it is whole.

    Raises:
        UsageError: It is a folder, or the suffix is none of .html, .png and .svg.
        SondeError: The file cannot be written.
        MissingExtraError: The library that draws it is not installed.
    """
    path = Path(path)
    check_plot_target(path)
    write_output(path, _page(plot) if path.suffix.lower() == ".html" else _image(plot, path.suffix.lower()[1:]))


def plotly() -> Any:
    """The module plotly.graph_objects.

    Raises:
        MissingExtraError: Plotly is not installed.
    """
    try:
        import plotly.graph_objects as graph_objects
    except ImportError as error:
        raise MissingExtraError("Plotly", "plots", "an HTML plot") from error
    return graph_objects


def matplotlib() -> Any:
    """The module matplotlib, its settings and fonts as they come.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "a PNG or SVG plot") from error
    return matplotlib


def new_figure(title: str, width: float, height: float) -> tuple[Any, Any]:
    """Return a matplotlib figure of this size in inches and its axes, without touching matplotlib's own state."""
    matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=13)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _page(plot: Plot) -> Any:
    figure = plot.interactive()
    figure.update_layout(template="plotly_white", font={"family": FONT})
    page = figure.to_html(
        include_plotlyjs=True, include_mathjax=False, full_html=True, div_id="plot",
        config={"displaylogo": False, "responsive": True, "scrollZoom": True},
        post_script=getattr(plot, "script", None), default_height="100vh",
    )  # fmt: skip
    return lambda stream: stream.write(page.encode("utf-8", "replace"))


def _image(plot: Plot, format: str) -> Any:
    library = matplotlib()
    # The same plot gives the same file; its text stays text, which a program for drawings can edit.
    settings = {"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "sonde"}
    nameless = {"Software": None} if format == "png" else {"Date": None, "Creator": None}

    def write(stream: Any) -> None:
        import warnings

        # A text may hold dollar signs, which are no formulas here, and characters that no installed font has.
        with library.rc_context(settings), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            figure = plot.still()
            for axes in figure.axes:
                for points in axes.collections:
                    points.set_rasterized(len(points.get_offsets()) > MANY)
            figure.savefig(stream, format=format, dpi=PRINTED, metadata=nameless)

    return write
