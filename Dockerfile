# docker build -t ranksieve .
# docker run -p 8000:8000 -v "$PWD:/data" ranksieve serve index --model model.txt --host 0.0.0.0 --read-only

FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY experiments experiments
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /wheels

FROM python:3.12-slim
# OpenMP: without it Numba's threads cannot serve several requests at a time
RUN apt-get update && apt-get install --yes --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir "$(ls /wheels/*.whl)[serve,zst,plots]"
RUN useradd --create-home --uid 1000 ranksieve && install --directory --owner ranksieve /var/cache/ranksieve /data
USER ranksieve
# kernels are compiled here, not when the container starts
ENV NUMBA_CACHE_DIR=/var/cache/ranksieve
RUN ranksieve warm-up --quiet
WORKDIR /data
EXPOSE 8000
ENTRYPOINT ["ranksieve"]
CMD ["--help"]
