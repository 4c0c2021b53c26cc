# syntax=docker/dockerfile:1
# Serves one trained run, or several:
#
#   docker build -t regard .
#   docker run --rm -p 127.0.0.1:8000:8000 -v "$PWD/runs/x:/run:ro" regard /run --token MY-SECRET-TOKEN
#
# then open http://127.0.0.1:8000/#token=MY-SECRET-TOKEN. The token is needed because a container cannot
# listen on the loopback address of its host. Better than on the command line, give it as a file:
# -v "$PWD/token:/token:ro" … --token-file /token

FROM python:3.13-slim AS build
# The package index with torch's CPU builds; without it pip installs torch with its CUDA libraries.
ARG PIP_EXTRA_INDEX_URL=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /source
# Dependencies first: they change less often than the code, and Docker keeps the layer.
COPY constraints.txt ./
RUN python -m venv /opt/regard \
 && /opt/regard/bin/pip install -c constraints.txt torch
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY regard regard
RUN REGARD_KERNEL=required /opt/regard/bin/pip wheel --no-deps --wheel-dir /wheels . \
 && /opt/regard/bin/pip install -c constraints.txt /wheels/*.whl

FROM python:3.13-slim
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgomp1 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin regard
COPY --from=build /opt/regard /opt/regard
ENV PATH=/opt/regard/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001
WORKDIR /tmp
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["regard", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["/run"]
