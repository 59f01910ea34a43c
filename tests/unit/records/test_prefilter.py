"""With hyperscan's tables or without, the gate finds the same records."""

import pytest

from receipt_cli.records import prefilter as gate
from receipt_cli.records.prefilter import Prefilter

LITERALS = [b"loss: ", b"train loss: ", b"| lm loss", b"Error", b"it/s"]
BLOCK = b"".join(b"step %d train loss: %d | lm loss\nnothing\nError %d\n" % (n, n, n) for n in range(500))
WANT = [at for at in range(len(BLOCK)) if (at == 0 or BLOCK[at - 1 : at] == b"\n") and BLOCK[at : at + 7] != b"nothing"]


@pytest.fixture(autouse=True)
def little_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hyperscan")
    monkeypatch.setattr(gate, "MUCH", 200)


def records(one: Prefilter, block: bytes) -> list[int]:
    """Return the beginnings of the records with a literal."""
    return sorted({block.rfind(b"\n", 0, at) + 1 for at in one.places(block)})


def test_tables_are_made_where_they_are_worth_it_and_find_the_same() -> None:
    few = Prefilter(LITERALS)
    assert few.places(BLOCK[:90]) and few._database is None  # too little for them
    assert records(few, BLOCK) == WANT and few._database is not None
    assert records(few, BLOCK) == WANT


def test_without_hyperscan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "hyperscan", None)
    one = Prefilter(LITERALS)
    assert records(one, BLOCK) == WANT and one._database is None
    assert records(one, BLOCK) == WANT


def test_other_literals_have_other_tables() -> None:
    Prefilter(LITERALS).places(BLOCK)
    other = Prefilter([b"nothing"])
    assert records(other, BLOCK) == [at for at in range(len(BLOCK)) if BLOCK.startswith(b"nothing", at)]
