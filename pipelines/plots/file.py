"""Writing a plot: as one HTML page with everything it needs, or as a PNG image."""

from pathlib import Path
from typing import Any, Protocol

from ...indexer.errors import MissingExtraError
from ...indexer.files import check_target, write_output

SUFFIXES = (".html", ".png")
DOTS_PER_INCH = 150
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


def check_plot_target(path: Path) -> None:
    """Check where a plot is to be written, before anything is computed.

    Raises:
        UsageError: It is a folder, or the suffix is neither .html nor .png.
        SondeError: The folder does not exist.
        MissingExtraError: The library that draws it is not installed.
    """
    check_target(path, SUFFIXES, "draw")
    plotly() if path.suffix.lower() == ".html" else matplotlib()


def write_plot(plot: Plot, path: Path) -> None:
    """Write a plot by the file's suffix; the file appears when it is whole.

    Raises:
        UsageError: It is a folder, or the suffix is neither .html nor .png.
        SondeError: The file cannot be written.
        MissingExtraError: The library that draws it is not installed.
    """
    check_plot_target(path)
    write_output(path, _page(plot) if path.suffix.lower() == ".html" else _image(plot))


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
        raise MissingExtraError("matplotlib", "plots", "a PNG plot") from error
    return matplotlib


def new_figure(width: float, height: float) -> tuple[Any, Any]:
    """Return a matplotlib figure of this size in inches and its axes, without touching matplotlib's own state."""
    matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _page(plot: Plot) -> Any:
    figure = plot.interactive()
    figure.update_layout(template="plotly_white", font={"family": FONT})
    page = figure.to_html(
        include_plotlyjs=True, include_mathjax=False, full_html=True, div_id="plot",
        config={"displaylogo": False, "responsive": True, "scrollZoom": True},
        post_script=getattr(plot, "script", None), default_height="100vh",
    )  # fmt: skip
    return lambda stream: stream.write(page.encode("utf-8", "replace"))


def _image(plot: Plot) -> Any:
    library = matplotlib()

    def write(stream: Any) -> None:
        import warnings

        # A text may hold dollar signs, which are no formulas here, and characters that no installed font has.
        with library.rc_context({"text.parse_math": False}), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            plot.still().savefig(stream, format="png", metadata={"Software": None})

    return write
