"""Whatever a foreign document has become: a valid receipt, or an error of ours that is no bug."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import ExitCode, ReceiptError
from receipt_cli.importers.importing import import_document

FOREIGN = Path(__file__).resolve().parents[2] / "fixtures" / "foreign"
FILES = sorted(path for path in FOREIGN.rglob("*") if path.suffix in (".json", ".md"))
OBJECTS = [path for path in FILES if path.suffix == ".json" and "crashed" not in path.name]
ODD = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["NaN", "ok", "cuda_oom", [], {}, [[]], {"a": 1}, 10**400, -1, 1e308, 2**53])
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


@st.composite
def changed_values(draw: st.DrawFn) -> tuple[str, bytes]:
    """A fixture of which some values are others, or gone."""
    path = draw(st.sampled_from(OBJECTS))
    document = json.loads(path.read_bytes())
    for _ in range(draw(st.integers(1, 4))):
        *way, last = draw(st.sampled_from([p for p in places(document) if p] or [("a",)]))
        holder = document
        for key in way:
            holder = holder[key]
        if draw(st.booleans()) or not isinstance(holder, dict):
            holder[last] = copy.deepcopy(draw(ODD))
        else:
            holder.pop(last, None)
    return path.name, json.dumps(document).encode()


@st.composite
def changed_bytes(draw: st.DrawFn) -> tuple[str, bytes]:
    """A fixture with bytes removed, repeated and replaced."""
    path = draw(st.sampled_from(FILES))
    data = bytearray(path.read_bytes())
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 60)))
        data[start:end] = draw(
            st.binary(max_size=6) | st.sampled_from([b"", b"NaN", b"{", b"]", b"\n", bytes(data[start:end]) * 2])
        )
    return path.name, bytes(data)


def import_bytes(name: str, data: bytes) -> bytes | None:
    """Return the receipt of a document, or None where it is refused as it may be."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            return canonical_bytes(import_document(str(path)).document)  # validated before it is returned
        except ReceiptError as error:
            assert error.exit_code in (ExitCode.INPUT, ExitCode.GRAMMAR), error.render()
            return None


@settings(max_examples=120, deadline=None)
@given(changed_values())
def test_other_values_give_a_valid_receipt_or_a_refusal(document: tuple[str, bytes]) -> None:
    assert import_bytes(*document) == import_bytes(*document)


@settings(max_examples=120, deadline=None)
@given(changed_bytes())
def test_other_bytes_give_a_valid_receipt_or_a_refusal(document: tuple[str, bytes]) -> None:
    import_bytes(*document)
