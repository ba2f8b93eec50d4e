FROM python:3.13-slim
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home outlast
WORKDIR /app
COPY pyproject.toml requirements.txt README.md ./
COPY flows flows
COPY approvals approvals
COPY tasks tasks
# The lock file says which releases, pyproject.toml which packages: no test tools in the image, except Flower.
RUN pip install --no-cache-dir -c requirements.txt ".[beat]" flower
COPY . .
RUN mkdir -p .outlast && chown outlast .outlast
USER outlast
