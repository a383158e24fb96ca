"""A tuning of a bi-encoder that is killed at a step: test_train_biencoder.py runs it in a process of its own.

usage: tuned_run.py BASE DATA TO STEP
"""

import os
import signal
import sys
from pathlib import Path

from sonde.pipelines.train.biencoder import BiencoderSettings, train_biencoder

SETTINGS = BiencoderSettings(
    epochs=4, rate=2e-3, batch=8, max_tokens=32, negatives=1, dtype="float32", save_every=0, seed=3
)


def main(base: str, data: Path, to: Path, step: int) -> None:
    """Tune until the step, then die as if the power had gone."""

    def kill(event: object) -> None:
        if getattr(event, "stage", "") == "train" and getattr(event, "done", 0) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    train_biencoder(data, to, base=base, settings=SETTINGS, share=0.2, device="cpu", notify=kill)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
