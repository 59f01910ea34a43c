"""Push the latest metrics of a running job to a Prometheus Pushgateway, from a separate thread."""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

MIN_INTERVAL_S = 15.0
"""Fewest seconds between two pushes; only the last one, from ``close``, may come sooner."""
_NAME = re.compile(r"[^a-zA-Z0-9_:]")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_LOOK_S = 1.0
_PREFIX = "receipt_"
_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Post = Callable[[str, bytes, Mapping[str, str], float], None]
"""(address, body, headers, limit in seconds) → None; raises ``OSError`` if the gateway does not accept it."""


class MetricsPusher:
    """Push the last value of each metric to ``url``, the address of a Pushgateway, as a gauge ``receipt_NAME``.

    ``offer`` never waits for the network: it puts the values into a queue of ``queue_size`` steps, which a daemon thread empties
    every second; a full queue drops the oldest (``dropped_count``). The thread pushes every ``interval_s`` seconds, at most
    every 15; a failed push is counted (``failed_count``), and its values go with the next. Nothing is raised into the training
    loop. ``labels`` group the pushed metrics; ``heads`` are HTTP headers such as Authorization; redirects are not followed.
    """

    def __init__(
        self,
        url: str,
        *,
        job: str,
        labels: Mapping[str, str] | None = None,
        heads: Mapping[str, str] | None = None,
        interval_s: float = MIN_INTERVAL_S,
        timeout_s: float = 5.0,
        queue_size: int = 64,
        clock: Callable[[], float] = time.monotonic,
        post: Post | None = None,
    ) -> None:
        self._address = push_address(url, job, labels or {})
        self._heads = {"Content-Type": _TYPE, **(heads or {})}
        self._interval = max(MIN_INTERVAL_S, interval_s)
        self._timeout = timeout_s
        self._clock = clock
        self._post = post_over_http if post is None else post
        self._waiting: deque[Mapping[str, float | None]] = deque(maxlen=max(1, queue_size))
        self._lock = threading.Lock()
        self._latest: dict[str, float] = {}
        self._fresh = False
        self._closing = threading.Event()
        self.pushed_count = 0
        self.failed_count = 0
        self.dropped_count = 0
        self._thread = threading.Thread(target=self._run, name="receipt-push", daemon=True)
        self._thread.start()

    def offer(self, step: int, metrics: Mapping[str, float | None]) -> None:
        """Queue the values of a step; None and values that are not numbers are left out."""
        values = {**metrics, "step": step}
        with self._lock:
            self.dropped_count += len(self._waiting) == self._waiting.maxlen
            self._waiting.append(values)

    def close(self, timeout_s: float = 5.0) -> bool:
        """Push the remaining values once and end the thread; return whether that took at most ``timeout_s`` seconds."""
        self._closing.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def __enter__(self) -> MetricsPusher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        due = self._clock()  # push the first values at once
        while not self._closing.wait(_LOOK_S):
            self._take()
            if self._fresh and self._clock() >= due:
                due = self._clock() + self._interval
                self._push()
        self._take()
        if self._fresh:
            self._push()

    def _take(self) -> None:
        """Move the waiting values into the latest ones."""
        while self._waiting:
            for name, value in self._waiting.popleft().items():
                with contextlib.suppress(TypeError, ValueError, OverflowError):
                    self._latest[name] = float(value)  # type: ignore[arg-type]
                    self._fresh = True

    def _push(self) -> None:
        try:
            self._post(self._address, exposition(self._latest).encode("utf-8"), self._heads, self._timeout)
        except OSError:
            self.failed_count += 1
            return
        self.pushed_count += 1
        self._fresh = False


def push_address(url: str, job: str, labels: Mapping[str, str]) -> str:
    """Return the address of a group of a Pushgateway.

    Raises ``ValueError`` if ``url`` is not HTTP or HTTPS or contains a password (use a header), for an empty job or label, and
    for an invalid label name.
    """
    from base64 import urlsafe_b64encode
    from urllib.parse import quote, urlsplit

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the address of a Pushgateway must begin with http:// or https://")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError("the address of a Pushgateway must not have a user, query or fragment; pass a user in a header")
    path = parts.path.rstrip("/") + "/metrics"
    for name, value in {"job": job, **labels}.items():
        if not _LABEL.fullmatch(name) or not value:
            raise ValueError(f"{name!r} is not a label name, or its value is empty")
        if "/" in value:
            path += f"/{name}@base64/{urlsafe_b64encode(value.encode()).decode()}"
        else:
            path += f"/{name}/{quote(value, safe='')}"
    return f"{parts.scheme}://{parts.netloc}{path}"


def exposition(values: Mapping[str, float]) -> str:
    """Return Prometheus' text format, a gauge for each value; of two names that become equal, the later counts."""
    gauges = {_PREFIX + _NAME.sub("_", name): _prometheus(float(value)) for name, value in values.items()}
    return "".join(f"# TYPE {name} gauge\n{name} {value}\n" for name, value in gauges.items())


def _prometheus(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else "+Inf" if value > 0 else "-Inf"


def post_over_http(address: str, body: bytes, heads: Mapping[str, str], timeout_s: float) -> None:
    """Send ``body``. Raises ``OSError`` (urllib's errors are subclasses) if the gateway does not accept it."""
    from http.client import HTTPException
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Nowhere(HTTPRedirectHandler):
        """Refuses redirects: headers may contain a secret, which must not reach another address."""

        def redirect_request(self, *_: object) -> None:
            return None

    try:
        request = Request(address, data=body, headers=dict(heads), method="POST")
        with build_opener(Nowhere).open(request, timeout=timeout_s) as answer:
            answer.read(1 << 16)
    except HTTPException as error:
        raise OSError(str(error)) from error
