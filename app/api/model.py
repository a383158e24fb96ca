"""Change the model of a collection, or undo the change."""

from typing import TYPE_CHECKING

from ...indexer.errors import UsageError, arg
from ...indexer.progress import Notify, silent
from .opened import Opened

if TYPE_CHECKING:
    from ...indexer.encoder import Encoder
    from ...indexer.store.models import OtherModel
    from ...pipelines.tune.change import ModelChange


class Changing(Opened):
    """The methods that change the model.

    Example:
        >>> texts = ["Apples are red.", "Bananas are yellow.", "Cars need fuel."]
        >>> fruit = sonde.index(texts, to=folder / "fruit.sonde")
    """

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
