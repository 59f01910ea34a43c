"""Dict and JSON objects in a line: what is JSON is read as JSON, the rest is refused, and nothing runs away."""

import json
from typing import Any

from receipt_cli.records.literals import MAX_DEPTH, MAX_ITEMS, NotALiteral, Number, Text, parse_object
from receipt_cli.scan.extraction.model import MAX_KEY
from tests.fuzz.feed import Feed


def target(data: bytes) -> None:
    feed = Feed(data)
    repeats, how = feed.pick((1, 1, 1, 30, 3000)), feed.below(3)
    text = feed.rest().decode("utf-8", "surrogateescape")
    text = ("{" * repeats + text) if how == 1 else text * repeats if how == 2 else text
    text = text[: 64 << 10]
    at = text.find("{")
    if at < 0:
        return
    keys: list[tuple[int, int]] = []
    try:
        found, end = parse_object(text, at, keys)
    except NotALiteral:
        found, end = {}, -1
    assert end <= len(text) and all(at < start < stop <= len(text) for start, stop in keys)
    if end > 0:
        _check(found, text, 0)
    try:
        stated, size = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        return
    if end > 0:
        assert end == size and _same(found, stated), (found, stated)


def _check(value: Any, text: str, depth: int) -> None:
    assert depth <= MAX_DEPTH + 1
    if isinstance(value, Text) and value.start >= 0:
        assert text[value.start : value.start + len(value)] == value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check(item, text, depth + 1)
    assert MAX_ITEMS > 0 and MAX_KEY > 0


def _same(found: Any, stated: Any) -> bool:
    """Return whether both say the same; a lone surrogate and a number's digits are as the parser has them."""
    if isinstance(stated, dict):
        return (
            isinstance(found, dict)
            and len(found) <= len(stated)
            and all(
                any(_loose(key) == _loose(name) and _same(found[key], value) for name, value in stated.items()) for key in found
            )
        )
    if isinstance(stated, list):
        return isinstance(found, list) and len(found) == len(stated) and all(map(_same, found, stated))
    if isinstance(stated, bool) or stated is None:
        return found is stated
    if isinstance(stated, int | float):
        return isinstance(found, Number) and (repr(float(found)) == repr(float(stated)))
    return isinstance(found, Text) and _loose(found) == _loose(stated)


def _loose(text: str) -> str:
    return "".join("\N{REPLACEMENT CHARACTER}" if 0xD800 <= ord(letter) <= 0xDFFF else letter for letter in text)


def seeds() -> list[bytes]:
    texts = (
        b"{'loss': 0.488, 'grad_norm': 1.8, 'learning_rate': 6.9e-05, 'epoch': 0.06}",
        b'{"a": [1, 2.5, null, true], "b": {"c": "\\u00e9\\ud83d\\ude00"}}',
        b"{'x': np.float64(0.5), 'y': tensor(0.25, device='cuda:0', grad_fn=<NllLossBackward0>)}",
        b'{"a": {"b": {"c": {}}}}',
        b"{1: 2, (1): 3}",
        b'{"a": 1_000, "b": .5, "c": nan, "d": Infinity, "e": -1E5}',
        b"{'a\\'b': 'c\\n\\x41\\U0001F600'}",
        b'{"a": "\\ud800", "\\"": "\\\\"}',
        b"{}",
    )
    return [bytes([0, 0]) + text for text in texts] + [
        bytes([4, 1]) + texts[0],
        bytes([3, 2]) + texts[1],
        bytes([4, 1]) + b'"a":',
    ]
