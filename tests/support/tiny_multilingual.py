"""A tiny multilingual model: a word and its translations have nearly the same vector, and a text is their mean."""

from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

DIMENSION = 24
LISTS = {
    "en": "dog cat house rain bread water night sun book friend city garden teacher window bridge letter",
    "de": "hund katze haus regen brot wasser nacht sonne buch freund stadt garten lehrerin fenster brücke brief",
    "fr": "chien chat maison pluie pain eau nuit soleil livre ami ville jardin professeur fenêtre pont lettre",
}
WORDS = {language: words.split() for language, words in LISTS.items()}
FRAMES = {"en": "the {} and the {} near the {}", "de": "{} und {} bei {}", "fr": "le {} et la {} près de la {}"}


def save_multilingual(folder: Path, noise: float = 0.1) -> Path:
    """Save the model; the same weights every time. Words of the frames, and unknown ones, have no vector."""
    rng = np.random.default_rng(5)
    concepts = rng.standard_normal((len(WORDS["en"]), DIMENSION))
    vocabulary, vectors = ["[UNK]"], [np.zeros(DIMENSION)]
    for words in WORDS.values():
        vocabulary += words
        vectors += list(concepts + noise * rng.standard_normal(concepts.shape))
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    module = StaticEmbedding(tokenizer, embedding_weights=np.array(vectors, np.float32))
    SentenceTransformer(modules=[module], device="cpu").save(str(folder / "multilingual"), create_model_card=False)
    return folder / "multilingual"


def sentences(language: str, count: int = 40) -> list[str]:
    """Return sentences; those of the same number are translations in all languages."""
    rng = np.random.default_rng(11)
    size = len(WORDS["en"])
    chosen = {tuple(sorted(rng.choice(size, 3, replace=False).tolist())) for _ in range(4 * count)}
    return [FRAMES[language].format(*(WORDS[language][n] for n in three)) for three in sorted(chosen)[:count]]
