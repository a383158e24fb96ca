"""Train a cross-encoder that orders passages by how well they answer a query."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...indexer.encoder import load_encoder
from ...indexer.encoder.model_folder import weights_digest
from ...indexer.encoder.models import DEFAULT_MODEL
from ...indexer.encoder.settings import resolve_devices
from ...indexer.errors import SondeError, UsageError
from ...indexer.progress import Notify, Progress, silent
from .loop import Report, finish, train, work_folder
from .nli import base_folder, new_classifier, pad, pair_logits, save_model, tokenize
from .pairs import Premise, TrainingQuery, digest_of, mine_negatives, read_training_queries
from .settings import TrainSettings, check_share

if TYPE_CHECKING:
    import torch

RIGHT, WRONG = "right", "wrong"


@dataclass(frozen=True, slots=True)
class RankQuality:
    """How held-out queries are answered, each among its own passages and the wrong ones mined for it.

    Attributes:
        queries: How many.
        mrr: Mean reciprocal rank of the best right passage, 0 to 1.
        first: Share of queries with a right passage first.
    """

    queries: int
    mrr: float
    first: float


@dataclass(frozen=True, slots=True)
class TrainedReranker:
    """What a training run made.

    Attributes:
        folder: The model's folder; `--rerank-model` takes it.
        before: The bi-encoder's own order of the same passages.
        after: The trained model's.
        report: Steps, losses, seconds.
    """

    folder: Path
    before: RankQuality
    after: RankQuality
    report: Report

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {
            "folder": str(self.folder),
            "queries": self.after.queries,
            "mrr_before": self.before.mrr,
            "mrr": self.after.mrr,
            "first_before": self.before.first,
            "first": self.after.first,
            **self.report.to_dict(),
        }


class RankLearner:
    """Learns to score a right passage above the wrong ones of the same query (listwise cross-entropy)."""

    def __init__(self, model: Any, tokenizer: Any, lists: Sequence[Premise], max_tokens: int) -> None:
        """Tokenise everything once; each list begins with its right passage."""
        self.model = model
        self._pad = tokenizer.pad_token_id
        self._rows = tokenize(tokenizer, lists, max_tokens)
        self.lengths = [np.array([len(ids) for ids, _ in rows]) for rows in self._rows]

    def loss(self, groups: np.ndarray) -> "torch.Tensor":
        """Return the mean cross-entropy of the right passage among its list."""
        import torch

        rows = [row for group in groups for row in self._rows[group]]
        scores = self.model(**pad(rows, self._pad, self.model.device)).logits[:, 0].float()
        parts = torch.split(scores, [len(self._rows[group]) for group in groups])
        return torch.stack([torch.logsumexp(part, 0) - part[0] for part in parts]).mean()


def train_reranker(
    data: Path, to: Path, *, base: str = DEFAULT_MODEL, settings: TrainSettings | None = None, negatives: int = 5,
    held_out: Path | None = None, share: float = 0.05, device: str = "auto", notify: Notify = silent,
) -> TrainedReranker:  # fmt: skip
    """Train a cross-encoder of one score; a killed run goes on when called again.

    Args:
        data: JSONL with query and passage, and negatives if there are some.
        to: The new model's folder.
        base: The bi-encoder to begin with, which also finds wrong passages.
        settings: How to train.
        negatives: Wrong passages of each query: those given, then mined ones.
        held_out: Queries to measure on; None keeps some of `data` back.
        share: Of the queries kept back, above 0 and at most 0.5.
        device: One device: "auto", "cpu", "cuda" …
        notify: Receives progress and sentences.

    Raises:
        UsageError: An argument is not valid.
        SondeError: The data cannot be used, or the model is not available.
    """
    settings = settings or TrainSettings()
    settings.check()
    check_share(share)
    if not 1 <= negatives <= 30:
        said = f"between 1 and 30 wrong passages of each query can be used, not {negatives}"
        raise UsageError(said, code="out-of-range", field="negatives", value=negatives)
    work = work_folder(to)
    taught, kept = _divided(data, held_out, share, settings.seed)
    folder, place = base_folder(base, notify), resolve_devices(device)[0]
    encoder = load_encoder(base, device=place)
    mined = [query for query in mine_negatives([*taught, *kept], encoder, negatives, notify) if query.wrong]
    asked = {query.text for query in kept}
    kept = [query for query in mined if query.text in asked]
    lists = [one for query in mined if query.text not in asked for one in _lists(query)]
    if not kept or not lists:
        said = (
            f"no wrong passages were found for the queries of {data}: {base} finds all others too similar to the right"
        )
        raise SondeError(f"{said} ones; give negatives, more passages, or another base model")
    model, tokenizer = new_classifier(str(folder), settings.seed, ("relevance",))
    model.to(place).eval()
    before = rank_quality(kept, [_similarities(query, encoder) for query in kept])
    run = digest_of(settings, negatives, lists, kept, weights_digest(folder))
    learner = RankLearner(model, tokenizer, lists, settings.max_tokens)
    report = train(learner, settings, work, run, lambda step, steps, _: notify(Progress("train", step, steps, "steps")))
    after = rank_quality(kept, _scores(kept, model, tokenizer, settings.max_tokens))
    card = {"base": base, "data": data.name, "run": run, "settings": asdict(settings), "negatives": negatives}
    figures = {"before": asdict(before), "after": asdict(after)}
    finish(to, lambda made: save_model(model, tokenizer, made), card | figures)
    return TrainedReranker(to, before, after, report)


def rank_quality(queries: Sequence[TrainingQuery], scores: Sequence[np.ndarray]) -> RankQuality:
    """Judge scores of the right passages of each query followed by its wrong ones; a tie counts against it."""
    ranks = []
    for query, found in zip(queries, scores, strict=True):
        right, wrong = found[: len(query.right)], found[len(query.right) :]
        ranks.append(1 + int((wrong >= right.max()).sum()))
    inverse = 1 / np.array(ranks)
    return RankQuality(len(queries), float(inverse.mean()), float((inverse == 1).mean()))


def _divided(
    data: Path, held_out: Path | None, share: float, seed: int
) -> tuple[list[TrainingQuery], list[TrainingQuery]]:
    queries = read_training_queries(data)
    if held_out:
        kept = read_training_queries(held_out)
        asked = {query.text for query in kept}
        return [query for query in queries if query.text not in asked], kept
    if len(queries) < 2:
        raise SondeError(f"{data} has one query only: training needs others to measure on")
    count = min(len(queries) - 1, max(1, round(len(queries) * share)))
    chosen = set(np.random.default_rng(seed).choice(len(queries), count, replace=False).tolist())
    both: tuple[list[TrainingQuery], list[TrainingQuery]] = [], []
    for place, query in enumerate(queries):
        both[place in chosen].append(query)
    return both


def _lists(query: TrainingQuery) -> list[Premise]:
    """Return a list for each right passage, which comes first, with all wrong ones."""
    wrong = tuple((text, WRONG) for text in query.wrong)
    return [Premise(query.text, ((text, RIGHT), *wrong)) for text in query.right]


def _similarities(query: TrainingQuery, encoder: Any) -> np.ndarray:
    vectors = encoder.encode_texts([*query.right, *query.wrong])
    return vectors @ encoder.encode_texts([query.text], query=True)[0]


def _scores(queries: Sequence[TrainingQuery], model: Any, tokenizer: Any, max_tokens: int) -> list[np.ndarray]:
    asked = [Premise(query.text, tuple((text, "") for text in (*query.right, *query.wrong))) for query in queries]
    found = pair_logits(model, tokenizer, asked, max_tokens)[:, 0]
    return np.split(found, np.cumsum([len(one.pairs) for one in asked])[:-1])
