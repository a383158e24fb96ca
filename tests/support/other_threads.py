"""An environment in which every library takes another number of threads than in this process."""

import os

NAMES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def other_threads() -> dict[str, str]:
    """Return one thread for each library that has several here, and two for the others.

    One process with it says as much as two processes with one and two threads, and compiles Numba's functions once.
    """
    several = str(os.cpu_count() or 1)
    here = {name: os.environ.get(name, several) for name in NAMES}
    if "OMP_NUM_THREADS" in os.environ:  # which MKL and OpenBLAS take where nothing else is given
        here |= {name: os.environ.get(name, os.environ["OMP_NUM_THREADS"]) for name in NAMES[1:3]}
    return {**os.environ, **{name: "2" if count == "1" else "1" for name, count in here.items()}}
