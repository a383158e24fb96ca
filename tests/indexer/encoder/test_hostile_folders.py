"""Model folders that a stranger made to hang, to crash or to take all memory: each is refused in one line."""

import base64
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import TEXTS, save_static, save_transformer
from tokenizers import Tokenizer, normalizers, pre_tokenizers

from sonde.indexer.encoder import load_encoder
from sonde.indexer.encoder.model_folder import growth, in_one_line
from sonde.indexer.errors import SondeError, UsageError

DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000
CONFIG, PROMPTS, WINDOW, TOKENIZER = (
    "config.json", "config_sentence_transformers.json", "sentence_bert_config.json", "tokenizer.json",
)  # fmt: skip
Change = Callable[[Path], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("made")
    return {"static": save_static(folder), "bert": save_transformer(folder)}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))


def text(name: str, content: str) -> Change:
    return lambda folder: (folder / name).write_text(content)


def values(name: str, **new: Any) -> Change:
    return lambda folder: (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | new))


def token(name: str, number: int | None) -> Change:
    """Give a token another number, or take it out."""

    def change(folder: Path) -> None:
        content = json.loads((folder / TOKENIZER).read_text())
        content["model"]["vocab"].pop(name)
        content["added_tokens"] = [each for each in content["added_tokens"] if each["content"] != name]
        content["model"]["vocab"] |= {} if number is None else {name: number}
        (folder / TOKENIZER).write_text(json.dumps(content))

    return change


def table(*sides: int, kind: torch.dtype = torch.float32) -> Change:
    return lambda folder: save_file({"embedding.weight": torch.zeros(sides, dtype=kind)}, folder / "model.safetensors")


def short_matrix(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if "query.weight" in name)
    save_file(weights | {name: weights[name][:5].contiguous()}, folder / "model.safetensors")


def normalizer(*steps: dict[str, Any]) -> Change:
    return values(TOKENIZER, normalizer={"type": "Sequence", "normalizers": steps})


def split(expression: str) -> Change:
    step = {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}
    return values(TOKENIZER, pre_tokenizer=step)


REPLACE = {"type": "Replace", "pattern": {"Regex": "."}, "content": "x" * 1_000}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
DEEPLY = (
    "cannot be read .it is nested too deeply.: get the model again|cannot be loaded as a Sentence-Transformers model"
)
LOAD, RUN, READ = "^cannot load the model in .*: get the model again", "^cannot run the model .*", "cannot read a text"
ANY: dict[str, tuple[Change, str]] = {
    "tokenizer, a list": (text(TOKENIZER, "[]"), "tokenizer.json holds no tokenizer: get the model again"),
    "tokenizer, empty": (text(TOKENIZER, "{}"), "tokenizer.json holds no tokenizer: get the model again"),
    "tokenizer, deep": (text(TOKENIZER, DEEP), DEEPLY),
    "tokenizer, large": (text(TOKENIZER, " " * 2_000 + "{}"), "tokenizer.json .* larger than 1,000 bytes.: get"),
    "negative id": (token("b", -5), "has ids of tokens from -5 to [0-9]+: use 0 to 10,000,000"),
    "huge id": (token("b", 4_000_000_000), "has ids of tokens from 0 to 4000000000: use 0 to 10,000,000"),
    "no unknown token": (token("[UNK]", None), f"{READ} .*Missing .UNK. token"),
    "wrong expression": (split("("), f"{LOAD}|Oniguruma error"),
    "prompt": (values(PROMPTS, prompts={"query": "\ud800"}), r"^the model's prompt: '\\ud800' is not valid Unicode"),
    "prompts, deep": (text(PROMPTS, DEEP), DEEPLY),
    "modules, deep": (text("modules.json", "[" * 100_000 + "]" * 100_000), "modules.json .*nested too deeply"),
    "modules elsewhere": (
        text("modules.json", '[{"type": "sentence_transformers.models.Transformer", "path": "/"}]'),
        "modules.json names '/', which is outside the model's folder: use another model",
    ),
    "long replacement": (normalizer(REPLACE), "tokenizer can make a text 1,001 times as long; the maximum is 64: use"),
    "replacements": (normalizer(*[REPLACE] * 3), "tokenizer can make a text 1,003,003,001 times as long"),
    "prepended": (normalizer({"type": "Prepend", "prepend": "x" * 10**6}), "make a text 1,000,001 times as long"),
    "bytes of bytes": (
        values(TOKENIZER, pre_tokenizer={"type": "Sequence", "pretokenizers": [BYTES] * 5}),
        "tokenizer can make a text 256 times as long",
    ),
}  # fmt: skip
STATIC: dict[str, tuple[Change, str]] = {
    "no rows": (table(0, 16), f"{RUN}IndexError"),
    "a row": (table(1, 16), f"{RUN}IndexError"),
    "two rows": (table(2, 16), f"{RUN}IndexError"),
    "two rows, bfloat16": (table(2, 16, kind=torch.bfloat16), f"{RUN}(not in the valid range|index_size)"),
    "two rows, float8": (table(2, 16, kind=torch.float8_e4m3fn), f"{RUN}(not in the valid range|index_size)"),
}
BERT: dict[str, tuple[Change, str]] = {
    "heads": (values(CONFIG, num_attention_heads=0), "config.json has num_attention_heads 0: a model has 1 to 65,536"),
    "many heads": (values(CONFIG, num_attention_heads=float("inf")), "has num_attention_heads inf: a model has 1 to"),
    "hidden": (values(CONFIG, hidden_size=0), "config.json has hidden_size 0: a model has 1 to 65,536"),
    "negative": (values(CONFIG, hidden_size=-32), "config.json has hidden_size -32: a model has 1 to 65,536"),
    "layers": (values(CONFIG, num_hidden_layers=10**9), "num_hidden_layers 1000000000: a model has -1,000 to 1,000"),
    "inside": (
        values(CONFIG, text_config={"num_labels": 10**9}),
        "has num_labels 1000000000: a model has 0 to 100,000",
    ),
    "types": (values(CONFIG, type_vocab_size=10**9), "has type_vocab_size 1000000000: a model has 0 to 1,000"),
    "deep": (text(CONFIG, DEEP), DEEPLY),
    "endless window": (text(WINDOW, '{"max_seq_length": 1e400}'), f"{RUN}RuntimeError: The expanded size"),
    "window": (values(WINDOW, max_seq_length="x"), "the model's max_seq_length is 'x', which is not a number"),
    "no list": (values(WINDOW, max_seq_length=[1]), r"the model's max_seq_length is \[1\], which is not a number"),
    "window, deep": (text(WINDOW, DEEP), DEEPLY),
    "tokenizer's settings": (text("tokenizer_config.json", DEEP), DEEPLY),
    "pooling": (text("1_Pooling/config.json", DEEP), DEEPLY),
    "shape": (short_matrix, f"{RUN}bias"),
}
CASES = {
    f"{kind}: {name}": (kind, *case)
    for kind, cases in (("static", ANY | STATIC), ("bert", ANY | BERT))
    for name, case in cases.items()
}


@pytest.mark.parametrize(("kind", "change", "said"), CASES.values(), ids=CASES)
def test_refused(
    made: dict[str, Path], kind: str, change: Change, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "larger than" in said:
        monkeypatch.setattr("sonde.indexer.encoder.model_folder.LARGEST_OF_MODEL", 1_000)
    folder = shutil.copytree(made[kind], tmp_path / "model")
    change(folder)
    with pytest.raises(SondeError, match=said) as refused:
        load_encoder(str(folder), device="cpu").encode_texts([*TEXTS, "☃"], query=True)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


@pytest.mark.parametrize("name", [CONFIG, TOKENIZER])
def test_a_small_file_of_millions_of_values(made: dict[str, Path], tmp_path: Path, name: str) -> None:
    """132 MB of empty lists took 3.4 GB of memory."""
    folder = shutil.copytree(made["bert"], tmp_path / "model")
    (folder / name).write_text("[" + "[]," * 2_000_000 + "[]]")
    with pytest.raises(SondeError, match=rf"{name} cannot be read .it has more than 4,000,000 values.: get the model"):
        load_encoder(str(folder), device="cpu")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
@pytest.mark.parametrize("name", [CONFIG, "modules.json", "model.safetensors", "1_Pooling/other.txt"])
def test_a_pipe_in_a_folder(made: dict[str, Path], tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(made["bert"], tmp_path / "model")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(SondeError, match=f"{name} is not a regular file: remove it, or use another model"):
        load_encoder(str(folder), device="cpu")


def test_a_layer_larger_than_its_weights(made: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(made["bert"], tmp_path / "model")
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / CONFIG).write_text('{"in_features": 60000, "out_features": 60000}')
    save_file({"linear.weight": torch.zeros(4, 4)}, folder / "2_Dense" / "model.safetensors")
    modules = json.loads((folder / "modules.json").read_text())
    kind = "sentence_transformers.models.Dense"
    (folder / "modules.json").write_text(json.dumps([*modules, {"type": kind, "path": "2_Dense"}]))
    with pytest.raises(SondeError, match=r"2_Dense/config.json describes a layer larger than its weights: use another"):
        load_encoder(str(folder), device="cpu")


def test_a_panic_of_the_tokenizers_library(made: dict[str, Path], tmp_path: Path) -> None:
    """An expression with nested repetitions: the library gives up after ten million steps, and panics."""
    folder = shutil.copytree(made["static"], tmp_path / "model")
    split("(?:x+x+)+y")(folder)
    encoder = load_encoder(str(folder), device="cpu")
    with pytest.raises(SondeError, match=f"{READ} .PanicException: Onig.*retry-limit"):
        encoder.encode_texts(["x" * 100])


def test_what_stops_a_command_is_no_damage() -> None:
    for stop in (KeyboardInterrupt, SystemExit, GeneratorExit):
        with pytest.raises(stop), in_one_line("cannot load"):
            raise stop
    with pytest.raises(UsageError, match=r"^own words$"), in_one_line("cannot load"):
        raise UsageError("own words")


def table_of(longest: int) -> bytes:
    """A table of SentencePiece's kind: no tree, and one replacement."""
    return base64.b64encode((0).to_bytes(4, "little") + b"x" * longest + b"\0")


@pytest.mark.parametrize(
    ("steps", "before", "wanted"),
    [
        ([normalizers.BertNormalizer()], pre_tokenizers.BertPreTokenizer(), 1),
        ([normalizers.NFKC(), normalizers.Lowercase()], pre_tokenizers.ByteLevel(), 1),
        ([normalizers.Replace(" ", "▁"), normalizers.Replace("``", '"')], pre_tokenizers.Metaspace(), 1),
        ([normalizers.Prepend("▁"), normalizers.Replace("\n", "<n>")], pre_tokenizers.Whitespace(), 6),
        ([normalizers.Replace("ab", "abcde")], pre_tokenizers.Whitespace(), 3),
    ],
)
def test_growth_of_known_tokenizers(steps: list[Any], before: Any, wanted: int) -> None:
    tokenizer = Tokenizer.from_str('{"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}')
    assert growth(tokenizer) == 1
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Sequence(steps), before
    assert growth(tokenizer) == wanted
    assert len(tokenizer.normalizer.normalize_str("ab\n" * 9)) <= 27 * wanted


@pytest.mark.parametrize(("longest", "wanted"), [(18, 1), (19, 2), (1_153, None)])
def test_growth_of_tables(longest: int, wanted: int | None) -> None:
    class Part:
        def __getstate__(self) -> bytes:
            return json.dumps({"type": "Precompiled", "precompiled_charsmap": table_of(longest).decode()}).encode()

    class Backend:
        normalizer, pre_tokenizer = Part(), None

    backend: Any = Backend()
    if wanted:
        assert growth(backend) == wanted
        return
    with pytest.raises(SondeError, match="the model's tokenizer can make a text 65 times as long; the maximum is 64"):
        growth(backend)
