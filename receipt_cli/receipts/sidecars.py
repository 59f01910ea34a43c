"""Say what a file beside a log is, by its schema: when its lines came (``LOG.times``), what its GPUs did (``LOG.gpu``)."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import numpy as np

from receipt_cli.documents.validate import Finding, check_shape
from receipt_cli.errors import InputError
from receipt_cli.io import samples_file, times_file
from receipt_cli.io.compression import SUFFIXES
from receipt_cli.io.source import Source
from receipt_cli.problems import pointer
from receipt_cli.scan.arrivals import Arrivals

TIMES, SAMPLES = "times", "samples"
"""Kinds of files beside a log, and of their schemas."""
_VERSION = "1.0"


def sidecar_kind(data: bytes) -> str | None:
    """Return the kind of file beside a log that ``data`` begins, None if it is another file."""
    return TIMES if data.startswith(times_file.MAGIC) else SAMPLES if data.startswith(samples_file.MAGIC) else None


def read_sidecar(data: bytes, where: str) -> dict[str, Any]:
    """Return what a file beside a log says, in the form that its schema describes.

    Raises ``InputError`` if ``data``, the content of the file ``where``, is no such file, or damaged.
    """
    if sidecar_kind(data) == SAMPLES:
        found, wrong = samples_file.read_samples(data)
        if wrong is not None:
            raise InputError("is damaged", where=f"{where}:{wrong}", why="the line is neither a head nor a sample")
        return found
    arrivals = Arrivals(data)
    if arrivals.seal is None:
        raise InputError("is no whole file of times", where=where, why="no seal fits its entries, or these are malformed")
    return _times(arrivals)


def _times(arrivals: Arrivals) -> dict[str, Any]:
    seal, entries = arrivals.seal, arrivals.entries
    assert seal is not None
    launches: list[dict[str, Any]] = []
    ends = [*(launch.offset - launch.skipped for launch in entries.launches[1:]), seal.log_bytes]
    for launch, end in zip(entries.launches, ends, strict=True):
        first, last = np.searchsorted(entries.offsets, [launch.offset, end], "right").tolist()
        came = np.rint(1000 * entries.clock[first:last]).astype(np.int64).tolist()
        sizes = np.diff(entries.offsets[first:last], prepend=launch.offset).tolist()
        launches.append(
            {
                "kind": "followed" if launch.followed else "command",
                "started_ms": launch.begun_ms,
                "skipped_bytes": launch.skipped,
                "pause_ms": launch.pause_ms,
                "ended_ms": launch.ended_ms,
                "pieces": [list(piece) for piece in zip(came, sizes, strict=True)],
            }
        )
    return {
        "format": "receipt-times/1",
        "log": {"size_bytes": seal.log_bytes, "sha256": seal.log_sha256},
        "entries": {"size_bytes": seal.entry_bytes, "sha256": seal.entries_sha256},
        "unsealed_bytes": arrivals.size_bytes - times_file.HEAD_BYTES - seal.entry_bytes,
        "launches": launches,
    }


def check_sidecar(data: bytes, where: str) -> list[Finding]:
    """Return the findings on a file beside a log: a note that says what it is, and errors.

    A file of times has to fit the log beside it, if that is there. Raises ``InputError`` as ``read_sidecar`` does.
    """
    kind, found = sidecar_kind(data) or "", read_sidecar(data, where)
    wrong = check_shape(found, kind, _VERSION)
    wrong = wrong or (_of_samples(found) if kind == SAMPLES else _of_times(found, data, where))
    return wrong if wrong else [Finding("", _title(kind, found), kind, "note")]


def _of_samples(found: dict[str, Any]) -> list[Finding]:
    """Return the errors between the samples of each launch."""
    wrong: list[Finding] = []
    for number, launch in enumerate(found["launches"]):
        samples = launch["samples"]
        for at, (one, after) in enumerate(pairwise(samples), 1):
            place = pointer("launches", number, "samples", at)
            if after["ms"] < one["ms"]:
                wrong.append(Finding(f"{place}/ms", "is before the sample before it", "samples_in_order"))
            if len(after["gpus"]) != len(one["gpus"]):
                wrong.append(Finding(f"{place}/gpus", "is another number of GPUs than before", "samples_of_same_gpus"))
        for at, sample in enumerate(samples):
            if any(use is not None and use > 1 for use, _, _ in sample["gpus"]):
                wrong.append(
                    Finding(pointer("launches", number, "samples", at, "gpus"), "is used more than wholly", "utilization")
                )
    return wrong


def _of_times(found: dict[str, Any], data: bytes, where: str) -> list[Finding]:
    """Return the errors between the launches of a file of times, and between it and the log beside it."""
    timed = sum(size for launch in found["launches"] for _, size in launch["pieces"])
    whole = timed + sum(launch["skipped_bytes"] for launch in found["launches"])
    if whole > found["log"]["size_bytes"]:
        return [Finding("/launches", f"describe {whole:,} bytes of a log of {found['log']['size_bytes']:,}", "times_add_up")]
    log = next((name for end in ("", *SUFFIXES) if os.path.isfile(name := where.removesuffix(".times") + end)), None)
    if log is None or log == where:
        return []
    source = Source(log)
    source.listener = heard = Arrivals(data)
    source.measure()
    if heard.fits:
        return []
    return [Finding("/log", f"is not what {os.path.basename(log)} begins with: {heard.problem}", "times_of_log")]


def _title(kind: str, found: dict[str, Any]) -> str:
    """Return a sentence on a sound file."""
    launches = found["launches"]
    runs = f"{len(launches):,} launch{'es' * (len(launches) > 1)}"
    if kind == SAMPLES:
        samples = sum(len(launch["samples"]) for launch in launches)
        gpus = max((len(sample["gpus"]) for launch in launches for sample in launch["samples"]), default=0)
        cut = f"; its last line is cut off ({found['cut_bytes']:,} bytes)" if found["cut_bytes"] else "; whole"
        return f"{found['format']}: {samples:,} samples of {gpus} GPU{'s' * (gpus != 1)} in {runs}{cut}"
    pieces = [size for launch in launches for _, size in launch["pieces"]]
    size, left = found["log"]["size_bytes"], found["unsealed_bytes"]
    cut = f"; {left:,} bytes after its seal count for nothing" if left else "; whole"
    return f"{found['format']}: {len(pieces):,} times of {sum(pieces):,} of {size:,} bytes of the log, {runs}{cut}"
