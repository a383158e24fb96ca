"""Where `sonde index` writes if it is not told: to a collection named after the source, in the current folder."""

from collections.abc import Sequence
from pathlib import Path

PACKED = (".gz", ".zst")


def default_target(sources: Sequence[Path]) -> Path:
    """Return `reviews.sonde` for `data/reviews.csv.gz`, and `docs.sonde` for the folder `docs/`.

    Raises:
        UsageError: The source has no name, there are several, or the collection was made from another source.
    """
    from ...indexer.errors import UsageError
    from ..api.functions import check_origin

    source = sources[0]
    if len(sources) > 1 or str(source) == "-":
        what = "several sources" if len(sources) > 1 else "standard input"
        said = f"{what}: name the collection, for example --to texts.sonde"
        raise UsageError(said, code="missing-option", field="to")
    whole = source.expanduser().resolve()
    name = whole.name
    for _ in range(2 if Path(name).suffix.lower() in PACKED else 1):
        name = name if whole.is_dir() else Path(name).stem
    if not name:
        raise UsageError(f"{source} does not name the collection: name it with --to", code="missing-option", field="to")
    target = Path(f"{name}.sonde")
    check_origin(target, source)
    return target
