"""A small mutator for where no coverage-guided engine is installed: seeds, spliced, cut, repeated and sprinkled."""

import random
from collections.abc import Sequence

LARGEST = 4096
_TOKENS = (
    *(b"0 1 9 -1 . , : ; = | / \\ \" ' { } [ ] ( ) < > % # @ ! ? * + - _ ~ ^ & $ nan inf NaN -0 1e308 1e-400".split()),
    *(b"9" * 40, b"\x1b[31m", b"\x1b]0;", b"\r", b"\n", b"\r\n", b"\0", b"\x08", b"\xff", b"\xc3", b"\xe2\x80\xae", b"\t", b" "),
    *(b"null", b"true", b"step ", b"loss: ", b"epoch", b"2026-01-02 03:04:05", b"[rank3]:", b"{'", b'{"', b"': ", b'": '),
)


def mutate(seeds: Sequence[bytes], rng: random.Random) -> bytes:
    """Return one of ``seeds`` after some changes."""
    data = bytearray(rng.choice(seeds) if seeds else b"")
    for _ in range(rng.choice((0, 1, 1, 2, 4, 8, 16))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 4, 16, 64)))
        kind = rng.randrange(7)
        if kind == 0:
            del data[at:end]
        elif kind == 1:
            data[at:end] = rng.choice(_TOKENS)
        elif kind == 2:
            data[at:at] = rng.choice(_TOKENS) * rng.choice((1, 1, 2, 50))
        elif kind == 3:
            data[at:end] = bytes(data[at:end]) * rng.choice((2, 3, 40))
        elif kind == 4 and at < len(data):
            data[at] = rng.randrange(256)
        elif kind == 5 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif seeds:
            other = rng.choice(seeds)
            start = rng.randrange(len(other) + 1)
            data[at:end] = other[start : start + rng.choice((1, 8, 64, 512))]
    return bytes(data[:LARGEST])
