"""Plots as files, a page that works offline (.html) or an image (.png): a map, a tree, lines over time, a curve."""

from .breakdown import BarsPlot, LinesPlot
from .curve import CurvePlot
from .file import Plot, check_plot_target, write_plot
from .points import PlotLabel, PointsPlot
from .tree import TreePlot

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
