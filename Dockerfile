# A served run: docker run -p 127.0.0.1:8000:8000 -v RUN:/run-served:ro -v TOKEN_FILE:/token:ro IMAGE
FROM python:3.11-slim AS built
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir -c constraints.txt hatchling \
    && /venv/bin/pip install --no-cache-dir -c constraints.txt --no-build-isolation --extra-index-url https://download.pytorch.org/whl/cpu ".[serve]"

FROM python:3.11-slim
COPY --from=built /venv /venv
RUN useradd --create-home served
USER served
ENV PATH=/venv/bin:$PATH OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["r2n", "serve", "/run-served", "--host", "0.0.0.0", "--token-file", "/token"]
