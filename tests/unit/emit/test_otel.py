"""OpenTelemetry spans around checkpoints and evaluations, kept in memory."""

import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from receipt_cli.emit.otel import KINDS, Tracing


def test_spans_go_out_when_it_is_closed() -> None:
    exporter = InMemorySpanExporter()
    with Tracing(exporter, attributes={"service.name": "run7"}) as tracing:
        for step, kind in enumerate(KINDS):
            with tracing.span(kind, step, split="held out"):
                pass
        with tracing.span("eval") as span:
            span.set_attribute("val_loss", 2.5)
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == [*KINDS, "eval"]
    assert dict(spans[1].attributes or {}) == {"receipt.step": 1, "split": "held out"}
    assert dict(spans[3].attributes or {}) == {"val_loss": 2.5}
    assert spans[0].resource.attributes["service.name"] == "run7"


def test_spans_stand_in_one_another_and_note_exceptions() -> None:
    exporter = InMemorySpanExporter()
    tracing = Tracing(exporter)
    with pytest.raises(KeyError), tracing.span("eval"), tracing.span("validation"):
        raise KeyError("lost")
    tracing.close()
    inner, outer = exporter.get_finished_spans()
    assert inner.parent is not None
    assert inner.parent.span_id == outer.context.span_id
    assert [event.name for event in inner.events] == ["exception"]
    assert not inner.status.is_ok


def test_steps_are_not_traced() -> None:
    tracing = Tracing(InMemorySpanExporter())
    with pytest.raises(ValueError, match="unknown kind of span"), tracing.span("step"):
        pass
    tracing.close()


def test_the_programs_own_provider_is_left_alone() -> None:
    before = trace.get_tracer_provider()
    Tracing(InMemorySpanExporter()).close()
    assert trace.get_tracer_provider() is before


def test_several_threads() -> None:
    exporter = InMemorySpanExporter()
    with Tracing(exporter, queue_size=1000) as tracing:

        def work() -> None:
            for step in range(50):
                with tracing.span("checkpoint", step):
                    pass

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: work(), range(4)))
    assert len(exporter.get_finished_spans()) == 200


def test_without_an_exporter_they_go_over_otlp(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    got: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        tracing = Tracing()
        with tracing.span("checkpoint", 7):
            pass
        sent = tracing.close()
        server.shutdown()
        thread.join()
    assert sent
    (path, body), *more = got
    assert (path, more) == ("/v1/traces", [])
    spans = ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans
    assert [(span.name, span.attributes[0].value.int_value) for span in spans] == [("checkpoint", 7)]
