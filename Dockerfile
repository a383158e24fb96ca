# Sonde on a CPU: the service, the web UI and the command line. See docs/docker.md.
FROM python:3.11-slim-bookworm AS build

# The CPU index of PyTorch's installation page: docker build --build-arg TORCH_INDEX=https://...
# Without it, pip brings the build of torch with CUDA: several GB.
ARG TORCH_INDEX=""

WORKDIR /src
COPY . .
# Without torch: docker build --build-arg EXTRAS=ui,formats. For s3:// and Ray, add distributed.
ARG EXTRAS="cluster,formats,models,plots,topics,ui,uvloop"
RUN python -m venv /opt/sonde \
 && /opt/sonde/bin/python release/weights.py \
 && /opt/sonde/bin/pip install --no-cache-dir -c constraints.txt ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} ".[$EXTRAS]"

FROM python:3.11-slim-bookworm

# libgomp1: OpenMP for numba, which UMAP runs on
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgomp1=12.* \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --user-group --uid 10001 sonde \
 && install -d -o sonde -g sonde /collections /keys /cache

COPY --from=build /opt/sonde /opt/sonde
ENV PATH=/opt/sonde/bin:$PATH HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1 SONDE_CACHE=/cache HF_HOME=/cache/huggingface
USER 10001:10001
WORKDIR /collections
VOLUME ["/collections"]
EXPOSE 8080 8501

HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]

ENTRYPOINT ["sonde"]
CMD ["ui", "/collections", "--host", "0.0.0.0", "--port", "8501", "--keys", "/keys/keys.json"]
