"""The map as a chart of its own: points by WebGL, a lasso and a box, drawn in the browser by the scripts beside."""

from .mount import Chart, Mark, Name, draw

__all__ = ["Chart", "Mark", "Name", "draw"]
