"""What is asked of an index, and what was measured of it."""

import re
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ..errors import SondeError, UsageError, arg

Kind = Literal["exact", "hnsw", "hnsw-sq8", "ivf", "ivf-sq8", "ivf-fastscan", "ivf-pq", "ivf-rabitq", "cagra"]
Metric = Literal["cosine", "dot"]
GPU_KINDS: tuple[Kind, ...] = ("exact", "ivf", "ivf-sq8", "ivf-pq", "cagra")
"""Kinds that FAISS can build on a GPU."""
_DEVICE = r"(auto|cpu|mps|cuda(:\d+)?)(,(cpu|mps|cuda(:\d+)?))*"
LARGEST_PARAMETER = 1 << 20
"""No tuned setting, such as efSearch or nprobe, comes near it; FAISS reserves memory for each step."""
TARGET = 0.98
"""recall@10 that an index is tuned to unless another is asked for."""


@dataclass(frozen=True, slots=True)
class AnnSettings:
    """How to build an index.

    A `kind` or `target_recall` of None means what the collection was last asked for, and at first "auto" and `TARGET`.
    `target_recall` is recall@10 against the exact scan, in (0, 1]. `memory_budget` is in bytes; None takes a quarter
    of the memory that is free. `metric` says what the inner product of the vectors means: "cosine" if they are
    normalised. `threads` of None leaves FAISS's own choice. `device` is "auto" (what the collection was opened for),
    "cpu", "cuda" or "cuda:1"; the first of a list such as "cuda:0,cuda:1" builds the index.
    """

    kind: Kind | Literal["auto"] | None = None
    target_recall: float | None = None
    memory_budget: int | None = None
    metric: Metric = "cosine"
    seed: int = 0
    device: str = "auto"
    threads: int | None = None

    def __post_init__(self) -> None:
        _one_of("index kind", self.kind or "auto", ("auto", *get_args(Kind)))
        _one_of("metric", self.metric, get_args(Metric))
        if not re.fullmatch(_DEVICE, self.device):
            raise UsageError(f"device {self.device!r} is unknown; choose one of auto, cpu, cuda, cuda:1")
        if self.device.startswith("cuda") and self.kind not in (None, "auto", *GPU_KINDS):
            raise UsageError(f"FAISS has no GPU form of {self.kind!r}; with device 'cuda' use {', '.join(GPU_KINDS)}")
        if self.device == "cpu" and self.kind == "cagra":
            raise UsageError("a graph of kind 'cagra' is built on a GPU; on a CPU use hnsw")
        if self.target_recall is not None and not 0 < self.target_recall <= 1:
            said = f"{arg('target_recall')} is {self.target_recall}: give a number above 0 and at most 1"
            raise UsageError(said, code="out-of-range", field="recall", value=self.target_recall)
        if self.memory_budget is not None and self.memory_budget <= 0:
            said = f"{arg('memory_budget')} is {self.memory_budget} bytes: give a number above 0"
            raise UsageError(said, code="out-of-range", field="memory", value=self.memory_budget)
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"threads is {self.threads}; it must be at least 1")


@dataclass(frozen=True, slots=True)
class AnnInfo:
    """What an index is and what was measured of it.

    `rows` counts the rows of the source that the index has seen (0 to rows - 1, dead ones included): newer rows are
    searched exactly. `vectors` counts the distinct live vectors in it. `recall` is recall@10 against the exact scan
    over `queries` vectors that the tuning had not seen; `latency_ms` is the median of single searches for 10,
    rescoring included. Both were measured on `device`, "cpu" or "cuda". `reached` says whether `recall` is at least
    `target`. `digest` is the SHA-256 of the saved file, empty until it is saved.
    """

    kind: Kind
    rows: int
    vectors: int
    dimension: int
    metric: Metric
    target: float
    trained_on: int
    reason: str
    seed: int = 0
    recall: float = 1.0
    reached: bool = True
    queries: int = 0
    latency_ms: float = 0.0
    bytes: int = 0
    parameters: dict[str, int] = field(default_factory=lambda: {"factor": 1})
    versions: dict[str, str] = field(default_factory=dict)
    digest: str = ""
    device: str = "cpu"

    @property
    def breadth(self) -> int:
        """How far a search looks: efSearch or itopk_size of a graph, nprobe of an inverted file, else 0."""
        names = ("efSearch", "itopk_size", "nprobe")
        return next((self.parameters[name] for name in names if name in self.parameters), 0)

    @property
    def factor(self) -> int:
        """Candidates that are rescored for each answer."""
        return self.parameters["factor"]

    @property
    def k_factor(self) -> int:
        """Candidates of the short codes that the longer ones rescore, for each that these pass on."""
        return self.parameters.get("k_factor", 1)

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "AnnInfo":
        """The inverse of `to_dict`.

        Raises:
            SondeError: A field is missing or unknown, or the kind is none of those known.
        """
        values = {"device": "cpu"} | values  # written before it was known
        names = {f.name for f in fields(cls)}
        if set(values) != names:
            raise SondeError(f"index description has other fields than expected: {sorted(names ^ set(values))}")
        if values["kind"] not in get_args(Kind):
            raise SondeError(f"index description names the unknown kind {values['kind']!r}")
        odd = [name for name, hint in get_type_hints(cls).items() if not _is(values[name], hint)]
        odd += [name for name, value in values["parameters"].items() if not odd and not 0 <= value <= LARGEST_PARAMETER]
        if odd or values["rows"] < 0 or not re.fullmatch("([0-9a-f]{64})?", values["digest"]):
            raise SondeError(f"index description has values of other types: {odd or ['rows', 'digest']}")
        return cls(**values)


def _is(value: Any, hint: Any) -> bool:
    """Whether a value read from JSON has the type of a field; numbers that are whole may stand for others."""
    if get_origin(hint) is dict:
        kind = get_args(hint)[1]
        return isinstance(value, dict) and all(_is(each, kind) for each in value.values())
    kinds = {float: (int, float), int: (int,), bool: (bool,), str: (str,)}
    return isinstance(value, kinds.get(hint, (str,)))


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{what} {value!r} is unknown; choose one of {', '.join(allowed)}")
