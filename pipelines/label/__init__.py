"""Zero-shot labelling: label texts by the names of the labels, without training data."""

from .corrections import Corrected, Correction, correct, corrections, forget_corrections
from .engines import DEFAULT_ENGINE, ENGINES, Judge, RerankerJudge, load_nli
from .labels import NONE, NONE_NAME, Label, Labels, make_labels, read_labels
from .outcome import Classified, LabelReport
from .review import Unsure, to_confirm, unsure
from .run import check_classify, classify, label_collection
from .scores import HUB_MODEL, Entailment, NliClasses, NliJudge, check_sentences, entail
from .settings import LabelSettings

__all__ = [
    "DEFAULT_ENGINE",
    "ENGINES",
    "HUB_MODEL",
    "NONE",
    "NONE_NAME",
    "Classified",
    "Corrected",
    "Correction",
    "Entailment",
    "Judge",
    "Label",
    "LabelReport",
    "LabelSettings",
    "Labels",
    "NliClasses",
    "NliJudge",
    "RerankerJudge",
    "Unsure",
    "check_classify",
    "check_sentences",
    "classify",
    "correct",
    "corrections",
    "entail",
    "forget_corrections",
    "label_collection",
    "load_nli",
    "make_labels",
    "read_labels",
    "to_confirm",
    "unsure",
]
