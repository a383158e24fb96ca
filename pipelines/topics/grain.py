"""Which number of groups to suggest: EVoC's layers and KMeans compete by silhouette and stability on a sample.

Two things speak for a number of groups: scores, and persistence. If the best score leads clearly, and is also the best
silhouette, it decides alone. Otherwise the most persistent layer says how fine the texts are grouped, and the scores
decide from a third to three times as many groups. Among equal scores, the number of groups nearest to the most
persistent layer is suggested; an EVoC layer counts as one step of the curve nearer than a k of KMeans alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.progress import Notify, silent
from ..analysis.describe import silhouettes
from ..analysis.neighbours import one_thread, sample_rows
from ..cluster.choice import ALIKE, FEW, LEAD, LEAST_SIZE, STEP, Point, choose_k, is_clear, k_curve, points_of
from ..cluster.kmeans import Fitted, fit_from, fit_kmeans, nearest
from .layers import Layer, persistent_size

WINDOW = 3
"""Where persistence decides, a third to three times as many groups as in the most persistent layer may be suggested."""
AGREE = 0.95
"""A best score is also the best silhouette if it has at least this share of the largest one."""
SAMPLE = 5_000
RESTARTS = 3


@dataclass(frozen=True, slots=True)
class Grain:
    """A number of groups that competes.

    Attributes:
        k: Groups.
        score: Silhouette times the square root of stability; higher is better.
        silhouette: Mean over the sample, -1 to 1.
        stability: ARI between fits with different seeds, at most 1.
        layer: EVoC's layer with that many groups; None for a k of KMeans alone.
    """

    k: int
    score: float
    silhouette: float
    stability: float
    layer: Layer | None = None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The grain that is suggested.

    Attributes:
        grain: It.
        low: The fewest groups whose score counts as equal.
        high: The most.
    """

    grain: Grain
    low: int
    high: int

    @property
    def clear(self) -> bool:
        """Whether other numbers of groups are clearly worse, and the groups come back with other seeds."""
        return is_clear(self.low, self.high, self.grain)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values for the report of a run."""
        grain = self.grain
        return {
            "clear": self.clear, "equal": [self.low, self.high],
            "silhouette": round(grain.silhouette, 6), "stability": round(grain.stability, 6),
        }  # fmt: skip


class Contest:
    """Everything that competes to group the same vectors, and its score."""

    def __init__(self, vectors: np.ndarray, layers: Sequence[Layer], seed: int, notify: Notify = silent) -> None:
        """Measure the layers and the curve of KMeans on a sample of 5,000.

        Args:
            vectors: float32 [n, d], of length 1, all different, n at least 3.
            layers: EVoC's, the finest first.
            seed: Of the samples and of KMeans.
            notify: Receives progress.
        """
        self.vectors, self.layers, self.seed = vectors, layers, seed
        self.persistent = persistent_size(vectors, layers, seed) if layers else 0
        self._some = vectors[sample_rows(len(vectors), SAMPLE, seed)]
        self.points: list[Point] = k_curve(vectors, seed, notify)
        own = {layer.k: self._of_layer(layer) for layer in layers if layer.k <= len(self._some) // LEAST_SIZE}
        curve = [Grain(p.k, p.score, p.silhouette, p.stability) for p in self.points if p.k not in own]
        self.grains = sorted([*own.values(), *curve], key=lambda grain: grain.k)

    def stability(self, k: int) -> float:
        """Return the stability of k groups: read off the curve of KMeans, or measured where the curve has ended."""
        if not self.points:
            return 0.0
        if k > self.points[-1].k:
            return points_of(self._some, [k], self.seed)[0].stability
        return float(np.interp(np.log(k), np.log([p.k for p in self.points]), [p.stability for p in self.points]))

    def grain(self, labels: np.ndarray) -> Grain:
        """Return groups, int64 [n] labels of all vectors numbered from 0, with their score."""
        k, silhouette = int(labels.max()) + 1, self.silhouette(labels)
        stability = self.stability(k)
        return Grain(k, max(silhouette, 0.0) * max(stability, 0.0) ** 0.5, silhouette, stability)

    def silhouette(self, labels: np.ndarray) -> float:
        """Return the mean silhouette of the sample, -1 to 1."""
        rows = sample_rows(len(self.vectors), SAMPLE, self.seed)
        return float(np.nan_to_num(silhouettes(self._some, labels[rows])).mean())

    def suggest(self) -> Suggestion:
        """Return the grain to suggest."""
        if not self.layers:
            k = choose_k(self.points)
            found = next((grain for grain in self.grains if grain.k == k), Grain(1, 0.0, 0.0, 0.0))
            return Suggestion(found, k, k)
        if two_or_three := self._few():
            return Suggestion(two_or_three, two_or_three.k, two_or_three.k)
        equal = self._leading() or self._around() or self.grains[:1]
        chosen = min(equal, key=lambda grain: (self._steps(grain), grain.k))
        return Suggestion(chosen, equal[0].k, equal[-1].k)

    def _steps(self, grain: Grain) -> float:
        """Return how many steps of the curve lie between a grain and the most persistent size; one less for a layer."""
        away = abs(np.log(grain.k / self.persistent)) / np.log(STEP)
        return round(float(away), 6) - (grain.layer is not None)

    def _leading(self) -> Sequence[Grain]:
        """Return the grains whose scores equal the best, if it leads clearly; otherwise none."""
        many = [grain for grain in self.grains if grain.k > FEW]
        equal = _equal(many)
        if not equal:
            return ()
        best = max(equal, key=lambda grain: grain.score)
        clear = Suggestion(best, equal[0].k, equal[-1].k).clear
        agree = best.silhouette >= AGREE * max(grain.silhouette for grain in many)
        return equal if clear and agree else ()

    def _around(self) -> Sequence[Grain]:
        """Return the grains whose scores equal the best among those about as fine as the most persistent layer."""
        low, high = self.persistent / WINDOW, self.persistent * WINDOW
        return _equal([grain for grain in self.grains if grain.k > FEW and low <= grain.k <= high])

    def _few(self) -> Grain | None:
        """Return two or three groups where both EVoC and the scores are for them: nearly every corpus falls in two."""
        few, many = ([g for g in self.grains if (g.k <= FEW) == is_few] for is_few in (True, False))
        best = max(few, key=lambda grain: grain.score, default=None)
        persistent = max(self.layers, key=lambda layer: layer.persistence).k <= FEW
        leads = best and best.score > LEAD * max((grain.score for grain in many), default=0.0)
        return best if persistent and leads else None

    def winner(self, grain: Grain) -> Fitted:
        """Return the best groups of a grain by silhouette: KMeans from the layer's means, the layer, KMeans from seeds.

        Of those that count as equal, the first is taken: EVoC and KMeans agree on it.
        """
        seeded = fit_kmeans(self.vectors, grain.k, self.seed, RESTARTS)
        if not grain.layer:
            return seeded
        means = grain.layer.means
        with one_thread():
            found = [fit_from(self.vectors, means, self.seed), Fitted(means, *nearest(self.vectors, means)), seeded]
        scores = [self.silhouette(fitted.labels) for fitted in found]
        least = max(scores) - (1 - ALIKE) * abs(max(scores))  # silhouettes may be negative
        return next(each for each, score in zip(found, scores, strict=True) if score >= least)

    def _of_layer(self, layer: Layer) -> Grain:
        with one_thread():
            moved = fit_from(self._some, layer.means, self.seed)
            silhouette = max(
                float(np.nan_to_num(silhouettes(self._some, labels)).mean())
                for labels in (moved.labels, nearest(self._some, layer.means)[0])
            )
        stability = self.stability(layer.k)
        return Grain(layer.k, max(silhouette, 0.0) * max(stability, 0.0) ** 0.5, silhouette, stability, layer)


def _equal(grains: Sequence[Grain]) -> Sequence[Grain]:
    """Return the grains whose scores count as equal to the best."""
    best = max((grain.score for grain in grains), default=0.0)
    return [grain for grain in grains if grain.score >= ALIKE * best]
