"""Topics and a map of the themes, in a process of its own: prints a digest of both, and what BERTopic's import changed.

Also whether it loaded transformers, and which of BERTopic's parts can be imported after it.

usage: themes_run.py FOLDER
"""

import json
import logging
import sys
import warnings
from hashlib import sha256
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from themes import collection, rows

from sonde.indexer.store.kinds import TOPIC
from sonde.indexer.store.runs import assignments_of, find_run, items_of


def digest(folder: Path) -> str:
    """A digest of the topics and the map of the themes."""
    made = collection(folder, rows())
    topics = made.topics(min_size=8, seed=3, sample=100)  # so that some texts are carried, and placed on the map
    places = made.map(seed=3, sample=100).places
    with made.stored.view() as view:
        run = find_run(view.catalog, TOPIC, topics.name)
        found = [array.tobytes() for array in assignments_of(view.catalog, run)]
        items = repr(items_of(view.catalog, run))
    return sha256(b"".join([*found, places.tobytes(), items.encode()])).hexdigest()


def parts_of_bertopic() -> list[type]:
    from bertopic.backend import MultiModalBackend
    from bertopic.representation import TextGeneration, ZeroShotClassification

    return [MultiModalBackend, TextGeneration, ZeroShotClassification]


if __name__ == "__main__":
    found = digest(Path(sys.argv[1]))
    blanket = [entry for entry in warnings.filters if entry[0] == "ignore" and entry[1] is None and entry[3] is None]
    silenced = [entry[2].__name__ for entry in blanket if entry[2] in (UserWarning, FutureWarning, Warning)]
    logger = logging.getLogger("BERTopic")
    told = {
        "digest": found,
        "silenced": silenced,
        "handlers": len(logger.handlers),
        "heavy": "transformers" in sys.modules,
    }
    print(json.dumps(told | {"parts": [each.__name__ for each in parts_of_bertopic()]}))
