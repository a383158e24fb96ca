"""Dockerfiles and compose.yaml, which cannot be built here: they parse, and the command lines are Sonde's."""

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from sonde.app.cli.main import app_for

FILES = ("Dockerfile", "Dockerfile.gpu")


def instructions(path: Path) -> list[tuple[str, str]]:
    """Every instruction with its argument, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
    text = re.sub(r"\\\n\s*", "", text)
    return [
        (name, argument) for line in text.splitlines() if line.strip() for name, _, argument in [line.partition(" ")]
    ]


def last(path: Path, name: str) -> str:
    return [argument for each, argument in instructions(path) if each == name][-1]


def parse(words: list[str]) -> dict[str, Any]:
    """What the command line makes of words, without running them."""
    group: Any = typer.main.get_command(app_for())
    command = group.commands[words[0]]
    rest = words[1:]
    if default := getattr(command, "default", None):  # a group whose first command may be left out
        command = command.commands[default]
    with command.make_context(words[0], rest) as context:
        return dict(context.params)


def check(words: list[str]) -> None:
    found = parse(words)
    assert found["host"] == "0.0.0.0"
    assert str(found["keys"]) == "/keys/keys.json"
    assert found["port"] == {"ui": 8501, "serve": 8080}[words[0]]


@pytest.fixture
def compose(checkout: Path) -> dict[str, Any]:
    return yaml.safe_load((checkout / "compose.yaml").read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", FILES)
def test_the_image_runs_the_ui_as_nobody_in_particular(checkout: Path, name: str) -> None:
    path = checkout / name
    assert {each for each, _ in instructions(path)} <= {
        *(
            "FROM",
            "ARG",
            "WORKDIR",
            "COPY",
            "RUN",
            "ENV",
            "USER",
            "VOLUME",
            "EXPOSE",
            "HEALTHCHECK",
            "ENTRYPOINT",
            "CMD",
        ),
    }
    assert last(path, "USER") == "10001:10001"
    assert json.loads(last(path, "VOLUME")) == ["/collections"]
    assert json.loads(last(path, "ENTRYPOINT")) == ["sonde"]
    check(json.loads(last(path, "CMD")))
    assert "--interval=30s" in last(path, "HEALTHCHECK")
    assert "SONDE_CACHE=/cache" in last(path, "ENV").split()
    assert "install -d -o sonde -g sonde /collections /keys /cache" in path.read_text()  # whose owner the volumes get
    assert parse(json.loads(last(path, "CMD")))["device"] == ("cuda" if name.endswith("gpu") else "auto")


@pytest.mark.parametrize("name", FILES)
def test_the_extras_exist_and_the_python_is_the_tested_one(checkout: Path, name: str) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    text = (checkout / name).read_text()
    [extras] = re.findall(r"'\.\[(.*?)\]'|EXTRAS=\"(.*?)\"", text)
    assert set("".join(extras).split(",")) <= set(project["optional-dependencies"])
    gpu = name.endswith("gpu")  # faiss-cpu is in the base, and both packages must never be installed
    assert ("pip uninstall -y faiss-cpu" in text) == ("'faiss-gpu" in text) == gpu
    assert set(re.findall(r"FROM python:(\d\.\d+)-", text)) == {project["requires-python"].removeprefix(">=")}


def test_compose_has_ui_and_service(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {"ui", "serve"}
    assert set(compose["volumes"]) == {"collections", "keys", "cache"}
    for name, service in compose["services"].items():
        words = [re.sub(r"\$\{\w+:-(.*?)\}", r"\1", word) for word in service["command"]]
        assert words[0] == name
        check(words)
        assert service["user"] == "10001:10001"
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"] is True
        assert service["volumes"] == ["collections:/collections", "keys:/keys", "cache:/cache"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        port = parse(words)["port"]
        assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
        test = service["healthcheck"]["test"]
        assert test[:3] == ["CMD", "python", "-c"]
        compile(test[3], "healthcheck", "exec")
        assert f"http://127.0.0.1:{port}/" in test[3]


def test_other_containers_may_call_the_service_by_its_name(compose: dict[str, Any]) -> None:
    command = compose["services"]["serve"]["command"]
    assert command[command.index("--allow-host") + 1] == "serve"


def test_the_health_checks_ask_for_what_there_is(checkout: Path, compose: dict[str, Any]) -> None:
    assert "/health'" in compose["services"]["serve"]["healthcheck"]["test"][3]
    assert '"/health"' in (checkout / "app" / "http" / "service.py").read_text()


def test_only_what_is_built_goes_into_the_image(checkout: Path) -> None:
    lines = (checkout / ".dockerignore").read_text().splitlines()
    kept = {line[1:] for line in lines if line.startswith("!")}
    assert kept == {
        "app",
        "indexer",
        "pipelines",
        "src",
        "release",
        "pyproject.toml",
        "constraints.txt",
        "README.md",
        "LICENSE",
    }
    assert all((checkout / name).exists() for name in kept)
    assert "*" in lines


def test_the_page_shows_commands_that_exist(checkout: Path) -> None:
    text = (checkout / "docs" / "docker.md").read_text()
    key, index = (parse(shlex.split(line)) for line in re.findall(r"docker compose run --rm.* ui (.*)", text))
    assert key["name"] == "me"
    assert (index["sources"], str(index["to"])) == (("/data/reviews.csv",), "/collections/reviews.sonde")


def test_extras_are_an_argument_of_the_build(checkout: Path, compose: dict[str, Any]) -> None:
    """The image lacks what S3 and Ray need, and the page says how to add it."""
    given = compose["services"]["ui"]["build"]["args"]["EXTRAS"]
    assert given == "${EXTRAS:-" + last(checkout / "Dockerfile", "ARG").partition("=")[2].strip('"') + "}"
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    text = (checkout / "docs" / "docker.md").read_text()
    for extras in re.findall(r"EXTRAS=([\w,]+)", text):
        assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert "distributed" not in given and "EXTRAS=ui,formats,distributed" in text
