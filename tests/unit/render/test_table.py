from textwrap import dedent

from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.render.terminal.page import Span
from receipt_cli.render.terminal.style import Style
from receipt_cli.render.terminal.table import Column, align, render_table
from receipt_cli.render.terminal.text import cells

GRAMMARS = [
    {"id": "nanochat", "version": "2", "status": "draft",
     "title": "nanochat base_train.py, mid_train.py, chat_sft.py"},
    {"id": "nanogpt", "version": "10", "title": "nanoGPT train.py", "status": "released"},
]  # fmt: skip
COLUMNS = ["id", "version", "title", "status"]


def test_table() -> None:
    assert render_table(GRAMMARS, COLUMNS, Style(width=100)) == dedent(
        """\
        id        version  title                                              status
        nanochat        2  nanochat base_train.py, mid_train.py, chat_sft.py  draft
        nanogpt        10  nanoGPT train.py                                   released
        """
    )


def test_a_narrow_table_shortens_the_widest_text() -> None:
    assert render_table(GRAMMARS, COLUMNS, Style(width=60)) == dedent(
        """\
        id        version  title                            status
        nanochat        2  nanochat base_train.py, mid_tr…  draft
        nanogpt        10  nanoGPT train.py                 released
        """
    )


def test_a_table_that_cannot_fit_becomes_blocks() -> None:
    rows = [{f"column {i}": "some text" for i in range(5)}, {"column 0": "1"}]
    assert render_table(rows, list(rows[0]), Style(width=40)) == dedent(
        """\
        column 0  some text
        column 1  some text
        column 2  some text
        column 3  some text
        column 4  some text

        column 0  1
        column 1  –
        column 2  –
        column 3  –
        column 4  –
        """
    )


def test_missing_values_and_no_rows() -> None:
    assert render_table([{"a": "1"}, {"b": "2"}], ["a", "b"], Style()) == "a  b\n1  –\n–  2\n"
    assert render_table([], ["a"], Style()) == ""
    assert render_table([{"a": "1"}], [], Style()) == ""


def test_wide_characters_are_aligned() -> None:
    rows = [{"a": "日本語", "b": "x"}, {"a": "abc", "b": "y"}]
    assert render_table(rows, ["a", "b"], Style()) == "a       b\n日本語  x\nabc     y\n"


def test_columns_are_dropped_in_order() -> None:
    columns = [
        Column("name", least=4),
        Column("first", right=True, drop=1),
        Column("mean", right=True, drop=2),
    ]
    row = [[Span("abcdefgh"), Span("1.000"), Span("2.000")]]

    def texts(width: int) -> list[str]:
        return ["".join(span.text for span in line).rstrip() for line in align(columns, row, width)]

    assert texts(22) == ["name      first   mean", "abcdefgh  1.000  2.000"]
    assert texts(18) == ["name  first   mean", "abc…  1.000  2.000"]
    assert texts(17) == ["name      first", "abcdefgh  1.000"]
    assert texts(4) == ["name", "abc…"]


@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), st.text()), max_size=5), st.integers(40, 120))
def test_no_line_is_wider_than_the_style(rows: list[dict[str, str]], width: int) -> None:
    text = render_table(rows, list("abcdef"), Style(width=width))
    assert all(cells(line) <= width for line in text.split("\n"))
