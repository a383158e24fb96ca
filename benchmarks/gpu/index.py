"""`sonde index` from a file to a searchable collection, as a command of its own, and how busy the card is meanwhile."""

import shutil
import statistics
import subprocess
import sys
from time import perf_counter

from _stage import Stage

SONDE = "from sonde.app.cli.main import main; main()"
ASK = ("nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-i", "0", "-lms", "250")


def main() -> None:
    """Measure one run."""
    stage = Stage.of("index")
    source = stage.source
    shutil.rmtree(stage.collection, ignore_errors=True)
    watch = subprocess.Popen(ASK, stdout=subprocess.PIPE, text=True) if stage.device == "cuda" else None
    command = [sys.executable, "-c", SONDE, "index", source, "--to", stage.collection, "--device", stage.device]
    began = perf_counter()
    ran = subprocess.run(command, capture_output=True, text=True)
    took = perf_counter() - began
    if watch:
        watch.terminate()
    if ran.returncode:
        raise SystemExit(f"sonde index failed: {ran.stderr.strip()}")
    rate = f"{stage.passages:,} passages in {took:,.1f} s, {stage.passages / took:,.0f} a second"
    stage.row("sonde index, from the file until searchable", rate, goal="1,000,000 in 60 s")
    if watch:
        shares = [float(line) for line in watch.communicate()[0].split()]
        busy = statistics.mean(shares) if shares else float("nan")
        stage.row("card busy during the run, as nvidia-smi tells", f"{busy:.0f} %", goal="90 %")


if __name__ == "__main__":
    main()
