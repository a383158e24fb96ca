"""The static tier: one vector per token, distilled from a transformer, and a text is the mean of its tokens.

The recipe is model2vec's (Minish Lab, 2024): every token of the vocabulary through the model on its own, PCA, and
weights by Zipf's law and smooth inverse frequency (Arora et al., 2017).
"""

from collections.abc import Callable

from .models import Located


def distilled(base: Located, name: str, notify: Callable[[str], object]) -> tuple[Located, str]:
    """Return the static model of `base`."""
    raise NotImplementedError
