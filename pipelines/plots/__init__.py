"""Plots as files, a page that works offline (.html) or an image (.png): a map, a tree, lines over time, a curve."""

from .bars import BarsPlot
from .curve import CurvePlot
from .file import Plot, check_target, write_plot
from .lines import LinesPlot
from .points import Label, PointsPlot
from .tree import TreePlot

__all__ = [
    "BarsPlot",
    "CurvePlot",
    "Label",
    "LinesPlot",
    "Plot",
    "PointsPlot",
    "TreePlot",
    "check_target",
    "write_plot",
]
