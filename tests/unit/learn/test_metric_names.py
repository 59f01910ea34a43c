"""The words beside a number decide its role, and words of other things keep it from one."""

import pytest

from receipt_cli.detect.generic import load_generic
from receipt_cli.learn.names import read_names, read_role
from receipt_cli.learn.shapes import Column, Shape
from receipt_cli.learn.tokens import read_token, split


def roles(record: bytes) -> list[tuple[str, str | None, str | None] | None]:
    parts = split(record)
    columns = []
    for text in parts[1::2]:
        token = read_token(text)
        columns.append(Column(token.kind, [token]))
    shape = Shape(b"", parts[::2], columns, 1)
    names = read_names(shape, load_generic())
    found = [read_role(name, column.kind, load_generic()) for name, column in zip(names, columns, strict=True)]
    return [None if role is None else (role.kind, role.metric, role.unit) for role in found]


@pytest.mark.parametrize(
    ("record", "want"),
    [
        (b"step: 10, loss: 2.5", [("step", None, None), ("loss", "loss", None)]),
        (b"Epoch 3: train_loss=2.5", [("epoch", None, None), ("loss", "loss", None)]),
        (b"iter 10 | grad_norm 1.5", [("step", None, None), ("metric", "grad_norm", None)]),
        (b"step_time: 25.0ms", [("metric", "step_time_s", "ms")]),
        (b"val_loss: 2.5", [("validation loss", "val_loss", None)]),
        (b"speed 12.5 tok/s", [("metric", "tokens_per_s", None)]),
        (b"lr 3e-4, tokens/s 51200.5", [("metric", "learning_rate", None), ("metric", "tokens_per_s", None)]),
        (b"img/s: 812.5", [("metric", "samples_per_s", None)]),
        (b"ms/step = 12.5", [("metric", "step_time_s", "ms")]),
        (b"port: 8080", [None]),
    ],
)  # fmt: skip
def test_a_number_is_what_the_words_beside_it_say(record: bytes, want: list[object]) -> None:
    assert roles(record) == want
