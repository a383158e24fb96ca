"""A Ray cluster of one or two nodes on this machine, whose processes can be killed and replaced."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

FAST = {
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}
"""A dead node is noticed after seconds, not after half a minute."""
RAY = [sys.executable, "-m", "ray.scripts.scripts", "start", "--num-cpus=1", "--object-store-memory=100000000"]


class Cluster:
    """Nodes with one core each; the first has the head."""

    def __init__(self, folder: Path, environment: Mapping[str, str], nodes: int = 2) -> None:
        """Start it; its processes and the commands that use it need the variables in `environment`."""
        self.folder = folder
        self.environment = {
            **os.environ, **FAST, **environment, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",
        }  # fmt: skip
        self.ports = _free_port(), _free_port()
        self.nodes = nodes
        self.start()

    @property
    def address(self) -> str:
        """What `--on` takes."""
        return f"ray://127.0.0.1:{self.ports[1]}"

    def start(self) -> None:
        """Start all nodes, at the address that it had before."""
        port, client = self.ports
        head = ["--head", f"--port={port}", f"--ray-client-server-port={client}", "--include-dashboard=false"]
        low = ["--min-worker-port=0", "--max-worker-port=0"]
        self._run([*RAY, *head, *low, f"--temp-dir={self.folder}"])
        if self.nodes > 1:
            self.join()
        _wait(lambda: _answers(client))

    def join(self) -> None:
        """Start the second node."""
        self._run([*RAY, f"--address=127.0.0.1:{self.ports[0]}"])

    def _run(self, command: list[str]) -> None:
        with (self.folder / "started.txt").open("wb") as said:
            done = subprocess.run(command, env=self.environment, stdout=said, stderr=said, check=False)
        if done.returncode:
            sys.exit((self.folder / "started.txt").read_text()[-2_000:])

    @property
    def processes(self) -> list[psutil.Process]:
        """All its processes, to judge by the token in their environment."""
        token, found = self.environment["RAY_AUTH_TOKEN"], []
        for process in psutil.process_iter():
            try:
                if process.pid != os.getpid() and process.environ().get("RAY_AUTH_TOKEN") == token:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def raylets(self) -> list[psutil.Process]:
        """The raylet of the first node, and that of the second if it lives."""
        return sorted((each for each in self.processes if _name(each) == "raylet"), key=lambda each: each.create_time())

    def head(self) -> psutil.Process:
        """The process that knows the whole cluster."""
        return next(each for each in self.processes if _name(each) == "gcs_server")

    def workers(self) -> list[psutil.Process]:
        """The processes that build shards now."""
        return [each for each in self.processes if _name(each).startswith("ray::_built")]

    def whole(self) -> None:
        """Replace the second node if it is gone."""
        for frozen in [each for each in self.raylets() if each.status() == psutil.STATUS_STOPPED]:
            frozen.kill()
            frozen.wait(10)
        if len(self.raylets()) < self.nodes:
            self.join()

    def stop(self) -> None:
        """End all its processes."""
        for _ in range(3):
            for process in (each for each in self.processes if "sonde.app.cli" not in " ".join(_command(each))):
                try:
                    process.send_signal(signal.SIGKILL)
                except psutil.Error:
                    continue
            time.sleep(0.2)


def _name(process: psutil.Process) -> str:
    try:
        first = "".join(process.cmdline()[:1])
        return first if first.startswith("ray::") else process.name()
    except psutil.Error:
        return ""


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _answers(port: int) -> bool:
    with socket.socket() as there:
        return there.connect_ex(("127.0.0.1", port)) == 0


def _wait(ready: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            sys.exit("Ray does not start")
        time.sleep(0.1)
