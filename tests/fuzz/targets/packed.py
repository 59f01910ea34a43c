"""Lines that a collector packed: the kernel unpacks what the definition unpacks, however their bytes arrive."""

import json

from receipt_cli.io.envelopes import CUT_AT, Unpacker
from receipt_cli.scan.presence import load_kernel
from tests.fuzz.feed import Feed, choice, cut

NATIVE = load_kernel()
_TIME = "2026-01-02T03:04:05.123456789Z"


def target(data: bytes) -> None:
    feed = Feed(data)
    places = [feed.below(1 << 16) for _ in range(3)]
    agree(cut(feed.rest(), places))


def agree(pieces: list[bytes]) -> None:
    """Raise if the kernel unpacks something else."""
    assert unpack(NATIVE, pieces) == unpack(None, pieces)


def unpack(native: object, pieces: list[bytes]) -> tuple[bytes, list[int]]:
    """Return what is unpacked of ``pieces``, and the lines that are empty."""
    unpacker = Unpacker(native)
    return b"".join(map(unpacker.feed, pieces)) + unpacker.rest(), list(unpacker.emptied)


def seeds() -> list[bytes]:
    entries: list[dict[str, object]] = [
        {"log": "it 1\n", "stream": "stdout", "time": _TIME},
        {"date": 1767323045.25, "stream": "stderr", "log": 'é█\U0001f600\x00\x1f"\\/'},
        {"labels": {"app": "a"}, "line": json.dumps({"log": "it 2\n", "time": _TIME}), "timestamp": _TIME},
        {"MESSAGE": [65, 10], "_HOSTNAME": "n1", "_PID": "7", "__REALTIME_TIMESTAMP": "1767323045123456"},
        {"level": "error", "msg": "a\r\nb\n\r", "exc_info": "Traceback (", "loss": 2.5},
        {"textPayload": "it 1", "severity": "ERROR", "timestamp": "2026-01-02T03:04:05+0100"},
        {"log": "y" * CUT_AT, "stream": "stdout", "time": _TIME},
        {"step": 1, "loss": [1, {"b": None}], "message": "", "time": 3 * 10**18},
    ]
    lines = [json.dumps(entry, ensure_ascii=ascii_only) for entry in entries for ascii_only in (True, False)]
    lines += [
        json.dumps(entry, separators=form) for entry in entries[:4] for form in ((",", ":"), (" , ", " : "), (",\t", "  :  "))
    ]
    lines += [f"{_TIME} stdout {kind} step {kind}" for kind in "PPF"] + [f"[{lines[0]},", f"{_TIME}\t{lines[4]}]", "plain", ""]
    cuts = b"".join(choice(number, 1 << 16) for number in (7, 90, 400))
    return [cuts + text.encode() + b"\n" for text in (*lines, "\n".join(lines), "\n".join(lines[::3]))]
