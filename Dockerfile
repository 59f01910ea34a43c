# docker build -t receipt . && docker run --rm -i receipt parse - < run.log
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN python -m venv /opt/receipt && /opt/receipt/bin/pip install --no-cache-dir '/source[store]'

FROM python:3.13-slim
COPY --from=build /opt/receipt /opt/receipt
ENV PATH=/opt/receipt/bin:$PATH
RUN useradd --create-home receipt
USER receipt
WORKDIR /work
ENTRYPOINT ["receipt"]
CMD ["--help"]
