"""Hold the pages of the project to their form: short lines, links and paths that exist, commands that parse.

Also the map: ``ARCHITECTURE.md`` lists the rooms of the package, a recipe of ``CONTRIBUTING.md`` opens at most four
files, and the index of ``docs/decisions.md`` names every entry once.
"""

import ast
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from tests.tools.usage import refuse_command

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "receipt_cli"
FOLDERS = (ROOT, ROOT / "docs", ROOT / "grammars", ROOT / "schemas")
PAGES = {str(page.relative_to(ROOT)): page.read_text("utf-8") for folder in FOLDERS for page in sorted(folder.glob("*.md"))}
MAPS = ("ARCHITECTURE.md", "CONTRIBUTING.md")
MOST_LINES = 120
MOST_COLUMNS = 120
MOST_FILES = 4

FENCE = re.compile(r"^```(\w*)[^\n`]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:[\w.-]+/)+|(?:[\w.-]+/)*[\w.-]+\.(?:py|js|md|toml|ya?ml|json|txt)|Makefile")
ENTRY = re.compile(r"^## (\d+)\. (.*)$", re.MULTILINE)


def without_code(page: str) -> str:
    """Return a page with its code blocks blanked, line for line."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), page)


def long_lines(page: str) -> list[tuple[int, int]]:
    """Return ``(line, columns)`` of every line that is too long, without tables, code and the targets of links."""
    lines = enumerate(without_code(page).split("\n"), start=1)
    lengths = [(number, len(LINK.sub("]", line))) for number, line in lines if not line.lstrip().startswith("|")]
    return [(number, length) for number, length in lengths if length > MOST_COLUMNS]


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(page: str) -> set[str]:
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", without_code(page), re.MULTILINE)}


def refuse_link(name: str, target: str) -> str | None:
    """Return what is wrong with a link of the page ``name``, or None."""
    path, _, anchor = target.partition("#")
    file = (ROOT / name).parent / path if path else ROOT / name
    if not file.exists():
        return "no such file"
    return None if not anchor or anchor in anchors(file.read_text("utf-8")) else "no such heading"


def shell_words(line: str) -> list[str]:
    """Return the words and operators of a shell line; raise ``ValueError`` for an open quotation."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    return list(lexer)


def commands(page: str) -> list[str]:
    """Return the ``receipt`` commands of the ``sh`` blocks of a page."""
    found: list[str] = []
    for block in FENCE.finditer(page):
        text = re.sub(r"\\\n\s*", "", block[2] if block[1] == "sh" else "")
        text = re.sub(r'"?\$(\w+|\{\w+\}|\([^)]*\))"?', "1", text)
        line = ""
        for next_line in text.splitlines():
            line = f"{line}\n{next_line}".lstrip()
            try:
                words = shell_words(line)
            except ValueError:  # the quotation goes on in the next line
                continue
            line, command = "", list[str]()
            for word in [*words, ";"]:
                if set(word) <= set("|&;<>"):
                    found += [shlex.join(command)] if command[:1] == ["receipt"] else []
                    command = ["a file"] if ">" in word or "<" in word else []
                else:
                    command.append(word)
        assert not line, f"open quotation: {line}"
    return found


def refuse_path(span: str) -> str | None:
    """Return why ``path`` or ``path::name`` does not exist, or None; a path is of the repository or of the package."""
    path, _, name = span.partition("::")
    file = next((base / path for base in (ROOT, PACKAGE) if (base / path).exists()), None)
    if file is None:
        return f"{span}: no such path"
    return None if not name or re.search(rf"\b{re.escape(name)}\b", file.read_text("utf-8")) else f"{span}: no such name"


def paths(text: str) -> list[str]:
    return [span for span in SPAN.findall(text) if PATH.fullmatch(span.partition("::")[0])]


def recipes(page: str) -> dict[str, str]:
    """Return the recipes of ``CONTRIBUTING.md``: its sections of the third level."""
    return dict(re.findall(r"^### (.*)\n((?:(?!##).*\n)*)", page, re.MULTILINE))


@pytest.mark.parametrize("name", PAGES)
def test_lines_fit(name: str) -> None:
    assert long_lines(PAGES[name]) == []


def test_the_readme_is_short() -> None:
    assert len(PAGES["README.md"].splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    targets = [target for target in LINK.findall(without_code(PAGES[name])) if "://" not in target]
    assert [(target, why) for target in targets if (why := refuse_link(name, target))] == []


def test_every_page_is_linked() -> None:
    linked = {(ROOT / name).parent / t.partition("#")[0] for name, page in PAGES.items() for t in LINK.findall(page)}
    assert [page for page in PAGES if page.startswith("docs/") and ROOT / page not in {p.resolve() for p in linked}] == []


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if commands(page)])
def test_example_commands_parse(name: str) -> None:
    assert [(line, why) for line in commands(PAGES[name]) if (why := refuse_command(shlex.split(line)[1:]))] == []


@pytest.mark.parametrize("name", PAGES)
def test_make_targets_exist(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    code = "\n".join([*SPAN.findall(without_code(PAGES[name])), *(block[2] for block in FENCE.finditer(PAGES[name]))])
    assert set(re.findall(r"^make ([a-z-]+)", code, re.MULTILINE)) - targets == set()


@pytest.mark.parametrize("name", MAPS)
def test_paths_of_the_maps_exist(name: str) -> None:
    found = paths(PAGES[name]) + re.findall(r"\b(?:tests|grammars|schemas|docs)/[\w./-]*\w", PAGES[name])
    assert found
    assert [why for span in found if (why := refuse_path(span))] == []


def test_the_map_lists_the_rooms() -> None:
    tree = ast.parse((ROOT / "tests/contract/test_architecture.py").read_text("utf-8"))
    (rooms,) = (n.value for n in tree.body if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == "ROOMS" and n.value)
    listed = re.findall(r"^\| `(\w+)` \|", PAGES["ARCHITECTURE.md"], re.MULTILINE)
    assert listed == list(ast.literal_eval(rooms))


@pytest.mark.parametrize("room", sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
def test_a_room_says_what_goes_in_and_out_and_where_to_start(room: str) -> None:
    doc = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text("utf-8"))) or ""
    assert re.search(r"^In: .*\. Out: ", doc, re.MULTILINE | re.DOTALL)
    first = re.findall(r"``([\w.]+)``", doc.partition("Start with ")[2])
    assert first
    assert [name for name in first if not (PACKAGE / room / f"{name.replace('.', '/')}.py").exists()
            and not (PACKAGE / room / name).is_dir()] == []  # fmt: skip


@pytest.mark.parametrize("title", recipes(PAGES["CONTRIBUTING.md"]))
def test_a_recipe_opens_few_files_and_is_proven(title: str) -> None:
    body = recipes(PAGES["CONTRIBUTING.md"])[title]
    files = {span.partition("::")[0] for span in paths(without_code(body))}
    assert 1 <= len(files) <= MOST_FILES
    assert any(block[1] == "sh" for block in FENCE.finditer(body))


def test_there_are_ten_recipes() -> None:
    assert len(recipes(PAGES["CONTRIBUTING.md"])) == 10


def test_the_index_names_every_decision_once() -> None:
    page = PAGES["docs/decisions.md"]
    index = page[: page.index("\n## 1. ")]
    entries = {number: slug(f"{number}. {title}") for number, title in ENTRY.findall(page)}
    links = re.findall(r"\[(\d+)\]\(#([^)]+)\)", index)
    assert [n for n, count in Counter(n for n, _ in links).items() if count > 1] == []
    assert dict(links) == entries
    assert list(entries) == [str(n) for n in range(1, len(entries) + 1)]


def test_the_glossary_is_in_order() -> None:
    words = re.findall(r"^\| \*\*(.+?)\*\*", PAGES["docs/glossary.md"], re.MULTILINE)
    assert words == sorted(words, key=str.lower)
    needed = {"run", "launch", "attempt", "phase", "segment", "lane", "preset", "envelope", "marker", "companion"}
    assert needed | {"evidence", "era", "layout", "record", "event", "series", "room"} <= set(words)


def test_what_is_wrong_is_found() -> None:
    wide = "word " * 30
    page = f"# T\n{wide}\n| {wide} |\n```sh\n{wide}\n```\n[x]({'y' * 120})\n"
    assert long_lines(page) == [(2, 150)]
    assert refuse_link("README.md", "docs/none.md") == "no such file"
    assert refuse_link("README.md", "docs/import.md#nothing") == "no such heading"
    assert refuse_link("docs/import.md", "../README.md#receipt") is None
    block = '```sh\nx | receipt parse - \\\n  --exit-code "$code" > receipt && receipt pars LOG; y\n```\n'
    assert commands(block) == ["receipt parse - --exit-code 1", "receipt pars LOG"]
    assert refuse_path("analysis/none.py") == "analysis/none.py: no such path"
    assert refuse_path("derive.py::nothing_here") == "derive.py::nothing_here: no such name"
    assert refuse_path("derive.py::derive") is None
    assert paths("`io/source.py` and `a/b/` and `derive/2` and `steady`") == ["io/source.py", "a/b/"]
