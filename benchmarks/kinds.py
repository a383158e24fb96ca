"""What each kind of vector index costs and gains from 100,000 to 5 million vectors, which `auto` chooses by.

    python benchmarks/kinds.py --collection large.sonde --sizes 100000,500000,2000000 --kinds hnsw,ivf-sq8

The vectors are those of a collection. Beyond its size they are repeated with noise (cosine 0.9 to the original), so
that no two are equal. Each case runs in a process of its own. Seconds and milliseconds are processor time, so other
work beside it changes little. A search asks for as many candidates as hybrid search does, and includes the rescoring
from the float16 vectors; its queries are vectors that no index holds. Recall@10 is against the exact scan.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _side_by_side import machine

from sonde.indexer.ann import AnnSettings, ArraySource, Kind, build, exact_search

QUERIES = 300
NOISE = 0.48
"""Length of the noise added to a unit vector: 0.48 leaves a cosine of 0.9."""


def main() -> None:
    """Measure each case in a process of its own and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path, required=True)
    parser.add_argument("--sizes", default="100000,500000")
    parser.add_argument("--kinds", default="hnsw,ivf-sq8,ivf-fastscan,ivf-rabitq")
    parser.add_argument("--target", type=float, default=0.98)
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(measured(Path(arguments.case[0]), arguments.case[1], arguments.target)))
        return
    print(machine("faiss-cpu", "numpy"))
    print("| vectors | kind | build CPU s | build s | index MB | peak MB | search CPU ms | recall@10 | parameters |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for size in map(int, arguments.sizes.split(",")):
            path = Path(folder) / f"{size}.npy"
            np.save(path, enlarged(stored_vectors(arguments.collection), size + QUERIES))
            for kind in arguments.kinds.split(","):
                command = [sys.executable, __file__, "--collection", "", "--target", str(arguments.target)]
                ran = subprocess.run([*command, "--case", str(path), kind], capture_output=True, text=True)
                if ran.returncode:
                    sys.exit(ran.stderr)
                print(f"| {size:,} | {kind} | {' | '.join(json.loads(ran.stdout))} |", flush=True)
            path.unlink()


def stored_vectors(collection: Path) -> np.ndarray:
    """All vectors of a collection, float16 [n, d]."""
    import sonde

    with sonde.open(collection).stored.view() as view:
        return np.concatenate([block.astype(np.float16) for _, block in view.generation.segments.chunks(65536)])


def enlarged(half: np.ndarray, size: int) -> np.ndarray:
    """`size` unit vectors, float16 [size, d]: those of a collection in random order, then noisy repetitions."""
    random = np.random.default_rng(0)
    result = np.empty((size, half.shape[1]), np.float16)
    for start in range(0, size, len(half)):
        part = half[random.permutation(len(half))[: size - start]].astype(np.float32)
        if start:
            noise = random.standard_normal(part.shape, dtype=np.float32)
            part += NOISE * noise / np.linalg.norm(noise, axis=1, keepdims=True)
            part /= np.linalg.norm(part, axis=1, keepdims=True)
        result[start : start + len(part)] = part
    return result[random.permutation(size)]


def measured(path: Path, kind: Kind, target: float) -> list[str]:
    """One row of the table, from the build of one index."""
    from sonde.pipelines.search.settings import DEPTH

    half = np.load(path, mmap_mode="r")
    source, queries = ArraySource(half[:-QUERIES]), half[-QUERIES:].astype(np.float32)
    before = peak_megabytes()
    began, cpu = time.perf_counter(), time.process_time()
    index = build(source, AnnSettings(kind=kind, target_recall=target))
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = peak_megabytes() - before
    truth = exact_search(source, queries, 10)[0][:, -1:]
    recall = (index.search(queries, 10, vectors=source)[0] >= truth).mean()
    times = []
    for query in queries:
        start = time.process_time()
        index.search(query[None], DEPTH, vectors=source)
        times.append(time.process_time() - start)
    said = " ".join(f"{name} {value}" for name, value in index.info.parameters.items())
    return [
        f"{cpu:.0f}",
        f"{took:.0f}",
        f"{index.info.bytes / 1e6:.0f}",
        f"{peak:.0f}",
        f"{1000 * np.median(times):.2f}",
        f"{recall:.3f}",
        said,
    ]


def peak_megabytes() -> float:
    """Peak resident memory of this process, mapped pages of the vectors included."""
    kilobytes = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]  # ru_maxrss counts the parent's
    return int(kilobytes) / 1e3


if __name__ == "__main__":
    main()
