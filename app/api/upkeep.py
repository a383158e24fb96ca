"""Maintain a collection: report, add, delete, compact, verify, repair, and change its model."""

import reprlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ...indexer.ann.devices import computing_on
from ...indexer.document import Document
from ...indexer.errors import Ids, OtherModelError, UsageError, arg
from ...indexer.progress import Noted, Notify, silent
from ...indexer.store.collection import check_folder
from ...indexer.store.fields import Field, type_of, wider_type
from ...indexer.store.lock import asked
from ...indexer.store.runs import columns_of_runs
from ...indexer.wording import listed
from .opened import Opened, check_device

if TYPE_CHECKING:
    from ...indexer.encoder import Encoder
    from ...indexer.ingest import BuildReport
    from ...indexer.ingest.late import LateReport
    from ...indexer.sharded.collection import ShardedCollection
    from ...indexer.store.models import OtherModel
    from ...indexer.upkeep.delete import CompactReport
    from ...indexer.upkeep.info import Info
    from ...indexer.upkeep.verify import Finding
    from ...pipelines.tune.change import ModelChange

SWITCHES = 2
"""How often a write begins again because the collection's model was changed just before it got the lock."""


class Upkeep(Opened):
    """The methods that maintain a collection.

    Example:
        >>> texts = ["Apples are red.", "Bananas are yellow.", "Cars need fuel."]
        >>> fruit = sonde.index(texts, to=folder / "fruit.sonde")
    """

    def info(self) -> "Info":
        """Return a summary of the collection: counts, model, index with its measured recall and latency, and sizes.

        Example:
            >>> fruit.info().documents
            3
        """
        if self.stored.sharded:
            from ...indexer.sharded.info import sharded_info

            return sharded_info(cast("ShardedCollection", self.stored))
        from ...indexer.upkeep.info import info

        return info(self.stored)

    def put(self, documents: Any, *, progress: Notify = silent) -> "BuildReport":
        """Add documents, or replace those with the same id, in one commit.

        Of several documents with the same id, the last is kept, and `duplicate_ids` of the report counts the others.

        Args:
            documents: `sonde.Document`s, mappings, or a table such as a DataFrame. A mapping or a row has an id, a text
                and, optionally, a title; the id may have the name of the column that the ids came from (`id_column`).
                All other values become metadata, as in `index`; `metadata` may hold them too. A metadata field of type
                text stores any value as text: 5 becomes "5". Columns of the collection's runs, which `to_pandas`
                returns, are left out, and a message names them.
            progress: Receives progress and messages.

        Raises:
            UsageError: A document has the wrong type, no id, an id or metadata that cannot be stored, or a value that
                its metadata field does not accept. Or a mapping has a name such as `titel` and no `title`, and the
                collection has no such field; `metadata` takes any name.
            SondeError: The collection was removed, no document can be used, there would be more than 1,900 metadata
                fields, or another process is writing.

        Example:
            >>> fruit.put([{"id": "pear", "text": "Pears are green."}]).added
            1
            >>> fruit.delete("pear")
            1
        """
        from ...indexer.readers.given import given_documents, with_checked_fields

        if not self.stored.sharded:
            check_folder(self.path)
        with self.stored.view() as view:
            fields = view.catalog.fields()
            runs = columns_of_runs(view.catalog, fields)
        given, noted = given_documents(documents, lambda: fields, lambda: self.id_column), Noted(progress)
        given = _without_runs([_typed(with_checked_fields(document), fields) for document in given], runs, noted)
        return replace(self._put(given, noted), notes=tuple(noted.notes))

    def _put(self, given: Sequence[Document], notify: Notify) -> "BuildReport":
        from ...indexer.ingest import BuildSettings, index_documents
        from ...indexer.sharded.build import index_sharded

        settings = BuildSettings(batch=max(1, len(given)), wait=asked().seconds, keep="last")
        index = index_sharded if self.stored.sharded else index_documents
        for _ in range(SWITCHES):
            with suppress(OtherModelError):
                return index(given, self.path, settings=settings, encoder=self.stored.encoder, notify=notify)
        return index(given, self.path, settings=settings, encoder=self.stored.encoder, notify=notify)

    def delete(self, ids: Ids | None = None, *, where: str | None = None, progress: Notify = silent) -> int:
        """Delete documents by id (one or several, or an empty list for none) or by filter; return how many.

        Raises:
            SondeError: An id does not exist (nothing is deleted in that case), or another process is writing.
            UsageError: The filter is not valid, or ids and a filter were given, or neither.

        Example:
            >>> fruit.delete(where="title = 'no such title'")
            0
        """
        from ...pipelines.analysis.selections import delete

        return delete(self.stored, ids, where, progress)

    def compact(self, *, progress: Notify = silent) -> "CompactReport":
        """Rewrite the collection without tombstones and with its segments merged.

        No text of a deleted document remains, not even with the embeddings that are kept of a previous model.

        Raises:
            SondeError: Another process is writing, or the disk is full; the collection is then unchanged.

        Example:
            >>> fruit.compact().removed  # the pear
            1
        """
        if self.stored.sharded:
            from ...indexer.sharded.upkeep import compact_sharded

            return compact_sharded(cast("ShardedCollection", self.stored), progress)
        from ...indexer.upkeep.model import compact_with_kept

        return compact_with_kept(self.path, progress)

    def verify(self) -> "list[Finding]":
        """Check every digest and count, and compare both indexes with the stored data; no findings means no errors.

        Example:
            >>> fruit.verify()
            []
        """
        from ...indexer.sharded.upkeep import verify_stored

        return verify_stored(self.stored)

    def repair(self, *, progress: Notify = silent) -> list[str]:
        """Rebuild anything broken that can be rebuilt, as found by `verify`; return what was done.

        Raises:
            SondeError: Lost vectors must be embedded again, and the model is not available.

        Example:
            >>> fruit.repair()
            []
        """
        if self.stored.sharded:
            from ...indexer.sharded.upkeep import repair_sharded

            return repair_sharded(cast("ShardedCollection", self.stored), progress)
        from ...indexer.upkeep.repair import repair

        return repair(self.stored, progress)

    def late(self, *, remove: bool = False, progress: Notify = silent) -> "LateReport":
        """Keep a late index: compressed token embeddings, so that `rerank` need not embed passages.

        Later index runs keep it up to date. If the work is stopped, call this again to continue.

        Args:
            remove: Whether to remove the late index instead, and keep none from now on.
            progress: Receives progress and messages.

        Raises:
            SondeError: Another process is writing, the disk is full, or the model is not available or has no token
                embeddings.

        Example:
            >>> fruit.late(remove=True).covered
            0
        """
        if self.stored.sharded:
            from ...indexer.sharded.late import build_late_sharded, remove_late_sharded

            stored = cast("ShardedCollection", self.stored)
            return remove_late_sharded(stored, progress) if remove else build_late_sharded(stored, progress)
        from ...indexer.ingest.late import build_late, remove_late

        return remove_late(self.path) if remove else build_late(self.stored, progress)

    def change_model(
        self,
        to: str | None = None,
        *,
        dry_run: bool = False,
        anyway: bool = False,
        encoder: "Encoder | None" = None,
        dtype: str | None = None,
        truncate_dim: int | None = None,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        normalize: bool | None = None,
        max_tokens: int | None = None,
        progress: Notify = silent,
    ) -> "ModelChange":
        """Embed the collection again with another model, compare both models, and switch by one commit.

        Documents, metadata, tags, judgements, corrections and runs stay. Others can search and write meanwhile. If the
        work is stopped, the same call continues it. It switches only if the comparison rules out a loss of more than
        0.02 in nDCG@10, hybrid and dense, or if `anyway` is true.

        Args:
            to: The new model: a name, a folder, or "static", as for `sonde.index`.
            dry_run: Embed and compare, but do not switch. The next call without it switches at once.
            anyway: Switch even if searches are, or may be, worse with the new model, or if the queries find too little
                to compare the models.
            encoder: A bi-encoder of your own, instead of `to` and the settings below.
            dtype: Precision of the new model.
            truncate_dim: Number of dimensions to keep (Matryoshka models).
            query_prompt: Text put before every query, instead of the model's own.
            document_prompt: Text put before every passage, instead of the model's own.
            normalize: Whether embeddings are scaled to length 1.
            max_tokens: Maximum tokens per passage, if fewer than the model's window.
            progress: Receives progress and messages.

        Raises:
            UsageError: The collection has this model already, or the name or a setting is not valid.
            SondeError: The model is not available, another process is writing, or the disk is full. The collection then
                keeps its old model.

        Example:
            >>> changed = fruit.change_model("static")
            >>> changed.switched, fruit.model, fruit.search("petrol", k=1)[0].text
            (True, 'static', 'Cars need fuel.')
        """
        from ...indexer.encoder import load_encoder
        from ...indexer.ingest import BuildSettings
        from ...pipelines.tune.change import change_model

        if (to is None) == (encoder is None):
            raise UsageError(f"give the new model with {arg('to')}, or an {arg('encoder')} of your own")
        if encoder is None:
            given = BuildSettings(
                model=to, dtype=dtype, truncate_dim=truncate_dim, query_prompt=query_prompt,
                document_prompt=document_prompt, normalize=normalize, max_tokens=max_tokens,
            )  # fmt: skip
            options = given.model_options()
            encoder = load_encoder(given.model_name, device=self.stored.device, notify=progress, **options)  # type: ignore[arg-type]
        return change_model(self.stored, encoder, dry_run=dry_run, anyway=anyway, notify=progress)

    def undo_model(self, *, progress: Notify = silent) -> "ModelChange":
        """Switch back to the previous model by one commit. Documents that changed since are embedded with it first.

        Runs and tuned settings of that model apply again. A second call returns to the newer model.

        Raises:
            SondeError: No previous model is kept, another process is writing, or the model is needed and not available.

        Example:
            >>> fruit.undo_model().switched, fruit.model
            (True, 'all-MiniLM-L6-v2')
        """
        from ...pipelines.tune.change import undo_model

        return undo_model(self.stored, progress)

    def discard_model(self) -> "list[OtherModel]":
        """Remove embeddings of models that were not switched to; return what was removed.

        Raises:
            SondeError: Another process is writing, or changes the model.

        Example:
            >>> fruit.discard_model()
            []
        """
        from ...pipelines.tune.change import discard_model

        return discard_model(self.stored)

    def forget_model(self) -> "list[OtherModel]":
        """Remove the previous model's embeddings, after which `undo_model` is not possible; return what was removed.

        Raises:
            SondeError: Another process is writing, or changes the model.

        Example:
            >>> [each.spec.name for each in fruit.forget_model()]
            ['static']
        """
        from ...pipelines.tune.change import forget_model

        return forget_model(self.stored)


def verify_at(path: str | Path, device: str = "auto") -> "list[Finding]":
    """Return what `verify` finds in the collection at `path`, also if some of its shards cannot be opened.

    Raises:
        UsageError: The machine has no such device.
        SondeError: There is no collection at `path`, or what is damaged is not in a shard.
    """
    from ...indexer.sharded.upkeep import verify_at

    check_device(device)
    with computing_on(device):
        return verify_at(path, device=device)


def _without_runs(documents: list[Document], columns: Sequence[str], notify: Notify) -> list[Document]:
    """Return the documents without metadata named like columns of runs, which it would hide from then on."""
    found = [name for name in columns if any(name in document.metadata for document in documents)]
    if not found:
        return documents
    notify(f"note: columns of runs are left out of the metadata: {listed(found)}")
    return [
        replace(document, metadata={name: value for name, value in document.metadata.items() if name not in found})
        for document in documents
    ]


def _typed(document: Document, fields: Mapping[str, Field]) -> Document:
    """Return the document with its metadata converted to the types of the collection's fields; dates may be text.

    A value of the wrong type would turn the whole field into text. Filters would then compare the field as text.

    Raises:
        UsageError: A value does not have the type of its field.
    """
    metadata = dict(document.metadata)
    for name, value in metadata.items():
        known = fields[name].type if name in fields else None
        if known == "date" and isinstance(value, str):
            metadata[name] = value = _date(value)
        if known not in (None, "text") and wider_type(known, type_of(value)) == "text":
            written = str(value).lower() if isinstance(value, bool | date) else reprlib.repr(value)
            shown = f"{name} of document {document.key!r} is {written}"
            said = (
                f"{shown}, and the collection's {name} is of type {known}: give a value of this type, or leave it out"
            )
            raise UsageError(said, code="wrong-type", field=name, value=value)
    return replace(document, metadata=metadata)


def _date(text: str) -> date | str:
    """Parse an ISO 8601 date or time; return any other text unchanged."""
    try:
        return datetime.fromisoformat(text) if len(text) > len("2024-03-01") else date.fromisoformat(text)
    except ValueError:
        return text
