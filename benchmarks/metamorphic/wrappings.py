"""What launchers, collectors, terminals and loggers put around each line of a log: a function of lines for each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

Lines = Sequence[bytes]
"""The lines of a log, each with its line end."""
_BEGIN = datetime(2026, 5, 6, 7, 8, 9, 123456, UTC)
_PART = 60
"""Bytes of the parts that a line is cut into where a collector cuts long lines (it cuts them at 16 KiB)."""


def _moment(number: int) -> datetime:
    return _BEGIN + timedelta(milliseconds=200 * number)


def _iso(number: int, zone: str = "Z") -> str:
    return _moment(number).strftime("%Y-%m-%dT%H:%M:%S.%f") + zone


def _seconds(number: int) -> float:
    return _moment(number).timestamp()


def _bare(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


Head = Callable[[int], str]
Packing = Callable[[int, str], object]


def _headed(head: Head) -> Callable[[Lines], bytes]:
    return lambda lines: b"".join(head(number).encode() + line for number, line in enumerate(lines))


def _packed(packing: Packing, *, keep_end: bool) -> Callable[[Lines], bytes]:
    def pack(lines: Lines) -> bytes:
        texts = (_text(line if keep_end else _bare(line)) for line in lines)
        return b"".join(json.dumps(packing(n, text), ensure_ascii=False).encode() + b"\n" for n, text in enumerate(texts))

    return pack


def _cut(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, max(len(text), 1), size))


def _cri_parts(lines: Lines) -> bytes:
    made = []
    for number, line in enumerate(lines):
        *parts, last = _cut(_text(_bare(line)), _PART)
        made += [f"{_iso(number)} stdout P {part}\n" for part in parts]
        made.append(f"{_iso(number)} stdout F {last}\n")
    return "".join(made).encode()


def _docker_parts(lines: Lines) -> bytes:
    made = []
    for number, line in enumerate(lines):
        made += [{"log": part, "stream": "stdout", "time": _iso(number)} for part in _cut(_text(line), 16384)]
    return "".join(json.dumps(part, separators=(",", ":")) + "\n" for part in made).encode()


def _cloudwatch(lines: Lines) -> bytes:
    stamps = [int(_seconds(number) * 1000) for number in range(len(lines))]
    events = [
        {"logStreamName": "job/1", "timestamp": stamp, "message": _text(_bare(line)), "ingestionTime": stamp + 900}
        for stamp, line in zip(stamps, lines, strict=True)
    ]
    return json.dumps({"events": events, "searchedLogStreams": []}, indent=4).encode() + b"\n"


def _cloud_logging(lines: Lines) -> bytes:
    entries = [
        {"insertId": f"a{n}", "resource": {"type": "k8s_container"}, "textPayload": _text(_bare(line)), "timestamp": _iso(n)}
        for n, line in enumerate(lines)
    ]
    return json.dumps(entries, indent=2).encode() + b"\n"


def _journal(number: int, text: str) -> object:
    message: object = text if "\x1b" not in text else list(text.encode())  # as journalctl does
    stamp = str(int(_seconds(number) * 1e6))
    named = {"_HOSTNAME": "node001", "SYSLOG_IDENTIFIER": "train", "_PID": "812", "PRIORITY": "6"}
    return {"__CURSOR": f"s={number}", "__REALTIME_TIMESTAMP": stamp, **named, "MESSAGE": message}


def _kubernetes(number: int, text: str) -> object:
    pod = {"pod_name": "trainer-0", "container_name": "pytorch", "labels": {"job": "7"}}
    return {"log": text, "message": text[:40], "stream": "stderr", "time": _iso(number), "kubernetes": pod}


def _fluent(number: int, text: str) -> object:
    return {"date": round(_seconds(number), 6), "stream": "stdout", "log": text, "kubernetes": {"pod_name": "trainer-0"}}


def _loki(number: int, text: str) -> object:
    return {"labels": {"app": "trainer", "pod": "trainer-0"}, "line": text, "timestamp": _iso(number)}


def _filebeat(number: int, text: str) -> object:
    log = {"offset": 80 * number, "file": {"path": "/var/log/containers/trainer.log"}}
    return {"@timestamp": _iso(number), "message": text, "log": log, "stream": "stdout", "agent": {"type": "filebeat"}}


def _logger(number: int, text: str) -> object:
    time = f"{_moment(number):%Y-%m-%d %H:%M:%S},{number % 1000:03}"
    return {"asctime": time, "levelname": "INFO", "name": "train", "message": text}


def _elapsed(number: int) -> str:
    return str(timedelta(seconds=number // 5)).rjust(8, "0")


WRAPPINGS: dict[str, Callable[[Lines], bytes]] = {
    "docker json-file": _packed(lambda n, text: {"log": text, "stream": "stdout", "time": _iso(n)}, keep_end=True),
    "docker json-file, long lines cut": _docker_parts,
    "CRI": _headed(lambda n: f"{_iso(n)} stdout F "),
    "CRI, lines in parts": _cri_parts,
    "Fluent Bit JSON": _packed(_fluent, keep_end=False),
    "Kubernetes JSON with log and message": _packed(_kubernetes, keep_end=True),
    "Loki JSON": _packed(_loki, keep_end=False),
    "Loki text with labels": _headed(lambda n: f'{_iso(n)} {{app="trainer", pod="trainer-0"}} '),
    "Filebeat JSON": _packed(_filebeat, keep_end=False),
    "CloudWatch events": _cloudwatch,
    "CloudWatch export": _headed(lambda n: f"{_iso(n)[:-4]}Z "),
    "Cloud Logging JSON": _cloud_logging,
    "journald JSON": _packed(_journal, keep_end=False),
    "journald short, RFC 3164": _headed(lambda n: f"{_moment(n):%b %d %H:%M:%S} node001 train[812]: "),
    "RFC 5424": _headed(lambda n: f"<14>1 {_iso(n)} node001 train 812 - - "),
    "ts": _headed(lambda n: f"{_moment(n):%b %d %H:%M:%S} "),
    "ts -i, ts -s": _headed(lambda n: f"{_elapsed(n)} "),
    "ts %.s": _headed(lambda n: f"{_seconds(n):.6f} "),
    "ts -s %.s": _headed(lambda n: f"{n / 5 + 0.000123:.6f} "),
    "ts %FT%.T": _headed(lambda n: f"{_iso(n, '')} "),
    "ts [%Y-%m-%d %H:%M:%S]": _headed(lambda n: f"[{_moment(n):%Y-%m-%d %H:%M:%S}] "),
    "Python logging": _headed(lambda n: f"{_moment(n):%Y-%m-%d %H:%M:%S},{n % 1000:03} - train - INFO - "),
    "Python logging, basic": _headed(lambda _: "INFO:root:"),
    "Python logging, level first": _headed(lambda n: f"[INFO] {_moment(n):%Y-%m-%d %H:%M:%S} "),
    "Python logging, JSON": _packed(_logger, keep_end=False),
    "loguru": _headed(lambda n: f"{_moment(n):%Y-%m-%d %H:%M:%S}.{n % 1000:03} | INFO     | __main__:main:12 - "),
    "GitHub Actions": _headed(lambda n: f"{_iso(n)[:-1]}0Z "),
    "GitLab CI": _headed(lambda n: f"{_iso(n)} 01O "),
    "Buildkite": _headed(lambda n: f"\x1b_bk;t={int(_seconds(n) * 1000)}\x07"),
    "srun --label": _headed(lambda _: "0: "),
    "torchrun": _headed(lambda _: "[default0]:"),
    "torchrun, rank": _headed(lambda _: "[rank0]: "),
    "Ray": _headed(lambda _: "(RayTrainWorker pid=21663, ip=10.0.0.1) "),
    "mpirun --tag-output": _headed(lambda _: "[1,0]<stdout>:"),
    "mpirun --timestamp-output": _headed(lambda n: f"{_moment(n):%a %b %d %H:%M:%S %Y}[1,0]<stdout>:"),
    "pdsh": _headed(lambda _: "gpu250: "),
    "docker compose": _headed(lambda _: "trainer-0  | "),
    "kubectl --prefix": _headed(lambda _: "[pod/trainer-0-x7/pytorch] "),
    "kubectl --prefix --timestamps": _headed(lambda n: f"[pod/trainer-0-x7/pytorch] {_iso(n)} "),
    "colour": lambda lines: b"".join(b"\x1b[32m%b\x1b[0m\n" % _bare(line) if _bare(line) else line for line in lines),
    "script(1)": lambda lines: b"".join(re.sub(rb"\r?\n\Z", b"\r\n", line) for line in lines),
}
"""By name: lines → the bytes of the log that a collector keeps of them."""
