"""Exports without the personal data that patterns find."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from fake_encoder import FakeEncoder
from small_reviews import encoder, sonde  # noqa: F401  (fixtures)

from sonde.app.api import Collection, index
from sonde.indexer.errors import UsageError
from sonde.pipelines.check import Masker

TOLD = "names and street addresses are not found: read the texts before you share them"


def test_each_kind_is_replaced_and_the_rest_stays() -> None:
    masker = Masker("GB")
    assert masker.text("Call 020 7946 0958, or write to ann@example.org!") == "Call [phone], or write to [email]!"
    assert masker.text("pay AT61 1904 3002 3457 3201 please") == "pay [account] please"
    assert masker.text("4111 1111 1111 1111 from 8.8.8.8") == "[card] from [IP address]"
    assert masker.text("line 7 is late by 20 minutes") == "line 7 is late by 20 minutes"
    assert masker.row({"id": "a@b.example", "tags": ["a@b.example", 3], "n": 1, "none": None}) == {
        "id": "a@b.example", "tags": ["[email]", 3], "n": 1, "none": None,
    }  # fmt: skip
    said: list[Any] = []
    masker.say(said.append)
    assert said == [
        f"note: masked 2 e-mail addresses, 1 phone number, 1 bank account, 1 payment card, 1 IP address; {TOLD}"
    ]


def test_a_number_that_no_longer_exists_is_no_number() -> None:
    assert Masker("GB").text("My number: 0171 2345678") == "My number: 0171 2345678"
    assert Masker("DE").text("My number: 0171 2345678") == "My number: [phone]"
    with pytest.raises(UsageError, match="'XX' is not a region"):
        Masker("XX")


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    rows = [{"id": f"d{n}", "text": f"late parcel {n}", "note": "fine"} for n in range(6)]
    rows[0] |= {"text": "late parcel, write to ann@example.org", "note": "or call 020 7946 0958"}
    fake: Any = FakeEncoder()
    return index(rows, tmp_path / "shop.sonde", id="id", text="text", encoder=fake)


def test_documents_and_groups_are_exported_masked(shop: Collection, tmp_path: Path) -> None:
    said: list[Any] = []
    shop.export(tmp_path / "a.csv", mask=True, region="GB", progress=said.append)
    assert (tmp_path / "a.csv").read_text().splitlines()[1] == 'd0,,"late parcel, write to [email]",or call [phone]'
    assert said == [f"note: masked 1 e-mail address, 1 phone number; {TOLD}"]
    lines = io.StringIO()
    shop.export_lines(lines, mask=True)
    assert json.loads(lines.getvalue().splitlines()[0])["note"] == "or call 020 7946 0958"
    shop.cluster("k", k=1, refits=0)
    shop.export_groups(tmp_path / "g.jsonl", "k", mask=True, where="text ILIKE '%ann%'")
    assert json.loads((tmp_path / "g.jsonl").read_text())["quote 1"] == "late parcel, write to [email]"
    with pytest.raises(UsageError, match="region needs mask"):
        shop.export(tmp_path / "b.csv", region="GB")


def test_masking_from_the_command_line(sonde: Command, shop: Collection, tmp_path: Path) -> None:  # noqa: F811
    ran = sonde("export", shop.path, "--to", tmp_path / "a.jsonl", "--mask")
    assert f"note: masked 1 e-mail address; {TOLD}" in ran.said
    assert "note: phone numbers without a country code were not looked for: give --region" in ran.said
    assert "[email]" in (tmp_path / "a.jsonl").read_text()
    assert "[email]" in sonde("export", shop.path, "--mask").out
    sonde("export", shop.path, "--region", "GB").refused("--region needs --mask", code=2)
