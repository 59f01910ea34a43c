"""What ``benchmarks.against`` says of two stores."""

import json

import pytest

from benchmarks import against


def text(problems: list[str], value: float | None = 1.0, tool: str = "1") -> bytes:
    first = [{"detail": detail} for detail in problems]
    return json.dumps({"derivation": {"tool_version": tool, "problems": {"first": first}}, "value": value}).encode()


OLD = {"receipts/a": text(["x", "y"]), "receipts/b": text([])}


@pytest.mark.parametrize(
    ("new", "ignored", "pointers"),
    [
        (OLD, (), {}),
        ({**OLD, "receipts/b": text([], tool="2")}, (), {"/derivation/tool_version": 1}),
        ({**OLD, "receipts/b": text([], tool="2")}, against.IGNORED, {}),
        ({**OLD, "receipts/a": text(["z", "z"])}, (), {"/derivation/problems/first/*/detail": 2}),
        ({**OLD, "receipts/a": text(["z", "z"])}, against.DETAILS, {}),
        ({**OLD, "receipts/a": text(["z"], None)}, against.DETAILS, {"/derivation/problems/first/*": 1, "/value": 1}),
        ({**OLD, "receipts/b": OLD["receipts/b"] + b"\n"}, against.IGNORED, {against.TEXT: 1}),
    ],
    ids=["same", "tool", "tool ignored", "details", "details ignored", "one fewer, and a value lost", "text"],
)
def test_pointers_that_differ(new: dict[str, bytes], ignored: tuple[str, ...], pointers: dict[str, int]) -> None:
    found = against.compare(OLD, new, ignored)
    assert (dict(found.pointers), found.differs) == (pointers, bool(pointers))


def test_a_document_of_one_store_alone_differs() -> None:
    found = against.compare(OLD, {"receipts/b": OLD["receipts/b"], "receipts/c": b"{}"}, ())
    assert (found.only_old, found.only_new, found.same, found.differs) == (["receipts/a"], ["receipts/c"], 1, True)
