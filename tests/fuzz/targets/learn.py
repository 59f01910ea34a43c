"""The log of a trainer that nobody knows: what is learned of it proves itself, or nothing is."""

from __future__ import annotations

from receipt_cli.detect.generic import load_generic
from receipt_cli.grammar.parse import build_grammar
from receipt_cli.learn.learned import learn
from tests.fuzz.feed import Feed, cut
from tests.fuzz.targets import layouts

_WORDS = load_generic()


def target(data: bytes) -> None:
    feed = Feed(data)
    places, repeats = [feed.below(1 << 16)], feed.pick((1, 1, 4, 20))
    text = feed.rest()
    log = b"\n".join(_counted(text, turn) for turn in range(repeats))
    found = learn(cut(log, places), _WORDS)
    again = learn([log], _WORDS)
    assert (found is None) == (again is None)
    if found is not None and again is not None:
        definition = found.definition("made", 1, "Made")
        assert repr(definition) == repr(again.definition("made", 1, "Made"))
        assert build_grammar(definition, "made.yaml", "0" * 64).rules


def _counted(text: bytes, turn: int) -> bytes:
    """Return ``text`` with a number of its own in place of the first one of each line."""
    lines = text.split(b"\n")
    return b"\n".join(line.replace(b"7", b"%d" % turn) for line in lines)


def seeds() -> list[bytes]:
    forms = (
        b"epoch 7 train_loss 2.5 val_loss 2.6",
        b"step=7, loss=2.5, lr=1e-4",
        b"[7/90] loss: 2.5 (2.6) time 0.1s",
        b'{"step": 7, "loss": 2.5}',
        b"7\t2.5\t0.1",
    )
    found = [b"\0\0\3" + form for form in forms] + [b"\0\0\3" + b"\n".join(forms)]
    return found + [b"\0\0\1" + path.read_bytes()[:3000] for path in layouts.LOGS[::6]]
