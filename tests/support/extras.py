"""Libraries that only an extra installs."""

from importlib.util import find_spec

import pytest


def needs(*libraries: str) -> pytest.MarkDecorator:
    """Return the mark of a test file that is skipped if a library is not installed: `pytestmark = needs("umap")`.

    Unlike `pytest.importorskip`, it imports none of them: each worker of pytest collects every file.
    """
    missing = [name for name in libraries if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")
