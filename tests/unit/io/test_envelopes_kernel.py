"""The kernel unpacks what the definition unpacks, of each key and of damaged objects; others tries the fuzz target ``packed``."""

import json

import pytest

from receipt_cli.io import envelopes
from tests.fuzz.targets.packed import NATIVE, agree, unpack

pytestmark = pytest.mark.skipif(NATIVE is None, reason="there is no compiled kernel")
TIME = "2026-01-02T03:04:05.123456789Z"
KEYS = sorted(
    {*envelopes._LINES, *envelopes._TIMES, *envelopes._LEVELS, *envelopes._OUTSIDE, *envelopes._RAISED, *envelopes._NUMBERS}
)
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
        agree([text])


@pytest.mark.parametrize("size", [*range(40), 4079, 4080, 4081, 10_000])
def test_bytes_are_counted(size: int) -> None:
    text = (b"\n\na\n" * size)[:size]
    assert NATIVE is not None and NATIVE.unpack(text, [], bytes) == (text, text.count(b"\n"), -1)
