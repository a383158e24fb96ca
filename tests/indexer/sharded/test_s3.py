"""Collections in S3, by HTTP and from the command line: what a user types, and where the credentials are not."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from two_ways import rows

pytestmark = [pytest.mark.distributed, pytest.mark.enable_socket]

SECRET = "wJalrXUtnFEMI-not-a-real-secret"
ADDRESS = "s3://shop/reviews.sonde"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """An S3 server on the loopback interface, with one bucket."""
    port = 5_061
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        for _ in range(300):
            try:
                urllib.request.urlopen(urllib.request.Request(f"{url}/shop", method="PUT")).read()
                break
            except urllib.error.URLError:
                time.sleep(0.2)
        yield url
        process.terminate()


class Machine:
    """A user with a terminal, a home folder and credentials in the environment."""

    def __init__(self, server: str, home: Path) -> None:
        home.mkdir()
        self.home = home
        self.environment = {
            **os.environ,
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": server,
            "AWS_ALLOW_HTTP": "true",
        }
        self.said = ""

    def sonde(self, *words: object, code: int = 0) -> str:
        """Run a command and return what it printed."""
        command = [sys.executable, "-c", "from sonde.app.cli.main import main; main()", *map(str, words)]
        ran = subprocess.run(command, capture_output=True, text=True, env=self.environment, cwd=self.home)
        self.said += ran.stdout + ran.stderr
        assert ran.returncode == code, ran.stderr
        return ran.stdout if code == 0 else ran.stderr


def test_from_one_machine_to_another(server: str, tmp_path: Path) -> None:
    one, two = Machine(server, tmp_path / "one"), Machine(server, tmp_path / "two")
    source = tmp_path / "reviews.csv"
    texts = rows(60)
    source.write_text("id,text\n" + "".join(f"{row['id']},{row['text']}\n" for row in texts))
    printed = one.sonde("index", source, "--to", ADDRESS, "--shards", 3, "--model", "static")
    assert printed.startswith(f"{ADDRESS}: 60 added")
    assert f"try: sonde search {ADDRESS}" in printed
    local = one.sonde("index", source, "--to", "local.sonde", "--shards", 3, "--model", "static")
    assert "60 added" in local
    query = ("red apple", "-k", 20, "--json")
    assert two.sonde("search", ADDRESS, *query) == one.sonde("search", "local.sonde", *query)
    assert "60 unchanged" in two.sonde("index", source, "--to", ADDRESS)
    assert two.sonde("delete", ADDRESS, "d3").strip().split(";")[0] in ("", "1 document deleted")
    assert "documents  59 in 3 shards" in one.sonde("info", ADDRESS)
    one.sonde("tag", ADDRESS, "long", "--where", "length > 5")
    assert len(two.sonde("search", ADDRESS, "red", "--where", '"tag:long"', "-k", 99, "--json").splitlines()) > 5
    assert two.sonde("runs", ADDRESS).split()[:2] == ["tag", "long"]
    assert one.sonde("verify", ADDRESS) == ""
    missing = one.sonde("search", "s3://shop/other.sonde", "red", code=1)
    assert missing == "sonde: there is no collection at s3://shop/other.sonde\n"
    one.environment["AWS_ENDPOINT_URL"] = "http://127.0.0.1:9"
    refused = one.sonde("search", ADDRESS, "red", code=1)
    assert refused.count("\n") == 1
    assert refused.startswith(f"sonde: {ADDRESS}: ")
    for machine in (one, two):
        assert SECRET not in machine.said
        files = [path for path in machine.home.rglob("*") if path.is_file()]
        assert files
        assert not any(SECRET.encode() in path.read_bytes() for path in files)
