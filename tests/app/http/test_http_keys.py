"""Who may ask the HTTP service, how often, and from where."""
# ruff: noqa: F811  (fixtures that are imported)

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from http_service import client, client_of, folder, local, refused  # noqa: F401  (fixtures)

from sonde.app.http.guard import Buckets, KeyFile, Keys, add_key
from sonde.app.http.settings import ServeSettings
from sonde.indexer.errors import SondeError, UsageError


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, str, str]:
    path = tmp_path / "keys.json"
    return path, add_key(path, "reader", "read"), add_key(path, "importer", "write")


def test_keys_are_asked_for_and_have_rights(folder: Path, keys: tuple[Path, str, str]) -> None:
    path, reading, writing = keys
    new = {"documents": [{"id": "9", "text": "new"}]}

    def as_(key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    with client_of(folder, keys=path) as client:
        for headers in ({}, as_("sonde_wrong"), {"Authorization": reading}, as_("")):
            refused(client.post("/search", json={"query": "battery"}, headers=headers), 401, "API key")
        assert client.post("/search", json={"query": "battery"}, headers=as_(reading)).status_code == 200
        refused(client.put("/documents", json=new, headers=as_(reading)), 403, "only read")
        refused(client.delete("/documents/1", headers=as_(reading)), 403, "only read")
        assert client.put("/documents", json=new, headers=as_(writing)).status_code == 200
        for path_ in ("/collections", "/metrics", "/runs", "/documents/1"):
            refused(client.get(path_), 401)
        assert client.get("/health").status_code == 200
    assert reading not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0


def test_a_file_of_keys(tmp_path: Path, keys: tuple[Path, str, str]) -> None:
    path, reading, _ = keys
    found = Keys.load(path).find(reading)
    assert found and (found.name, found.rights) == ("reader", "read")
    assert Keys.load(path).find(reading + "x") is None
    with pytest.raises(UsageError, match="'reader' cannot name a new key: it is taken"):
        add_key(path, "reader", "read")
    with pytest.raises(UsageError, match="there are no rights 'all'"):
        add_key(path, "other", "all")  # type: ignore[arg-type]
    (tmp_path / "wrong.json").write_text("[]")
    with pytest.raises(SondeError, match=r"wrong\.json is not a key file"):
        Keys.load(tmp_path / "wrong.json")


def test_a_key_file_that_others_can_change_is_refused(keys: tuple[Path, str, str]) -> None:
    path = keys[0]
    path.chmod(0o666)
    with pytest.raises(SondeError, match=rf"other users can add keys to {path}: run chmod 600 on it"):
        Keys.load(path)


def test_a_key_file_of_another_user_is_refused(keys: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = keys[0]
    if os.geteuid() == 0:
        os.chown(path, 4711, -1)
    else:
        monkeypatch.setattr("os.geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(SondeError, match=rf"^{path} belongs to another user: run chown on it, then check its keys$"):
        Keys.load(path)


def test_a_file_that_becomes_unsafe_is_noticed(keys: tuple[Path, str, str], caplog: pytest.LogCaptureFixture) -> None:
    path, reading, _ = keys
    found = KeyFile(path)
    path.chmod(0o666)
    assert found.find(reading) and found.find(reading) and found.stale
    assert caplog.text.count("other users can add keys") == 1
    path.chmod(0o600)
    assert found.find(reading) and not found.stale


def test_the_metrics_tell_that_the_keys_are_not_read(folder: Path, keys: tuple[Path, str, str]) -> None:
    path, reading, _ = keys
    with client_of(folder, keys=path) as client:
        for stale, mode in ((0, 0o600), (1, 0o666), (0, 0o600)):
            path.chmod(mode)
            found = client.get("/metrics", headers={"Authorization": f"Bearer {reading}"})
            assert f"sonde_keys_stale {stale}.0\n" in found.text
    with client_of(folder) as client:
        assert "sonde_keys_stale" not in client.get("/metrics").text


GOOD = {"name": "a", "rights": "read", "digest": "0" * 64}
NO_KEYS: dict[str, tuple[object, str]] = {
    "JSON": ('{"keys": [', "Expecting value in line 1"),
    "list": ("[]", "it has no list of keys"),
    "entry": (
        [GOOD, {"name": "b"}],
        "entry 2 of its keys needs name, rights and digest, each a text",
    ),
    "rights": ([GOOD | {"rights": "rw"}], "entry 1 of its keys ('a') has the rights 'rw': use read or write"),
    "digest": ([GOOD | {"digest": "ü"}], "entry 1 of its keys ('a') has a digest that is not 64 hexadecimal digits"),
}


@pytest.mark.parametrize("name", NO_KEYS)
def test_what_is_wrong_in_a_key_file_is_named(tmp_path: Path, name: str) -> None:
    held, why = NO_KEYS[name]
    path = tmp_path / "keys.json"
    path.write_text(held if isinstance(held, str) else json.dumps({"keys": held}))
    path.chmod(0o600)
    with pytest.raises(SondeError, match=re.escape(f"{path} is not a key file: {why}")):
        Keys.load(path)


def test_a_removed_key_ends_at_once(keys: tuple[Path, str, str], caplog: pytest.LogCaptureFixture) -> None:
    path, reading, writing = keys
    found = KeyFile(path)
    assert found.find(reading) and found.find(writing)
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({"keys": stored["keys"][1:]}))
    assert found.find(reading) is None
    assert found.find(writing)
    path.write_text("half a fil")
    assert found.find(writing), "an unusable file must not lock everybody out"
    assert "the previous ones stay valid" in caplog.text
    path.unlink()
    assert found.find(writing) and found.find(reading) is None
    path.write_text('{"keys": []}')
    assert found.find(writing) is None, "the last key was removed too"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_nothing_listens_beyond_this_machine_without_keys(host: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"listening on {host} lets other machines in, so it needs --keys"):
        ServeSettings(host=host).check_exposure()
    ServeSettings(host=host, keys=tmp_path / "keys.json").check_exposure()
    for own in ("127.0.0.1", "::1", "localhost"):
        ServeSettings(host=own).check_exposure()


@pytest.mark.parametrize("name", ["max_body", "max_text", "max_filter", "max_texts", "max_k", "queue", "batch",
                                  "connections"])  # fmt: skip
@pytest.mark.parametrize("value", [0.5, 2.5, 0, True, "7"])
def test_a_limit_that_counts_is_a_whole_number(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=rf"^{name} is {value!r}: give a whole number from 1$"):
        ServeSettings(**{name: value})
    valid: dict[str, Any] = {name: 7, "timeout": 0.5, "receive": 2.5, "rate": 0.5}
    assert getattr(ServeSettings(**valid), name) == 7


@pytest.mark.parametrize("port", [80.5, -1, 65_536])
def test_a_port_is_a_whole_number(port: Any) -> None:
    with pytest.raises(UsageError, match=rf"^port is {port}: give one from 1 to 65535, or 0 for a free one$"):
        ServeSettings(port=port)


def test_a_rate_is_held(folder: Path) -> None:
    buckets = Buckets(2.0)
    assert [buckets.take("a", now) for now in (0.0, 0.0, 0.0, 0.1, 0.5)] == pytest.approx([0, 0, 0.5, 0.4, 0])
    assert buckets.take("b", 0.1) == 0
    with client_of(folder, rate=1.0) as client:
        assert client.post("/search", json={"query": "battery"}).status_code == 200
        second = client.post("/search", json={"query": "battery"})
    refused(second, 429, "too many")
    assert second.headers["retry-after"] == "1"
