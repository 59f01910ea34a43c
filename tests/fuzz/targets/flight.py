"""Files of a GPU Flight session or a table of Nsight, whatever stands in them → a valid document; or a refusal."""

import gzip
import io
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.validate import has_errors, validate_bytes
from receipt_cli.errors import ReceiptError
from receipt_cli.gpu_profile.document import build_document
from receipt_cli.gpu_profile.files import list_streams
from receipt_cli.gpu_profile.nsys import read_report
from receipt_cli.gpu_profile.session import read_session
from receipt_cli.gpu_profile.stream import StreamProblems
from tests.fuzz.feed import Feed
from tests.fuzz.harness import ROOT

_NAMES = (
    *("device.1.log", "device.1.log.gz", "scope.1.log.gz", "run.device.0.log", "run.scope.0.log", "run.system.0.log"),
    *("device.3.log.gz", ".tmp/device.log", "pairs.ndjson", "sass.2.log", "x", "device.999999999.log", "nsys.csv"),
)
_FIXTURES = sorted(path for path in (ROOT / "fixtures" / "flight").rglob("*") if path.is_file() and path.suffix != ".md")
_BETWEEN = b"\x00"
"""Parts the files of an input."""


def target(data: bytes) -> None:
    feed = Feed(data)
    chosen = [(feed.pick(_NAMES), feed.byte() < 128) for _ in range(3)]
    parts = feed.rest().split(_BETWEEN)[: len(chosen)]
    files: dict[str, bytes] = {}
    for (name, packed), part in zip(chosen, parts, strict=False):
        files[name] = gzip.compress(part, 1) if packed and name.endswith(".gz") else part
    profile(files)


def profile(files: Mapping[str, bytes]) -> dict[str, Any] | None:
    """Return the document of a session, valid and with every line counted, or None if it is refused as it may be."""
    streams = [(name, partial(io.BytesIO, body)) for name, body in files.items()]
    try:
        if "nsys.csv" in files:
            document = read_report(streams)
        else:
            document = build_document(read_session(list_streams(streams), StreamProblems()))
    except ReceiptError as error:
        assert error.exit_code in (2, 3, 4), error.render()
        return None
    findings = validate_bytes(canonical_bytes(document), "made")
    assert not has_errors(findings), findings
    problems = [problem["kind"] for problem in document["derivation"]["problems"]["first"]]
    if not _packed_or_damaged(files, problems):
        lines = sum(line.strip() != b"" for body in files.values() for line in body.split(b"\n"))
        assert sum(document["derivation"]["records"].values()) == lines
    return document


def _packed_or_damaged(files: Mapping[str, bytes], problems: list[str]) -> bool:
    """Return whether some lines are not counted: a file is compressed, no part of a session, or damaged."""
    return "damaged_file" in problems or any(name in ("x", ".tmp/device.log") or name.endswith(".gz") for name in files)


def seeds() -> list[bytes]:
    found = []
    for path in _FIXTURES:
        body = path.read_bytes()
        text = gzip.decompress(body) if path.suffix == ".gz" else body
        name = _NAMES.index("nsys.csv" if path.suffix == ".csv" else path.name if path.name in _NAMES else _NAMES[0])
        lines = text.split(b"\n")
        parts = (lines[:3] + lines[-4:], lines[:8], lines[len(lines) // 2 :][:6])
        found += [bytes([name, 0, 3, 0, 4, 0]) + b"\n".join(part)[:4000] for part in parts]
    table = (ROOT / "fixtures" / "flight" / "nsys-stats.csv").read_bytes()
    found.append(bytes([_NAMES.index("nsys.csv"), 200, 3, 0, 4, 0]) + table)
    pairs = [Path(path).read_bytes() for path in _FIXTURES if path.suffix == ".log"]
    return [*found, bytes([3, 0, 4, 0, 5, 0]) + _BETWEEN.join(text[:1300] for text in pairs[:3])]
