"""The pusher: what it sends, how often, and that it never stands in the way."""

import math
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from unittest.mock import patch

import pytest
from prometheus_client.parser import text_string_to_metric_families

from receipt_cli.emit.push import MetricsPusher, exposition, post_over_http, push_address


def values_of(text: str) -> dict[str, float]:
    return {sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples}


def test_what_is_sent_is_read_by_prometheus() -> None:
    text = exposition({"loss": 2.5, "rewards/margin": -1e-9, "nan": math.nan, "up": math.inf, "down": -math.inf, "step": 7})
    told = values_of(text)
    assert math.isnan(told.pop("receipt_nan"))
    assert told == {
        "receipt_loss": 2.5,
        "receipt_rewards_margin": -1e-9,
        "receipt_up": math.inf,
        "receipt_down": -math.inf,
        "receipt_step": 7.0,
    }
    assert {family.type for family in text_string_to_metric_families(text)} == {"gauge"}


@pytest.mark.parametrize(
    ("url", "labels", "want"),
    [
        ("http://gate:9091", {}, "http://gate:9091/metrics/job/train"),
        ("https://gate/push/", {"instance": "a b"}, "https://gate/push/metrics/job/train/instance/a%20b"),
        ("http://[::1]:9091", {"path": "x/y"}, "http://[::1]:9091/metrics/job/train/path@base64/eC95"),
    ],
)
def test_the_address_of_a_group(url: str, labels: dict[str, str], want: str) -> None:
    assert push_address(url, "train", labels) == want


@pytest.mark.parametrize(
    ("url", "job", "labels"),
    [
        ("ftp://gate", "train", {}),
        ("http://", "train", {}),
        ("http://user:secret@gate", "train", {}),
        ("http://gate", "", {}),
        ("http://gate", "train", {"a-b": "c"}),
        ("http://gate", "train", {"a": ""}),
    ],
)
def test_other_addresses_are_refused(url: str, job: str, labels: dict[str, str]) -> None:
    with pytest.raises(ValueError) as error:
        MetricsPusher(url, job=job, labels=labels)
    assert "secret" not in str(error.value)


class Gateway(BaseHTTPRequestHandler):
    """Keeps what is pushed."""

    got: list[tuple[str, str, str | None, bytes]]
    answer = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.path, self.headers["Content-Type"], self.headers["Authorization"], body))
        self.send_response(self.answer)
        if self.answer == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def gateway() -> Iterator[tuple[str, type[Gateway]]]:
    class Here(Gateway):
        got: list[tuple[str, str, str | None, bytes]] = []  # noqa: RUF012

    with HTTPServer(("127.0.0.1", 0), Here) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", Here
        server.shutdown()
        thread.join()


def test_the_last_values_reach_a_gateway(gateway: tuple[str, type[Gateway]]) -> None:
    url, here = gateway
    with MetricsPusher(url, job="train", labels={"rank": "0"}, heads={"Authorization": "Bearer x"}) as pusher:
        pusher.offer(1, {"loss": 3.0, "lr": None})
        pusher.offer(2, {"loss": 2.0, "odd": "text"})  # type: ignore[dict-item]
    assert (pusher.pushed_count, pusher.failed_count, pusher.dropped_count) == (1, 0, 0)
    (path, kind, user, body), *more = here.got
    assert more == []
    assert path == "/metrics/job/train/rank/0"
    assert kind.startswith("text/plain; version=0.0.4")
    assert user == "Bearer x"
    assert values_of(body.decode()) == {"receipt_step": 2.0, "receipt_loss": 2.0}


@pytest.mark.parametrize("answer", [302, 400, 500])
def test_a_push_that_is_not_taken_is_counted(gateway: tuple[str, type[Gateway]], answer: int) -> None:
    url, here = gateway
    here.answer = answer
    pusher = MetricsPusher(url, job="train")
    pusher.offer(1, {"loss": 3.0})
    assert pusher.close()
    assert (pusher.pushed_count, pusher.failed_count) == (0, 1)
    assert len(here.got) == 1  # a redirection is not followed


def test_a_gateway_that_is_not_there_is_counted() -> None:
    pusher = MetricsPusher("http://127.0.0.1:9", job="train", timeout_s=0.5)
    pusher.offer(1, {"loss": 3.0})
    assert pusher.close()
    assert pusher.failed_count == 1
    with pytest.raises(OSError):
        post_over_http("http://127.0.0.1:9/", b"", {}, 0.5)


class Times:
    """Notes when something is pushed, by a clock that moves when the test says so."""

    def __init__(self, fail: int = 0) -> None:
        self.at: list[float] = []
        self.bodies: list[dict[str, float]] = []
        self.fail = fail
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def wait_for(self, pushes: int) -> None:
        limit = time.monotonic() + 60
        while len(self.at) < pushes:
            assert time.monotonic() < limit
            time.sleep(0.001)

    def post(self, address: str, body: bytes, heads: Mapping[str, str], timeout_s: float) -> None:
        self.at.append(self.clock())
        self.bodies.append(values_of(body.decode()))
        if len(self.at) <= self.fail:
            raise OSError("no")


@pytest.mark.parametrize("interval", [0.0, 15.0])
def test_pushes_are_fifteen_seconds_apart_at_least(interval: float) -> None:
    times = Times(fail=1)
    with patch("receipt_cli.emit.push._LOOK_S", 0.005):
        pusher = MetricsPusher("http://gate", job="train", interval_s=interval, clock=times.clock, post=times.post)
        for push in range(4):
            for early in (14.0, 14.9) if push else ():
                times.now = 15.0 * (push - 1) + early
                pusher.offer(push, {"loss": 0.0})
                time.sleep(0.05)
            times.now = 15.0 * push
            pusher.offer(push, {"loss": 1.0})
            times.wait_for(push + 1)
        pusher.offer(69, {"loss": 2.0})
        assert pusher.close(60)
    assert times.at == [0.0, 15.0, 30.0, 45.0, 45.0]  # the last one is of the end
    assert pusher.failed_count == 1
    assert times.bodies[-1]["receipt_step"] == 69.0


def test_a_full_queue_drops_the_oldest_and_counts_them() -> None:
    pusher = MetricsPusher("http://gate", job="train", queue_size=3, post=(times := Times()).post)
    for step in range(10):
        pusher.offer(step, {f"only{step}": 1.0})
    assert pusher.dropped_count == 7
    pusher.close()
    assert set(times.bodies[-1]) == {"receipt_step", "receipt_only7", "receipt_only8", "receipt_only9"}


def test_a_slow_gateway_holds_nothing_up() -> None:
    let_go = threading.Event()
    pusher = MetricsPusher("http://gate", job="train", post=lambda *_: let_go.wait(3600) and None)
    pusher.offer(1, {"loss": 1.0})
    assert pusher.close(timeout_s=0.2) is False
    for step in range(1000):
        pusher.offer(step, {"loss": 1.0})
    assert not let_go.is_set()
    let_go.set()
    assert pusher.close(timeout_s=60)


def test_nothing_is_pushed_when_there_is_nothing_new() -> None:
    times = Times()
    MetricsPusher("http://gate", job="train", post=times.post).close()
    assert times.at == []
