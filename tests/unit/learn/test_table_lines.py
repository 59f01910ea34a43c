"""Of a buffer only the lines that may be of a table lose their heads: the tables are those of all lines."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.learn import tables
from receipt_cli.learn.tables import Table

HEADS = ["", "", "2026-01-02 03:04:05,678 - INFO - ", "[rank0]: ", "trainer-0 | ", "03:04:05 INFO "]
LINES = [
    "step loss acc", "step,loss,acc", "step | loss | acc", "epoch  train loss  val loss", "-----+-----+-----",
    "{n} 2.5 0.5", "{n},2.5,nan", "{n} | 2.5 | 91.5%", " {n}  2.5s  1:02:03 ", "{n}", "loss 2.5", "step {n} loss 2.5 lr 1e-4",
    "{n} 2.5 0.5 done", "tokens/s 5123", "10\t20\t30", "|1|2|3|", "", "x {n} 2.5 0.5", "Inf inf -inf", "1 2 \r3 4",
]  # fmt: skip
buffers = st.lists(
    st.tuples(st.sampled_from(HEADS), st.lists(st.sampled_from(LINES), min_size=1, max_size=8), st.booleans()), max_size=8
)


@given(buffers)
def test_lines_that_are_no_rows_change_nothing(drawn: list[tuple[str, list[str], bool]]) -> None:
    texts = [
        "\n".join(head * (alike or number % 3 > 0) + line.format(n=number) for number, line in enumerate(lines)).encode()
        for head, lines, alike in drawn
    ]
    found, every = Table(), Table()
    for text in texts:
        found.take(text)
    found.settle()
    with patch.object(tables, "_ends_in_cells", lambda _: True):
        for text in texts:
            every.take(text)
        every.settle()

    assert repr(found.shape) == repr(every.shape)
