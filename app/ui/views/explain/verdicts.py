"""What the three kinds of models say of two texts."""

import streamlit as st

from .....pipelines.label import Entailment
from .....pipelines.similarity import Similarity
from ...plain import escape_markdown

CLASSES = ("entailment", "neutral", "contradiction")


def show_verdicts(found: Similarity, crossed: bool) -> None:
    """Show the scores side by side, and below them the NLI model's probabilities in both directions."""
    cosine, stage, verdict = st.columns(3, border=True)
    cosine.metric("Bi-encoder, cosine", f"{found.cosine:.3f}", help="Of both texts' vectors, -1 to 1.")
    cosine.caption(f"Angular similarity {found.angular:.3f}")
    if found.second_stage is not None:
        name = "Cross-encoder" if crossed else "Late interaction"
        stage.metric(f"{name}, score", f"{found.second_stage:.3f}")
        stage.caption("As the model gives it." if crossed else "Mean of each token's best cosine, -1 to 1.")
    verdict.metric("NLI", "paraphrase" if found.paraphrase else _word(found.forward))
    verdict.caption(
        "Each follows from the other." if found.paraphrase else "Whether the second follows from the first."
    )
    for note in found.notes:
        st.warning(escape_markdown(note[:1].upper() + note[1:] + "."), icon=":material/visibility_off:")
    if found.forward and found.backward:
        _show_probabilities(found.forward, found.backward)


def _word(verdict: Entailment | None) -> str:
    return verdict.label if verdict else "–"


def _show_probabilities(forward: Entailment, backward: Entailment) -> None:
    rows = [(name, getattr(forward, name), getattr(backward, name)) for name in CLASSES]
    st.dataframe(
        {
            "": [name for name, *_ in rows],
            "first → second": [100 * one for _, one, _ in rows],
            "second → first": [100 * two for *_, two in rows],
        },
        hide_index=True,
        column_config={
            name: st.column_config.ProgressColumn(name, min_value=0, max_value=100, format="%.1f %%")
            for name in ("first → second", "second → first")
        },
    )
