"""Hyperscan's tables are kept in the user's cache; whatever stands there, the gate finds the same records."""

from pathlib import Path

import pytest

from receipt_cli.records import prefilter as gate
from receipt_cli.records.prefilter import Gate

LITERALS = [b"loss: ", b"train loss: ", b"| lm loss", b"Error", b"it/s"]
BLOCK = b"".join(b"step %d train loss: %d | lm loss\nnothing\nError %d\n" % (n, n, n) for n in range(500))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("hyperscan")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(gate, "SOME", 100)
    monkeypatch.setattr(gate, "MUCH", 200)
    return tmp_path / "receipt-cli"


def records(one: Gate, block: bytes) -> list[int]:
    """Return the beginnings of the records with a literal."""
    return sorted({block.rfind(b"\n", 0, at) + 1 for at in one.places(block)})


def kept(cache: Path) -> Path:
    """Return the file of the tables."""
    [found] = cache.glob("gate-*.bin")
    return found



def test_tables_are_kept_and_read_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    want = [at for at in range(len(BLOCK)) if (at == 0 or BLOCK[at - 1 : at] == b"\n") and BLOCK[at : at + 7] != b"nothing"]
    first = Gate(LITERALS)
    assert records(first, BLOCK) == want and kept(cache).stat().st_size > 100
    monkeypatch.setattr(Gate, "_shortest", lambda self: pytest.fail("the tables are there"))
    again = Gate(LITERALS)
    assert records(again, BLOCK) == want and again._database is not None
    few = Gate(LITERALS)
    assert few.places(BLOCK[:90]) and few._database is None  # too little for them
    assert records(few, BLOCK[:36]) == [0] and few._database is not None  # enough for what is kept


@pytest.mark.parametrize("damage", [b"", b"x", b"\x00" * 300])
def test_what_cannot_be_trusted_is_made_again(cache: Path, damage: bytes) -> None:
    want = records(Gate(LITERALS), BLOCK)
    path = kept(cache)
    sound = path.read_bytes()
    path.write_bytes(damage or sound[:-1] + b"\x7f")
    assert records(Gate(LITERALS), BLOCK) == want
    assert path.read_bytes() == sound


def test_tables_of_another_machine_are_made_again(cache: Path) -> None:
    want = records(Gate(LITERALS), BLOCK)
    path = kept(cache)
    key, _, tables = path.read_bytes().partition(b"\n")[2].partition(b"\n")
    gate.keep_bytes(path.name, key + b"\n" + b"\xff" * len(tables))  # sound in itself, and nothing that hyperscan takes
    assert records(Gate(LITERALS), BLOCK) == want


def test_other_literals_have_other_tables(cache: Path) -> None:
    Gate(LITERALS).places(BLOCK)
    other = Gate([b"nothing"])
    assert records(other, BLOCK) == [at for at in range(len(BLOCK)) if BLOCK.startswith(b"nothing", at)]
