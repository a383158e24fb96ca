"""Plots as files, a page that works offline (.html) or an image (.png): a map, a tree, lines over time, a curve."""

from .curve import CurvePlot
from .file import Plot, check_plot_target, write_plot
from .groups import BarsPlot, LinesPlot, TreePlot
from .points import PlotLabel, PointsPlot

__all__ = [
    "BarsPlot",
    "CurvePlot",
    "LinesPlot",
    "Plot",
    "PlotLabel",
    "PointsPlot",
    "TreePlot",
    "check_plot_target",
    "write_plot",
]
