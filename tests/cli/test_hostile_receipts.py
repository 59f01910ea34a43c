"""A receipt from elsewhere is data: nothing in it is markup, a terminal's command, SQL, a formula or a path to anybody."""

import copy
import csv
import io
import itertools
import json
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.header.values import LEAVES, OPEN_MAPS
from receipt_cli.problems import pointer, split_pointer, value_at
from tests.cli.conftest import Invoke
from tests.tools.slow import one_in

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "fixtures" / "logs" / "hf-trainer" / "crash-callback-v5.log"
ASSETS = ROOT / "receipt_cli" / "report" / "assets"
MARK = "qZx9"
"""Stands in every payload: by it what came of one is found."""
VALID = [
    f"<script>alert('{MARK}')</script>",
    f"\"><img src=x onerror=alert({MARK})><svg/onload={MARK}>",
    f"</script><!--{MARK}--><style>*{{display:none}}</style>",
    f"]]></system-out>&{MARK};<x>",
    f"' OR 1=1; DROP TABLE runs; --{MARK}",
    f'"; ATTACH "{MARK}.db"; COPY runs TO "{MARK}"; --',
    f"=cmd|'/c calc'!{MARK}",
    f"+{MARK}()", f"-{MARK}()", f"@{MARK}(1)",
    f"[x](javascript:{MARK}) ![i](http://x/{MARK}) <http://x> @team #1",
    f"| a | b | {MARK} |",
    f"```{MARK}``` ~~~ # h",
    f"::error file=x::{MARK} ##[command]{MARK} ##vso[task.x]{MARK}",
    f"%0A::set-output name=x::{MARK}%0D",
    f"{{{{7*7}}}}${{{MARK}}}$(touch {MARK})`touch {MARK}`",
    f"../../../../{MARK}/../x",
    f"C:\\..\\{MARK}\\con",
    f"{MARK}\\n\\u0000\\x1b[31m%s%n{{0}}",
    "\u200b\u2060\u00ad" + MARK + "\U000e0041" + "e" + "\u0301" * 40,
    f"javascript:{MARK}//http://www.example.org",
    f'{MARK}",\n'.replace("\n", " ") + '"x": "y"}',
]  # fmt: skip
"""What a valid receipt may hold."""
INVALID = [
    f"\x1b[2J\x1b]0;{MARK}\x07", f"\x9b31m{MARK}", f"\u202e{MARK}\u2066", f"a\r\n::error::{MARK}\n", f"\x00{MARK}",
    f"\u2028{MARK}", f"\ud800{MARK}",
]  # fmt: skip
"""What no valid one may hold; some readers show it all the same."""
PLAIN = [f"plain words {number} {MARK}" for number in range(len(VALID))]
TURNS = [VALID[at:] + VALID[:at] for at in range(0, len(VALID), 5)]
"""The same in five orders: each in other fields."""
IDS = [f"from {at}" for at in range(0, len(VALID), 5)]
TERMINAL = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.fixture(scope="module")
def base() -> dict[str, Any]:
    """The receipt of a run that failed, with one of everything that quotes a log."""
    from receipt_cli.receipts.production import Request, produce

    document = produce(Request(str(LOG), name="x", lane="x", preset="x", workers=1)).document
    document = json.loads(json.dumps(document))
    problem = {"kind": "x", "line_number": 1, "detail": "x", "excerpt": "x"}
    near = {"grammar": document["derivation"]["grammars"][0]["id"] + "@v1", "rule": "x", "line_number": 1, "excerpt": "x"}
    document["derivation"]["problems"] = {"count": 1, "first": [problem]}
    document["derivation"]["near_misses"] = {"count": 1, "first": [near]}
    document["attachments"] = [{"kind": "trace", "uri": "x", "sha256": None, "size_bytes": None}]
    return document


def planted(base: dict[str, Any], payloads: Sequence[str]) -> dict[str, Any]:
    """Return the receipt with one of ``payloads`` after the other in its texts and names that are not of a closed set."""
    turn = itertools.cycle(payloads)
    made = copy.deepcopy(base)
    made["run"] |= {"name": next(turn), "lane": next(turn), "preset": next(turn)}
    header = made["header"]
    header["git"] |= {"branch": next(turn), "message": next(turn)[:80]}
    header["software"] |= {key: next(turn) for key in ("python", "platform", "torch", "cuda", "trainer")}
    header["software"]["packages"] = {next(turn)[:100]: next(turn)}
    header["hardware"]["accelerators"] = [{"name": next(turn), "count": 1, "memory_bytes": 1}]
    header["model"] |= {"architecture": next(turn), "parameter_digest": next(turn)}
    texts = {key: next(turn) for key in ("name", "tokenizer", "packing_policy", "digest")}
    made["header"] = header = {key: header.get(key) for key in (*list(header)[:5], "data", *list(header)[5:])}
    header["data"] = {"name": texts["name"], "size_samples": None, **texts}
    header["flags"] = {next(turn)[:100]: next(turn), "seed": 1}
    header["cwd"] = next(turn)
    header["sources"] = {at: "file" for at in LEAVES if value_at(header, split_pointer(at)) is not None}
    header["sources"] |= {at + pointer(name): "file" for at in OPEN_MAPS for name in value_at(header, split_pointer(at)) or ()}
    for phase in made["phases"]:
        phase["name"] = phase["summary"]["phase"] = next(turn)
        other = next(iter(phase["summary"]["metrics"].values()))
        statistic = {key: value for key, value in other.items() if key != "id"}
        phase["summary"]["other_metrics"] = {next(turn): statistic, f"{next(turn)} 2": statistic}
    made["summary"] = copy.deepcopy(made["phases"][0]["summary"])
    made["failure"] |= {"message": next(turn), "log_tail": [next(turn), f"  {next(turn)}", "```", next(turn), next(turn)]}
    for marker in (*made["failure"]["markers"], *made["derivation"]["observed"]):
        marker["message"] = next(turn)
    derivation = made["derivation"]
    derivation["problems"]["first"][0] |= {"detail": next(turn), "excerpt": next(turn)}
    derivation["near_misses"]["first"][0] |= {"rule": next(turn), "excerpt": next(turn)}
    derivation["tool_version"] = next(turn)
    made["attachments"][0]["uri"] = next(turn)
    return made


def write(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


class Tags(HTMLParser):
    """Elements and the names of their attributes, in order; text of scripts apart."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.seen: list[tuple[str, tuple[str, ...]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, tuple(sorted(name for name, _ in attrs))))

    def handle_comment(self, data: str) -> None:
        self.seen.append(("!--", (data,)))

    def handle_decl(self, decl: str) -> None:
        self.seen.append(("!", (decl,)))


def steers(text: str) -> list[str]:
    """Return what in the output of a terminal is no text: control and format characters, but for line ends."""
    return sorted({ascii(char) for char in text.replace("\n", "") if unicodedata.category(char) in TERMINAL})


def outside(page: str) -> str:
    """Return a Markdown page without its fenced blocks, whose fence is longer than any inside."""
    kept: list[str] = []
    fence = ""
    for line in page.split("\n"):
        run = re.match(r"`{3,}", line)
        if fence:
            fence = "" if line == fence else fence
        elif run is not None:
            fence = run.group()
        else:
            kept.append(line)
    assert not fence, "a fence is not closed"
    return "\n".join(kept)


def cells(line: str) -> int:
    return len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0


def check_markdown(page: str, plain: str) -> None:
    """The page has the elements, the lines and the cells of the one with plain words, and no link."""
    ours, theirs = outside(page), outside(plain)
    comments = ("!--", (" ",))
    assert [tag for tag in Tags(ours).seen if tag != comments] == [tag for tag in Tags(theirs).seen if tag != comments]
    assert len(ours.split("\n")) == len(theirs.split("\n"))
    assert [cells(line) for line in ours.split("\n")] == [cells(line) for line in theirs.split("\n")]
    bare = re.sub(r"\\.", "", ours)
    assert "](" not in bare and "<http" not in bare and not re.search(r"(?m)^\s*(?:#{1,6} .*|::|> )" + MARK, bare)
    assert not steers(page)


@pytest.mark.parametrize("payloads", [INVALID, *one_in(3, TURNS)], ids=["invalid", *IDS])
def test_a_terminal_shows_text_alone(payloads: list[str], base: dict[str, Any], tmp_path: Path, invoke: Invoke) -> None:
    document = write(tmp_path / "r.json", planted(base, payloads))
    other = write(tmp_path / "o.json", base)
    for words in (["show"], ["check"], ["validate"], ["ci"], ["plot"], ["verify", LOG], ["migrate"], ["compare", other]):
        name, *rest = words
        done = invoke(name, document, *rest)
        assert done.code in (0, 1, 3), (words, done.stderr)
        for text in (done.stderr, "" if name == "migrate" else done.stdout.decode()):  # that one prints a document
            assert not steers(text), words
            assert not re.search(rf"(?m)^\s*::\w+ .*{MARK}|##\[|##vso\[", text), words


@pytest.mark.parametrize("payloads", one_in(3, TURNS), ids=IDS)
def test_what_is_written_for_others_holds_no_markup_of_a_receipt(
    payloads: list[str], base: dict[str, Any], tmp_path: Path, invoke: Invoke
) -> None:
    pages: dict[str, dict[str, str]] = {}
    for kind, texts in (("plain", PLAIN), ("theirs", payloads)):
        folder = tmp_path / kind
        folder.mkdir()
        document = write(folder / "r.json", planted(base, texts))
        options = [part for name in ("summary", "junit", "sarif", "dotenv") for part in (f"--{name}", folder / name)]
        other = write(folder / "o.json", planted(base, ["another"]))
        done = invoke("check", document, "--annotations", "--baseline", other, *options)
        assert done.code in (0, 1), done.stderr
        pages[kind] = {name: (folder / name).read_text() for name in ("summary", "junit", "sarif", "dotenv")}
        pages[kind]["commands"] = done.stdout.decode()
        compared = invoke("compare", document, folder / "o.json", "--markdown", "-")
        pages[kind]["compared"] = compared.stdout.decode()
        store = folder / "store"
        assert invoke("store", "add", store, document).code == 0
        assert invoke("report", store, "-o", folder / "report.html", "--title", texts[0]).code == 0
        pages[kind]["report"] = (folder / "report.html").read_text()
    plain, theirs = pages["plain"], pages["theirs"]
    check_markdown(theirs["summary"], plain["summary"])
    assert Tags(theirs["report"]).seen == Tags(plain["report"]).seen
    assert theirs["report"].count("</script") == plain["report"].count("</script")
    for node, other in zip(ET.fromstring(theirs["junit"]).iter(), ET.fromstring(plain["junit"]).iter(), strict=True):
        assert (node.tag, sorted(node.attrib)) == (other.tag, sorted(other.attrib))
    json.loads(theirs["sarif"])
    assert all(re.fullmatch(r"RECEIPT_[A-Z_]+=[a-z0-9_]*", line) for line in theirs["dotenv"].splitlines())
    commands = [re.findall(r"(?m)^\s*::(\w+)", page["commands"]) for page in (plain, theirs)]
    assert commands[0] == commands[1]
    check_markdown(theirs["compared"], plain["compared"])


@pytest.mark.parametrize("payloads", TURNS[::2], ids=IDS[::2])
def test_a_store_keeps_and_tells_it_as_text(payloads: list[str], base: dict[str, Any], tmp_path: Path, invoke: Invoke) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    store = inside / "store"
    document = write(inside / "r.json", planted(base, payloads))
    assert invoke("store", "add", store, document).code == 0
    asked = "SELECT name, lane, preset FROM runs"
    [row] = json.loads(invoke("store", "query", store, asked, "--json").stdout)
    shown = row["lane"]
    assert MARK in shown
    quoted = shown.replace("'", "''")
    counting = f"SELECT count(*) AS n FROM runs WHERE lane = '{quoted}'"
    assert json.loads(invoke("store", "query", store, counting, "--json").stdout) == [{"n": 1}]
    for line in csv.reader(io.StringIO(invoke("store", "query", store, asked, "--csv").stdout.decode())):
        assert not any(re.match(r"[=+@\t\r-](?![0-9.]+\Z)", cell) for cell in line), line
    for words in (["ls"], ["stats"], ["query", "SELECT * FROM runs"], ["query", "SELECT * FROM metrics"]):
        done = invoke("store", words[0], store, *words[1:])
        assert done.code == 0, done.stderr
        assert not steers(done.stdout.decode()), words
    for words in (["history", store], ["history", store, payloads[1]], ["store", "export", store, "-o", inside / "views"]):
        done = invoke(*words)
        assert done.code in (0, 1, 2, 3), (words, done.stderr)
        assert not steers(done.stdout.decode() + done.stderr), words
    for to in ("openmetrics", "otlp-json", "csv", "in-toto", "bmf", "tensorboard", "wandb", "parquet"):
        done = invoke("export", document, "--to", to, "-o", inside / f"as-{to}", "--at", "2026-01-01T00:00:00Z")
        assert done.code == 0, (to, done.stderr)
    for line in csv.reader(io.StringIO((inside / "as-csv").read_text())):
        assert not any(re.match(r"[=+@\t\r-](?![0-9.e+-]+\Z)", cell) for cell in line), line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside"]
    assert all(path.resolve().is_relative_to(inside) and MARK not in path.name for path in inside.rglob("*"))


def test_openmetrics_can_be_read_with_any_label(base: dict[str, Any], tmp_path: Path, invoke: Invoke) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    for payloads in TURNS:
        document = write(tmp_path / "r.json", planted(base, payloads))
        done = invoke("export", document, "--to", "openmetrics", "--at", "2026-01-01T00:00:00Z")
        families = list(parser.text_string_to_metric_families(done.stdout.decode()))
        assert families and all(re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", family.name) for family in families)


def test_pages_are_built_without_reading_markup() -> None:
    for path in ASSETS.rglob("*.js"):
        text = path.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc", text), path
    page = next(ASSETS.glob("*.html")).read_text("utf-8")
    assert "Content-Security-Policy" in page


def broken() -> Iterator[tuple[str, bytes]]:
    """Yield bytes that are no receipt, and what is wrong with them."""
    start = b'{"schema_version": "receipt/1.1", "run": '
    yield "lists without end", b"[" * 200_000
    yield "objects without end", b'{"a":' * 200_000
    yield "lists in a field", start + b"[" * 100_000 + b"]" * 100_000 + b"}"
    yield "objects at a depth that parses", start + b'{"a":' * 400 + b"1" + b"}" * 400 + b"}"
    yield "a number of 100 000 digits", start + b"9" * 100_000 + b"}"
    yield "a float beyond all", start + b"1e999999}"
    yield "a key twice", start + b'{"name": "a", "name": "b"}, "run": 1}'
    yield "half a pair", start + b'{"name": "\\ud800"}}'
    yield "NUL in a name", start + b'{"name": "a\\u0000b", "lane": "\\u0000"}}'
    yield "no UTF-8", start + b'{"name": "\xff\xfe"}}'
    yield "a byte order mark", b"\xef\xbb\xbf" + start + b"{}}"
    yield "UTF-16", (start + b"{}}").decode().encode("utf-16")
    yield "NaN", start + b"NaN}"
    yield "a huge key", start + b'{"' + b"k" * 1_000_000 + b'": 1}}'
    yield "nothing", b""
    yield "a version that is a list", b'{"schema_version": ["receipt/1.1"]}'
    yield "a version of a path", b'{"schema_version": "../../receipt/1.1"}'
    yield "a version of a million", b'{"schema_version": "receipt/' + b"9" * 5000 + b'.0"}'


@pytest.mark.parametrize(("data"), [pytest.param(data, id=name) for name, data in broken()])
def test_what_is_no_receipt_is_told_and_nothing_else(data: bytes, tmp_path: Path, invoke: Invoke) -> None:
    path, store = tmp_path / "r.json", tmp_path / "store"
    path.write_bytes(data)
    gates = tmp_path / "gates.yaml"
    gates.write_text("gates:\n  - metric: loss\n    max: 3\n")
    lines: list[tuple[str | Path, ...]] = [
        ("show", path), ("show", path, "--json"), ("validate", path), ("validate", path, "--json"), ("check", path), ("ci", path),
        ("ci", path, "--gates", gates), ("ci", LOG, "--baseline", path), ("compare", path, LOG), ("compare", LOG, path),
        ("store", "add", store, path), ("import", path), ("import", path, "--json"), ("migrate", path), ("verify", path, LOG),
        ("export", path, "--to", "csv"), ("plot", path), ("parse", LOG, "--header", path), ("parse", path),
        ("grammar", "lint", path),
        ("grammar", "test", path), ("parse", LOG, "--grammar", path), ("parse", LOG, "--json", "--header", path),
    ]  # fmt: skip
    for words in lines:
        done = invoke(*words)
        assert done.code in (0, 1, 2, 3, 4, 5), (words, done.code, done.stderr[-1500:])
        assert not steers(done.stderr), words
        assert len(done.stderr) < 20_000, words
    assert not store.exists() or not [p for p in store.rglob("*.json") if p.is_file()]
