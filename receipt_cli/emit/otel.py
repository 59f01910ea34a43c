"""OpenTelemetry spans around checkpoints, evaluations and validations. Needs the extra ``otel``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from receipt_cli import __version__

try:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
    from opentelemetry.trace import Span
except ImportError as error:
    raise ImportError(f"spans need the extra otel ({error}); pip install 'receipt-cli[otel]'") from error

KINDS = ("checkpoint", "eval", "validation")


class Tracing:
    """Makes spans with its own provider and leaves the program's global one alone.

    Spans wait in a queue of ``queue_size``; a thread of the SDK sends them in batches every ``delay_s`` seconds and drops spans
    while the queue is full. Without ``exporter`` they are sent over OTLP and HTTP to the address in the standard variable
    ``OTEL_EXPORTER_OTLP_ENDPOINT``. ``attributes`` describe the job, such as ``service.name``.
    """

    def __init__(
        self,
        exporter: SpanExporter | None = None,
        *,
        attributes: Mapping[str, str | int | float | bool] | None = None,
        queue_size: int = 512,
        delay_s: float = 5.0,
    ) -> None:
        if exporter is None:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            exporter = OTLPSpanExporter()
        self._processor = BatchSpanProcessor(
            exporter,
            max_queue_size=queue_size,
            max_export_batch_size=min(queue_size, 128),
            schedule_delay_millis=delay_s * 1000,
        )
        self._provider = TracerProvider(resource=Resource.create(dict(attributes or {})), shutdown_on_exit=False)
        self._provider.add_span_processor(self._processor)
        self._tracer = self._provider.get_tracer("receipt_cli.emit", __version__)

    @contextmanager
    def span(self, kind: str, step: int | None = None, **attributes: str | int | float | bool) -> Iterator[Span]:
        """Trace one of ``KINDS``; record an exception that passes. Raises ``ValueError`` for another kind."""
        if kind not in KINDS:
            raise ValueError(f"unknown kind of span {kind!r}; known are {', '.join(KINDS)}")
        attributes = attributes if step is None else {"receipt.step": step, **attributes}
        with self._tracer.start_as_current_span(kind, attributes=attributes) as span:
            yield span

    def close(self, timeout_s: float = 5.0) -> bool:
        """Send the waiting spans and shut down; return whether they were sent within ``timeout_s`` seconds."""
        sent = self._provider.force_flush(int(timeout_s * 1000))
        self._provider.shutdown()
        return sent

    def __enter__(self) -> Tracing:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
