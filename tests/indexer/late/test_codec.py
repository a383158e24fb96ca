"""Packing tokens: levels, pooling and similarities against the naive computation, and the promised size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sonde.indexer.late import Codec, Rarity, token_rows
from sonde.indexer.late.codec import levels, rounded, shares
from sonde.indexer.late.index import LINE

LARGEST_PASSAGE = 4_500
SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 19))


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def passages(count: int, tokens: int, dimension: int, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Token ids and vectors: each id has a direction of its own, and each occurrence differs a little."""
    chance = np.random.default_rng(seed)
    words = chance.standard_normal((200, dimension)) * np.geomspace(3, 0.1, dimension)
    ids = [chance.integers(0, 200, tokens) for _ in range(count)]
    return ids, [unit(words[each] + 0.05 * chance.standard_normal((tokens, dimension))) for each in ids]


@pytest.mark.parametrize("bits", [1, 2, 4])
@given(
    numbers=arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 19)), elements=st.floats(-9, 9, width=32))
)
def test_every_number_is_stored_as_its_nearest_level(bits: int, numbers: np.ndarray) -> None:
    steps, packed = levels(bits), rounded(numbers, bits)
    assert packed.shape == (len(numbers), -(-numbers.shape[1] * bits // 8))
    for row, data in zip(numbers, packed, strict=True):
        stream = "".join(f"{byte:08b}" for byte in data)
        codes = [int(stream[place * bits : (place + 1) * bits], 2) for place in range(len(row))]
        best = np.abs(steps[None, :] - row[:, None]).min(axis=1)
        assert np.abs(steps[codes] - row) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("dimension", [3, 16, 96, 97, 150, 384, 768])
def test_components_share_384_bits_or_all_are_kept_in_four(dimension: int) -> None:
    found = shares(dimension)
    assert sum(count for _, count in found) == min(dimension, 232 if dimension > 96 else 96)
    assert sum(bits * count for bits, count in found) <= 384
    assert [bits for bits, _ in found] == sorted((bits for bits, _ in found), reverse=True)


@given(tokens=st.integers(1, 2_048))
def test_no_passage_takes_more_than_promised(tokens: int) -> None:
    width = 1 + sum(bits * count for bits, count in shares(384)) // 8
    assert token_rows(tokens) * width + LINE <= LARGEST_PASSAGE * -(-tokens // 256)
    assert token_rows(tokens) <= tokens
    assert token_rows(tokens) == tokens or tokens > 32


def naive_similarities(codec: Codec, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rebuild every pooled token number by number, and take its cosine to what is kept of the query's."""
    dimension, found = len(codec.mean), np.zeros((len(query), len(rows)))
    for column, row in enumerate(rows):
        stream, rebuilt, done, at = "".join(f"{byte:08b}" for byte in row[:-1]), codec.mean.astype(np.float64), 0, 0
        for bits, count in shares(dimension):
            for place in range(count):
                code = int(stream[at + place * bits : at + (place + 1) * bits], 2)
                rebuilt = rebuilt + levels(bits)[code] * codec.components[done + place]
            done, at = done + count, at + -(-count * bits // 8) * 8
        for line, token in enumerate(query):
            kept = codec.mean.astype(np.float64)
            for component in codec.components.astype(np.float64):
                kept = kept + component * ((token - codec.mean) @ component) / (component @ component)
            found[line, column] = kept @ rebuilt / np.linalg.norm(kept) / np.linalg.norm(rebuilt)
    return found


@pytest.mark.parametrize("dimension", [16, 130])
def test_similarities_are_those_of_the_rebuilt_tokens(dimension: int) -> None:
    ids, vectors = passages(60, 40, dimension)
    codec = Codec.learn(ids, vectors)
    rows = codec.pack(ids[0], vectors[0])
    assert (rows.dtype, rows.shape) == (np.uint8, (token_rows(40), codec.width))
    found = codec.similarities(vectors[1][:5], rows)
    assert found == pytest.approx(naive_similarities(codec, vectors[1][:5], rows), abs=2e-5)


def test_packed_tokens_are_close_to_what_they_were() -> None:
    ids, vectors = passages(120, 30, 384)
    codec = Codec.learn(ids, vectors)
    found = codec.similarities(vectors[0], codec.pack(ids[0], vectors[0]))
    assert np.diag(found).min() > 0.9
    assert np.abs(found - vectors[0] @ vectors[0].T).mean() < 0.1


def test_a_component_is_as_long_as_the_deviation_along_it() -> None:
    ids, vectors = passages(80, 20, 24)
    codec, together = Codec.learn(ids, vectors), np.concatenate(vectors).astype(np.float64)
    lengths = np.linalg.norm(codec.components, axis=1)
    assert codec.mean == pytest.approx(together.mean(axis=0), abs=1e-6)
    along = (together - together.mean(axis=0)) @ (codec.components / lengths[:, None]).T
    assert along.std(axis=0) == pytest.approx(lengths, rel=1e-2)
    crossed = codec.components @ codec.components.T - np.diag(lengths**2)
    assert np.abs(crossed).max() < 1e-5
    assert (np.diff(lengths) <= 1e-6).all()


def test_like_tokens_become_one_with_the_sum_of_their_weights() -> None:
    chance = np.random.default_rng(1)
    different = unit(chance.standard_normal((32, 40)))
    vectors, ids = np.repeat(different, 2, axis=0), np.repeat(np.arange(32), 2)
    codec = Codec.learn([ids] * 10, [vectors] * 10)
    rarity = Rarity(np.arange(32), np.linspace(0.1, 3.2, 32).astype(np.float32), 9.0)
    codec = Codec(codec.mean, codec.components, rarity, codec.tokens)
    rows = codec.pack(ids, vectors)
    assert len(rows) == 32
    best = codec.similarities(different, rows).argmax(axis=1)
    assert sorted(best.tolist()) == list(range(32))  # each pair is a group
    assert codec.weights(rows)[best] == pytest.approx(np.ceil(np.linspace(0.1, 3.2, 32) / 3.2 * 255 - 1e-4), abs=1)


def test_the_same_tokens_are_packed_the_same_and_a_single_one_too() -> None:
    ids, vectors = passages(60, 70, 20)
    codec = Codec.learn(ids, vectors)
    assert codec.pack(ids[3], vectors[3]).tobytes() == codec.pack(ids[3], vectors[3]).tobytes()
    one = codec.pack(ids[3][:1], vectors[3][:1])
    assert one.shape == (1, codec.width)
    assert one[0, -1] == 255
    assert codec.similarities(vectors[3][:1], one).item() > 0.97


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(33, 120))
def test_pooling_loses_no_token(seed: int, tokens: int) -> None:
    """Every token has its group: similarities of zero tokens or of a token that was dropped would be far off."""
    ids, vectors = passages(30, tokens, 12, seed)
    codec = Codec.learn(ids, vectors)
    rows = codec.pack(ids[0], vectors[0])
    assert len(rows) <= token_rows(tokens)
    nearest = codec.similarities(vectors[0], rows).max(axis=1)
    assert np.isfinite(nearest).all() and nearest.min() > 0.3
    assert codec.weights(rows).max() == 255 and codec.weights(rows).min() >= 1


def test_the_limit_on_threads_ends_with_the_last_that_needs_it() -> None:
    from threadpoolctl import threadpool_info

    from sonde.indexer.late import one_thread_each

    def threads() -> list[int]:
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    before = threads()
    first, second = one_thread_each(), one_thread_each()
    first.__enter__()
    second.__enter__()
    assert set(threads()) <= {1}
    first.__exit__(None, None, None)
    assert set(threads()) <= {1}
    second.__exit__(None, None, None)
    assert threads() == before


def test_groups_are_those_of_scipy() -> None:
    from scipy.cluster.hierarchy import fcluster, linkage

    from sonde.indexer.late.codec import _groups

    chance = np.random.default_rng(5)
    for tokens in (33, 50, 120, 256):
        vectors = unit(chance.standard_normal((tokens, 12)))
        distances = np.sqrt(np.maximum(2 - 2 * vectors @ vectors.T, 0)[np.triu_indices(tokens, 1)], dtype=np.float64)
        expected = fcluster(linkage(distances, "ward"), token_rows(tokens), "maxclust") - 1
        assert _groups(vectors).tolist() == expected.tolist()
