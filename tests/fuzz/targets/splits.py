"""A log cut anywhere and merged gives what one pass gives."""

from benchmarks.identity import find_difference, plain_body
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import shipped
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import Segment
from tests.fuzz.feed import Feed, choice, cut
from tests.fuzz.targets import layouts

_ENGINE = Engine(shipped(), load_catalogue())


def target(data: bytes) -> None:
    feed = Feed(data)
    way = feed.pick((_one_pass, _left_to_right, _by_halves))
    places = [feed.below(1 << 16) for _ in range(feed.pick((1, 2, 3, 8)))]
    log = feed.rest()
    difference = find_difference(_plain(way(cut(log, places))), _plain(_ENGINE.scan([log])))
    assert difference is None, difference


def _one_pass(pieces: list[bytes]) -> Segment:
    return _ENGINE.scan(pieces)


def _left_to_right(pieces: list[bytes]) -> Segment:
    left = Segment()
    for piece in pieces:
        left = _ENGINE.merge(left, _ENGINE.scan([piece]))
    return left


def _by_halves(pieces: list[bytes]) -> Segment:
    middle = len(pieces) // 2
    return _ENGINE.merge(_left_to_right(pieces[:middle]), _left_to_right(pieces[middle:]))


def _plain(stretch: Segment) -> dict[str, object]:
    size, last = stretch.size, stretch.last_bytes
    body, lines = _ENGINE.finish(stretch)
    return {"size": size, "last": last, "lines": lines, **plain_body(body)}


def seeds() -> list[bytes]:
    head = b"\2" + choice(11, 1 << 16) + choice(500, 1 << 16) + choice(900, 1 << 16)
    odd = b"a\r\nb\r\r\n\x1b[31m\r\nc\x08\x08\rd\x00\n\xff\n\xe2\x96\x88\r\n"
    odd += b" 12%|# | 5/40 [00:01<00:07,  4.9it/s]\riter 1: loss 2.5, time 1.00ms\n"
    odd += b"[rank0]:\x1b[31mstep:  1  \x1b[32mloss: 12.38837  \x1b[38;2;180;60;0mgrad_norm: 20.75\x1b[39m\n^[[B^[[A\x1b]0;t\x07"
    odd += b"0: 2026-01-02T03:04:05Z iter 30: loss nan, time 1.00ms, mfu -100.00%\rtorch.OutOfMemoryError: CUDA out of memory.\n"
    odd += b"{'loss': 0.488, 'grad_norm': 1.8, 'learning_rate': 6.9e-05, 'epoch': 0.06}\r\n" + b"x" * 300 + b"iter 40: loss"
    return [bytes([number % 3]) + head + log for number, log in enumerate((odd, *(data[6:] for data in layouts.seeds()[::5])))]
