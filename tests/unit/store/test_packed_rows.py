"""Rows of fixed width against a dict."""

import random

import pytest

from receipt_cli.store.fingerprints import PackedRows


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_those_of_a_dict(seed: int) -> None:
    draw = random.Random(seed)
    rows, want = PackedRows(2, 3), dict[bytes, bytes]()
    for _ in range(4):  # asked in between
        for _ in range(100):
            key, value = bytes([draw.randrange(4), draw.randrange(64)]), draw.randbytes(3)
            rows.add(key, value)
            want[key] = value
        assert dict(rows) == want
        keys = [bytes([a, b]) for a in range(5) for b in range(65)]
        assert [rows.get(key) for key in keys] == [want.get(key) for key in keys]
        assert {key for key in keys if key in rows} == set(want)
    assert list(dict(rows)) == sorted(want)


def test_keys_alone_are_a_set() -> None:
    rows = PackedRows(1)
    rows.add(b"b")
    rows.add(b"b")
    assert (b"b" in rows, b"a" in rows, list(rows)) == (True, False, [(b"b", b"")])


@pytest.mark.parametrize(("key", "value"), [(b"a", b"b"), (b"ab", b""), (b"abc", b"d"), (b"a", b"bcd")])
def test_a_row_of_another_width_is_refused(key: bytes, value: bytes) -> None:
    rows = PackedRows(2, 1)
    with pytest.raises(ValueError, match="do not fit"):
        rows.add(key, value)
    assert len(rows) == 0
