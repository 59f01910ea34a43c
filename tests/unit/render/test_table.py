from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from receipt_cli.render.console import Column, Page, Span, render_table, write_table
from receipt_cli.render.style import Style

GRAMMARS = [
    {"id": "nanochat", "version": "2", "status": "draft", "title": "nanochat base_train.py, mid_train.py, chat_sft.py"},
    {"id": "nanogpt", "version": "10", "title": "nanoGPT train.py", "status": "released"},
]
COLUMNS = ["id", "version", "title", "status"]


def test_table() -> None:
    assert render_table(GRAMMARS, COLUMNS, Style(width=100)).splitlines() == [
        "id        version  title                                              status",
        "─" * 78,
        "nanochat        2  nanochat base_train.py, mid_train.py, chat_sft.py  draft",
        "nanogpt        10  nanoGPT train.py                                   released",
    ]


def test_a_narrow_table_shortens_the_widest_text() -> None:
    assert render_table(GRAMMARS, COLUMNS, Style(width=60, unicode=False)).splitlines() == [
        "id        version  title                            status",
        "-" * 60,
        "nanochat        2  nanochat base_train.py, mid_tr~  draft",
        "nanogpt        10  nanoGPT train.py                 released",
    ]


def test_missing_values_and_no_rows() -> None:
    assert render_table([{"a": "1"}, {"b": "2"}], ["a", "b"], Style()) == "a  b\n────\n1  –\n–  2\n"
    assert render_table([], ["a"], Style()) == ""
    assert render_table([{"a": "1"}], [], Style()) == ""


def test_wide_characters_are_aligned_and_no_text_is_markup() -> None:
    rows = [{"a": "日本語", "b": "[red]x[/red]"}, {"a": "abc", "b": ":smile:"}]
    assert render_table(rows, ["a", "b"], Style()).splitlines()[2:] == ["日本語  [red]x[/red]", "abc     :smile:"]


def test_columns_are_dropped_in_order() -> None:
    columns = [Column("name", least=4), Column("first", right=True, drop=1), Column("mean", right=True, drop=2)]
    row = [[Span("abcdefgh" * 4), Span("1.000"), Span("2.000")]]

    def texts(room: int) -> list[str]:
        page = Page(Style(width=100))
        write_table(page, columns, row, indent=100 - room)
        return [line.strip() for line in page.text().splitlines()][::2]

    assert texts(50)[0].split() == ["name", "first", "mean"]
    assert texts(18) == ["name  first   mean", "abc…  1.000  2.000"]
    assert texts(17) == ["name        first", "abcdefgha…  1.000"]
    assert texts(4) == ["name", "abc…"]


@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), st.text()), max_size=5), st.integers(40, 120))
def test_no_line_is_wider_than_the_style(rows: list[dict[str, str]], width: int) -> None:
    text = render_table(rows, list("abcdef"), Style(width=width))
    assert all(cell_len(line) <= width for line in text.split("\n"))
