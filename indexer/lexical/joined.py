"""Several lexical indexes read as one, so that BM25 scores are those of one index of all their passages."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tantivy import DocAddress, Index, Query

from ..small_files import read_json
from .index import LexicalIndex, within
from .writer import LexicalState, confirm, read_state, refuse_damaged, refuse_other_files, tantivy_errors


class JoinedLexicalIndex(LexicalIndex):
    """The indexes of several shards as one index that is only read.

    Tantivy keeps an index in segments, and computes document frequencies and the average length over all of them. A
    temporary folder with links to the segments of all shards is therefore an index with the statistics of all shards.
    """

    def __init__(self, index: Index, folder: Path, shards: np.ndarray, rows: Sequence[np.ndarray]) -> None:
        """Read a folder that `join` made.

        Args:
            index: The joined index.
            folder: Where its links are.
            shards: int64 [segments], the shard of each segment.
            rows: For each shard, int64 [rows], the row of the whole that each of its rows is, ascending.
        """
        self._shards = shards
        self._starts = np.cumsum([0, *(len(each) for each in rows)])
        self._rows = np.concatenate(rows) if rows else np.empty(0, np.int64)
        self._own = np.empty(len(self._rows), np.int64)
        for each in rows:
            self._own[each] = np.arange(len(each))
        super().__init__(index, folder)

    @classmethod
    def join(cls, folders: Sequence[Path], rows: Sequence[np.ndarray]) -> "JoinedLexicalIndex":
        """Join the indexes in these folders; `rows` is as for the class.

        Raises:
            SondeError: One is missing, damaged, or of another version of Sonde.
        """
        links = tempfile.TemporaryDirectory(prefix="sonde-", ignore_cleanup_errors=True)
        there, metas = Path(links.name), [_meta(folder, Path(links.name)) for folder in folders]
        segments = [segment for meta in metas for segment in meta["segments"]]
        joined = metas[0] | {"segments": segments, "opstamp": max(meta["opstamp"] for meta in metas)}
        (there / "meta.json").write_text(json.dumps(joined))
        confirm(there, LexicalState())
        shards = np.repeat(np.arange(len(metas)), [len(meta["segments"]) for meta in metas])
        with tantivy_errors(there):
            found = cls(Index.open(str(there)), there, shards, rows)
        found._links = links
        return found

    _links: tempfile.TemporaryDirectory[str]

    def _numbered(self, rows: np.ndarray, addresses: Sequence[DocAddress]) -> np.ndarray:
        shards = self._shards[np.array([address.segment_ord for address in addresses], np.int64)]
        return self._rows[self._starts[shards] + rows]

    def _among(self, query: Query, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # A row of the whole has the same number within its shard as rows of other shards, which are found as well.
        own = np.unique(self._own[rows])
        limit = min(self.rows, len(own) * (len(self._starts) - 1))
        scores, found = self._hits(within(self._schema, query, own.tolist()), max(limit, 1))
        wanted = np.isin(found, rows)
        return scores[wanted], found[wanted]


def _meta(folder: Path, links: Path) -> dict:
    """Check one index, link to its files, and return its list of segments."""
    read_state(folder)
    refuse_other_files(folder)
    refuse_damaged(folder)
    meta = read_json(folder / "meta.json")
    own = {str(segment["segment_id"]).replace("-", "") for segment in meta["segments"]}
    for path in folder.iterdir():
        if path.name.partition(".")[0] in own:
            (links / path.name).symlink_to(path.absolute())
    return meta
