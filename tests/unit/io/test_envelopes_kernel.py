"""The kernel unpacks what the definition unpacks: objects of all kinds, whole or damaged, however their bytes arrive."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.io import envelopes
from receipt_cli.io.envelopes import CUT_AT, Unpacker
from receipt_cli.scan.kernel.loading import load_kernel

NATIVE = load_kernel()
pytestmark = pytest.mark.skipif(NATIVE is None, reason="there is no compiled kernel")
TIME = "2026-01-02T03:04:05.123456789Z"
KEYS = sorted(
    {*envelopes._LINES, *envelopes._TIMES, *envelopes._LEVELS, *envelopes._OUTSIDE, *envelopes._RAISED, *envelopes._NUMBERS}
)
TEXTS = ["it 1", "it 1\n", "a\r\nb\n\r", "", "{}", '{"log": "it 2", "time": "' + TIME + '"}', "y" * CUT_AT, "\u00e9\u2588\U0001f600", "\x00\x1f\"\\/", "Traceback (", " \ud800"]  # fmt: skip  # noqa: E501
STAMPS = [TIME, "2026-01-02 03:04:05", "2026/01/02T03:04:05,1+01:00", "2026-01-02T03:04:05+0100", "2026-01-02T03:04:05.1234567890Z", "1767323045", "01767323045123", "9" * 19, "\u0661", 1767323045, 1767323045123456, 5e9, 1767323045.25, 1.5, -1767323045, 999999999, 3 * 10**9, 3 * 10**18 - 1]  # fmt: skip  # noqa: E501
LEVELS = ["info", "WARN", "err", "Panic", "\u0131nfo", "fatal\\", "verbose-and-long"]
VALUES = st.sampled_from([*TEXTS, *STAMPS, *LEVELS, "stdout", "stderr", None, True, [], [1], ["a", {"b": [1.5e3]}], {}, {"message": "it 3"}, 1, -0.5])  # fmt: skip  # noqa: E501
ENTRIES = st.dictionaries(st.sampled_from([*KEYS, *envelopes._LINES * 4, "stream", "stream", "host", "loss", "_x", "\u00e9", ""]), VALUES, max_size=6)  # fmt: skip  # noqa: E501
FORMS = st.sampled_from(
    [{}, {"separators": (",", ":")}, {"ensure_ascii": False}, {"separators": (" , ", " : ")}, {"separators": (",\t", "  :  ")}]
)
BESIDE = st.sampled_from(["", "", "", "", "[", "x", TIME + "\t", TIME + "\t[", "a {", "\t"])
ENDS = st.sampled_from(["", "", "", "]", ",", "],\r", "\r", " ", "}"])


def unpack(native: object, pieces: list[bytes]) -> tuple[bytes, list[int]]:
    unpacker = Unpacker(native)
    return b"".join(map(unpacker.feed, pieces)) + unpacker.rest(), list(unpacker.emptied)


def agree(text: bytes, cuts: list[int]) -> None:
    at = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    pieces = [text[begin:end] for begin, end in pairwise(at)]
    assert unpack(NATIVE, pieces) == unpack(None, pieces)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    form = draw(FORMS)
    text = json.dumps(draw(ENTRIES), **form).encode("utf-8", "surrogatepass")
    text = draw(BESIDE).encode() + text + draw(ENDS).encode()
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.sampled_from([b"", b"\\", b'"', b"\xff", b"\xed\xa0\x80", b"\\u00", b"{", b"NaN", b"0", b".", b"e5", b"\n"])) + text[place + draw(st.integers(0, 1)) :]  # fmt: skip  # noqa: E501
    return text


@given(st.lists(st.one_of(lines(), st.sampled_from([b"plain", b"", f"{TIME} stdout P one".encode(), f"{TIME} stdout F two".encode(), b"a stderr P", b"{'loss': 1}"])), max_size=8), st.lists(st.integers(0, 100_000), max_size=4))  # fmt: skip  # noqa: E501
def test_the_kernel_unpacks_as_the_definition_does(given: list[bytes], cuts: list[int]) -> None:
    agree(b"\n".join(given) + b"\n", cuts)


EACH = [1, 2.5, "x", TIME, 1767323045, True, "error", "stdout", [65], {"log": "x"}]


@pytest.mark.parametrize("beside", [{"msg": "it 1"}, {"log": "it 1\n", "time": TIME}, {"message": "a", "level": "info"}])
def test_each_key_says_the_same_to_both(beside: dict[str, object]) -> None:
    keys = [*KEYS, "stream", "other", "_other"]
    entries = [entry for key in keys for value in EACH for entry in ({**beside, key: value}, {key: value, **beside})]
    lines = [json.dumps(entry).encode() + b"\n" for entry in entries]
    assert [line for line in lines if unpack(NATIVE, [line]) != unpack(None, [line])] == []
    assert len(lines) > 1000


@pytest.mark.parametrize(
    "line",
    [
        b'{"log":"a","log":"b","time":"%b"}' % TIME.encode(),
        b'{"loss": 1, "loss": "x", "log": "a", "level": "info"}',
        b'{"log" : "a", "level" : "info"}',
        b'{"log"  : "a", "level" : "info"}',
        b'{"log":\t"a", "level" : "info"}',
        b'{"l\\u006fg": "a", "msg": "b", "level": "info"}',
        b'{ "log": "a\\u00e9\\ud83d\\ude00\\n", "level": "info" }',
        b'{"log": "a", "level": "info", "x": ' + b"[" * 40 + b"]" * 40 + b"}",
        b'{"log": "a", "level": "info", "x": ' + b"1" * 5000 + b"}",
        b'{"log": "a", "level": "info", "x": [NaN, 1]}',
        b'{"log": "a", "level": "info", "x": {"a":1,}}',
        b'{"log": "a", "level": "info", "v": 01}',
        b'{"log": "a", "level": "info", "v": 1.}',
        b'{"log": "a", "level": "info", "v": 1e+}',
        b'{"log": "a\tb", "level": "info"}',
        b'{"log": "a", "level": "info"} {}',
        b'{"log": "' + b"a" * 70_000 + b'", "level": "info"}',
        b'{"":1,"log": "a", "level": "info"}',
        b'{"date":1767323045.1234567,"log":"a"}',
        b'{"date":1767323045.123456,"log":"a"}',
        b'{"date":3767323045.5,"log":"a"}',
        b'{"date":1.5e9,"log":"a"}',
        b'{"log":"\\\\","level":"info"}',
        b'{"log":"\\","level":"info"}',
        b'{"log":"a","level":"info"',
        b'{"}',
        b'{"',
        b"{" + b'"a":1,' * 60 + b'"log":"a","level":"info"}',
        b"{" + b",".join(b'"a%d":null' % n for n in range(60)) + b',"log":"a","level":"info"}',
    ],
)
def test_uncertain_objects(line: bytes) -> None:
    for text in (line, line + b"\n", b"x\n" + line + b"\n" + line + b"\ny"):
        agree(text, [])


@pytest.mark.parametrize("size", [*range(40), 4079, 4080, 4081, 10_000])
def test_bytes_are_counted(size: int) -> None:
    text = (b"\n\na\n" * size)[:size]
    assert NATIVE is not None and NATIVE.unpack(text, [], bytes) == (text, text.count(b"\n"), -1)
