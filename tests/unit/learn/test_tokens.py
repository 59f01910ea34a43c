"""What stands between the words of a record: numbers, fractions, times, bars."""

import pytest

from receipt_cli.learn.tokens import (
    BAR,
    FRACTION,
    NOTHING,
    NUMBER,
    RATE,
    TIME,
    read_token,
    split,
)


@pytest.mark.parametrize(
    ("text", "kind", "value", "total", "unit"),
    [
        (b"17", NUMBER, 17, None, ""),
        (b"-0.25", NUMBER, -0.25, None, ""),
        (b"1.5e-05", NUMBER, 1.5e-05, None, ""),
        (b"121,400", NUMBER, 121400, None, ""),
        (b"131.97ms", NUMBER, 131.97, None, "ms"),
        (b"29.5%", NUMBER, 29.5, None, "%"),
        (b"1.2it/s", NUMBER, 1.2, None, "it/s"),
        (b"30.3K", NUMBER, 30.3, None, "K"),
        (b"20/597", FRACTION, 20, 597, ""),
        (b"1,000 / 2,000", FRACTION, 1000, 2000, ""),
        (b"3 of 9", FRACTION, 3, 9, ""),
        (b"2:40:15", TIME, None, None, ""),
        (b"2024/10/10 17:09:41", TIME, None, None, ""),
        (b"[00:10<01:00,  3.2it/s", RATE, None, None, ""),
        (b"|###   |", BAR, None, None, ""),
        (b"[====>....]", BAR, None, None, ""),
        (b"N/A", NOTHING, None, None, ""),
    ],
)
def test_a_token_says_what_it_is(text: bytes, kind: str, value: float | None, total: float | None, unit: str) -> None:
    token = read_token(text)
    assert (token.kind, token.value, token.total, token.unit) == (kind, value, total, unit)


@pytest.mark.parametrize(
    ("record", "literals"),
    [
        (b"iter 17: loss 3.25, lr 1e-4", [b"iter", b": loss", b", lr", b""]),
        (b"step 3. Loss: 2.5", [b"step", b". Loss:", b""]),
        (b"[1][ 20/597]  lr: 0.01", [b"[", b"][", b"]  lr:", b""]),
        (b"resnet50 v1.2.3 top1_acc: 0.5", [b"resnet50 v1.2.3 top1_acc:", b""]),
        (b"step_17 at 0x7f", [b"step_17 at 0x7f"]),
        (b"Epoch3 loss2.5 Ep.4 It.20 [e7 [ep8 acc0.5", [b"Epoch", b" loss", b" Ep.", b" It.", b" [e", b" [ep", b" acc", b""]),
        (b"deepoch9 x-Ep6 losses2.5", [b"deepoch9 x-Ep6 losses2.5"]),
        (b"3 nodes, 7 of 9, 5x", [b"", b" nodes,", b",", b""]),
        (b"train: 12%|##  | 3/40 [00:01<00:09, 3.9it/s, loss=2.5]", [b"train:", b"", b"", b"", b", loss=", b"]"]),
    ],
)
def test_numbers_inside_words_are_words(record: bytes, literals: list[bytes]) -> None:
    assert split(record)[::2] == literals
