"""Foreign text in Markdown has no effect."""

import pytest

from receipt_cli.render.text import MAX_CELL, code, escape, table


@pytest.mark.parametrize("text", ["**bold**", "[a](b)", "![i](u)", "@user", "#1", "`x`", "a|b", "<b>"])
def test_markup_is_escaped(text: str) -> None:
    shown = escape(text)
    assert shown != text
    assert shown.replace("\\", "").replace("&lt;", "<").replace("&gt;", ">") == text


@pytest.mark.parametrize("link", ["https://a.example", "www.a.example"])
def test_links_are_broken(link: str) -> None:
    assert link not in code(link).replace("\\", "")


def test_code_is_cut_and_empty_text_is_nothing() -> None:
    assert code("") == ""
    assert code("x" * 1000) == f"<code>{'x' * (MAX_CELL - 1)}…</code>"


def test_table() -> None:
    assert table(("a", "b"), [("1", "2")]) == ["| a | b |", "|---|---|", "| 1 | 2 |"]
