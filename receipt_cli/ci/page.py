"""Render a verdict for the terminal, as a Markdown job summary and as JUnit XML; write all the files that a job asks for."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from receipt_cli.analysis.checks import outcome
from receipt_cli.ci.findings import Finding, Places, find, render_annotations, render_sarif
from receipt_cli.ci.verdict import Ruling, State, Verdict, departed, draw, title_of
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import OutputError, system_errors
from receipt_cli.io.atomic import write_atomically
from receipt_cli.render.comparison.markdown import render_markdown
from receipt_cli.render.comparison.words import VERDICTS, field_value, reason_text
from receipt_cli.render.console import Column, Page, Span, write_table
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.scale import count, scale_for
from receipt_cli.render.style import Role, Style
from receipt_cli.render.text import MAX_CELL, clean, code, escape, table

_MARKS: dict[State, tuple[str, Role]] = {
    "passed": ("✓", "good"),
    "failed": ("✗", "bad"),
    "unknown": ("?", "warn"),
    "noted": ("·", "dim"),
}
_MAX_REASONS = 4
_MAX_CURVES = 2


def render_page(document: Mapping[str, Any], verdict: Verdict, style: Style) -> str:
    """Return the verdict: whether the job passes, the gates, the checks, and the reasons against a comparison."""
    page = Page(style)
    result = Span("✓ passed", "good") if verdict.passed else Span("✗ failed", "bad")
    numbers = [f"{verdict.count(state)} {state}" for state in ("failed", "unknown", "passed", "noted") if verdict.count(state)]
    failure = document.get("failure")
    cause = [[Span(failure["reason"], "warn")]] if failure else []
    page.flow("", [[result], [", ".join(numbers)], *cause], indent=0)
    if failure and failure["message"]:
        at = f"line {failure['line_number']}: " if failure["line_number"] is not None else ""
        page.prose(f"{at}{failure['message']}", indent=2)
    for ruling in (r for r in verdict.rulings if r.fails):
        page.prose(f"{ruling.name}: {ruling.sentence}", "bad", indent=2, bullet="✗ ")
    _rulings(page, "gates", verdict.of_kind("gate"))
    _golden(page, verdict)
    _rulings(page, "checks", verdict.of_kind("check"))
    if verdict.baseline is not None:
        words, role = VERDICTS[verdict.baseline.verdict]
        page.heading("baseline", Span(", ".join(verdict.baseline.names[:3]), "dim"))
        page.line(Span(words, role), indent=2)
        for reason in verdict.baseline.reasons[:_MAX_REASONS]:
            page.prose(reason_text(reason), "dim", indent=2, bullet="· ")
    return page.text()


def _golden(page: Page, verdict: Verdict) -> None:
    for curve in departed(verdict.golden)[:_MAX_CURVES] if verdict.golden is not None else ():
        page.heading(title_of(curve))
        page.paste(draw(curve, page.style))


def _rulings(page: Page, title: str, rulings: Sequence[Ruling]) -> None:
    if not rulings:
        return
    page.heading(title)
    rows = []
    for ruling in rulings:
        mark, role = _MARKS[ruling.state]
        named: Role = role if ruling.state == "failed" else "plain"
        rows.append([Span(mark, role), Span(ruling.name, named), Span(ruling.wanted, "dim"), Span(ruling.found, named)])
    columns = [Column(""), Column("name", least=16), Column("wanted", least=8), Column("found", least=12)]
    write_table(page, columns, rows)


MAX_BYTES = 1024 * 1024
"""Largest step summary in bytes: GitHub discards a larger one."""
_EMOJI: dict[State, str] = {"passed": "✅", "failed": "❌", "unknown": "❔", "noted": "▫️"}
_MAX_METRICS = 40
_MAX_DRAWN = 4
_MAX_RULINGS = 220
_STATISTICS = ("first", "last", "median", "min", "max")


def render_summary(document: Mapping[str, Any], verdict: Verdict, findings: Sequence[Finding], room: int = MAX_BYTES) -> bytes:
    """Return the page as UTF-8, at most ``room`` bytes; name the sections that do not fit and are left out."""
    sections = [
        ("verdict", _head(document, verdict)),
        ("gates", _ruling_lines("Gates", ("gate", "wanted", "found"), verdict.of_kind("gate"))),
        ("golden curves", _golden_lines(verdict)),
        ("checks", _ruling_lines("Checks", ("check", "wanted", "found"), verdict.of_kind("check"))),
        ("failure", _failure(document)),
        ("metrics", _metrics(document)),
        ("comparison", _comparison(verdict)),
        ("the log's problems", _problems(findings, document)),
        ("provenance", _provenance(document)),
    ]
    page = b""
    left_out: list[str] = []
    for name, lines in sections:
        text = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        if len(page) + len(text) + len(_missing([*left_out, *(other for other, _ in sections)])) > room:
            left_out.append(name)
        elif text:
            page += text + b"\n"
    return (page + (_missing(left_out) if left_out else b""))[: max(room, 0)]


def _missing(names: Sequence[str]) -> bytes:
    return f"> left out, for the page would be too large: {', '.join(names)}\n".encode()


def _head(document: Mapping[str, Any], verdict: Verdict) -> Iterator[str]:
    run = document["run"]
    yield from (f"## {'✅' if verdict.passed else '❌'} Training run {'passed' if verdict.passed else 'failed'}", "")
    named = [f"{key} {code(str(run[key]))}" for key in ("name", "lane", "preset") if run[key] is not None]
    trainer = document["header"]["software"]["trainer"]
    named += [f"trainer {code(trainer)}"] if trainer else []
    if named:
        yield from (" · ".join(named), "")
    word = outcome(document)
    facts = [
        word if verdict.healthy else f"**{word}**",
        *(f"{verdict.count(state)} {state}" for state in ("passed", "failed", "unknown") if verdict.count(state)),
    ]
    steps = (document.get("summary") or {}).get("steps")
    if steps and steps["last"] is not None:
        planned = f" of {count(steps['planned'])}" if steps["planned"] is not None else ""
        facts.append(f"last step {count(steps['last'])}{planned}")
    failure = document.get("failure")
    if failure:
        line = failure["line_number"]
        facts.append(f"ended with {code(failure['reason'])}{f' at line {line} of the log' if line is not None else ''}")
    yield " · ".join(facts)


def _ruling_lines(title: str, columns: Sequence[str], rulings: Sequence[Ruling]) -> Iterator[str]:
    if not rulings:
        return
    yield from (f"### {title}", "")
    yield from table(("", *columns), [_row(ruling) for ruling in sorted(rulings, key=lambda r: not r.fails)[:_MAX_RULINGS]])


def _golden_lines(verdict: Verdict) -> Iterator[str]:
    for curve in departed(verdict.golden)[:_MAX_DRAWN] if verdict.golden is not None else ():
        yield from (f"### {escape(title_of(curve))}", "", "```text", *draw(curve, Style()).strip("\n").split("\n"), "```", "")


def _row(ruling: Ruling) -> tuple[str, ...]:
    reason = f" ({escape(ruling.reason)})" if ruling.reason else ""
    return _EMOJI[ruling.state], code(ruling.name), escape(ruling.wanted), f"{escape(ruling.found[:MAX_CELL])}{reason}"


def _failure(document: Mapping[str, Any]) -> Iterator[str]:
    failure = document.get("failure")
    if not failure:
        return
    yield from ("### Failure", "")
    yield f"{code(failure['reason'])}{': ' if failure['message'] else ''}{code(failure['message'] or '')}"
    tail = [clean(line) for line in failure["log_tail"]]
    if tail:
        longest = max((len(run) for line in tail for run in re.findall("`+", line)), default=0)
        fence = "`" * max(3, longest + 1)
        yield from ("", *_folded("How the log ended", (f"{fence}text", *tail, fence)))


def _metrics(document: Mapping[str, Any]) -> Iterator[str]:
    metrics = (document.get("summary") or {}).get("metrics") or {}
    rows: list[tuple[str, ...]] = []
    for name, statistic in list(metrics.items())[:_MAX_METRICS]:
        values = [statistic[key] for key in _STATISTICS]
        scale = scale_for(name, [statistic[key] for key in ("median", *_STATISTICS) if statistic[key] is not None])
        rows.append((code(metric_label(name)), scale.unit, *("–" if value is None else scale.format(value) for value in values)))
    if rows:
        yield from ("### Metrics", "")
        yield from table(("metric", "unit", *_STATISTICS), rows)
        if len(metrics) > len(rows):
            yield f"\n… {len(metrics) - len(rows)} more"


def _comparison(verdict: Verdict) -> Iterator[str]:
    if verdict.baseline is not None:
        yield from _folded("Comparison with the baseline (a)", render_markdown(verdict.baseline.document()).splitlines())


def _problems(findings: Sequence[Finding], document: Mapping[str, Any]) -> Iterator[str]:
    lines = [finding for finding in findings if finding.level != "error"]
    if not lines:
        return
    derivation = document["derivation"]
    total = derivation["problems"]["count"] + (derivation.get("near_misses") or {"count": 0})["count"]
    places = [f"{f.place.path}{'' if f.place.line is None else f':{f.place.line}'}" if f.place else "" for f in lines]
    rows = [(code(place), escape(f.message)) for place, f in zip(places, lines, strict=True)]
    yield from _folded(f"Lines of the log to look at: {count(total)}", table(("", ""), rows))


def _provenance(document: Mapping[str, Any]) -> Iterator[str]:
    derivation, header = document["derivation"], document["header"]
    accelerators = header["hardware"]["accelerators"]
    rows = [
        ("log", f"sha256 {derivation['log']['sha256']}" if derivation["log"]["sha256"] else None),
        ("lines", ", ".join(f"{value} {name}" for name, value in derivation["lines"].items() if value)),
        ("grammar", ", ".join(f"{g['id']}@v{g['version']}" for g in derivation["grammars"])),
        ("rules", derivation["rules"]),
        ("commit", header["git"]["commit"]),
        ("accelerators", field_value(accelerators) if accelerators else None),
    ]
    yield from _folded("Where this comes from", table(("", ""), [(name, code(str(value))) for name, value in rows if value]))


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from (f"<details><summary>{title}</summary>", "", *lines, "", "</details>")


_SUITES = (("check", "checks"), ("gate", "gates"))


def render_junit(document: Mapping[str, Any], verdict: Verdict) -> bytes:
    """Return a suite of checks and one of gates as UTF-8 XML; unknown answers, and failed checks not required, are skipped tests.

    It uses only elements and attributes common to the schemas of Jenkins' xUnit plugin and Maven Surefire (``junit-10.xsd``,
    ``surefire-test-report.xsd``). No times: checks take none.
    """
    failed = str(verdict.count("failed"))
    cause = _cause_of(document)
    root = ET.Element("testsuites", {"name": "receipt", "tests": str(len(verdict.rulings)), "failures": failed, "errors": "0"})
    for kind, name in _SUITES:
        rulings = verdict.of_kind(kind)
        if not rulings:
            continue
        states = [ruling.state for ruling in rulings]
        counts = {"tests": len(states), "failures": states.count("failed"), "errors": 0}
        skipped = states.count("unknown") + states.count("noted")
        attributes = {"name": f"receipt.{name}", **{key: str(n) for key, n in counts.items()}, "skipped": str(skipped)}
        suite = ET.SubElement(root, "testsuite", attributes)
        for ruling in rulings:
            _case(suite, name, ruling, cause if kind == "check" else "")
        tail = (document.get("failure") or {}).get("log_tail") or []
        if kind == "check" and tail:
            ET.SubElement(suite, "system-out").text = "\n".join(map(clean, tail))
    ET.indent(root)
    data: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _cause_of(document: Mapping[str, Any]) -> str:
    """Return the cause of the run's failure, in words; "" without a failure."""
    failure = document.get("failure")
    if not failure:
        return ""
    line = f"line {failure['line_number']} of the log: " if failure["line_number"] is not None else ""
    return clean(f"{failure['reason']}: {line}{failure['message'] or 'no message'}")


def _case(suite: ET.Element, name: str, ruling: Ruling, cause: str) -> None:
    case = ET.SubElement(suite, "testcase", {"classname": f"receipt.{name}", "name": clean(ruling.name)})
    sentence = clean(ruling.sentence)
    if ruling.state == "failed":
        ET.SubElement(case, "failure", {"type": ruling.kind, "message": sentence}).text = cause or None
    elif ruling.state != "passed":
        ET.SubElement(case, "skipped", {"message": sentence})


_TRUTH = {True: "true", False: "false"}


@dataclass(frozen=True, slots=True)
class Targets:
    """Files to write, None for no file; ``annotations``: None means only on GitHub."""

    junit: Path | None = None
    sarif: Path | None = None
    summary: Path | None = None
    dotenv: Path | None = None
    receipt: Path | None = None
    annotations: bool | None = None


def deliver(document: Mapping[str, Any], verdict: Verdict, places: Places, targets: Targets, environ: Mapping[str, str]) -> str:
    """Write the outputs named by ``targets`` and the platform's variables; return the annotations to print.

    The receipt is written first, because it explains the others. Raises ``OutputError``.
    """
    findings = list(find(document, verdict, places))
    if targets.receipt is not None:
        write_atomically(targets.receipt, canonical_bytes(dict(document)))
    if targets.junit is not None:
        write_atomically(targets.junit, render_junit(document, verdict))
    if targets.sarif is not None:
        write_atomically(targets.sarif, render_sarif(findings))
    outputs = list_outputs(document, verdict)
    if targets.dotenv is not None:
        named = {f"RECEIPT_{name.upper()}": value for name, value in outputs.items()}
        write_atomically(targets.dotenv, render_outputs(named).encode())
    if environ.get("GITHUB_OUTPUT"):
        _append(Path(environ["GITHUB_OUTPUT"]), render_outputs(outputs).encode())
    if targets.summary is not None:
        write_atomically(targets.summary, render_summary(document, verdict, findings))
    elif environ.get("GITHUB_STEP_SUMMARY"):
        path = Path(environ["GITHUB_STEP_SUMMARY"])
        _append(path, render_summary(document, verdict, findings, MAX_BYTES - _page_size(path)))
    wanted = environ.get("GITHUB_ACTIONS") == "true" if targets.annotations is None else targets.annotations
    return render_annotations(findings) if wanted else ""


def _page_size(path: Path) -> int:
    """Return the size of the file, in bytes: the platform's limit is for the whole step."""
    with system_errors(OutputError, "cannot read", path):
        return path.stat().st_size if path.exists() else 0


def _append(path: Path, data: bytes) -> None:
    with system_errors(OutputError, "cannot write", path), path.open("ab") as file:
        file.write(data)


def list_outputs(document: Mapping[str, Any], verdict: Verdict) -> dict[str, str]:
    """Return names and values, all from a closed set, so that no text of a log is among them."""
    baseline = verdict.baseline
    return {
        "passed": _TRUTH[verdict.passed],
        "healthy": _TRUTH[verdict.healthy],
        "proven": _TRUTH[verdict.proven],
        "completed": _TRUTH.get(document["checks"].get("completed"), "unknown"),
        "failure_reason": (document.get("failure") or {}).get("reason") or "",
        "comparability": baseline.verdict if baseline is not None else "",
        "failed_count": str(verdict.count("failed")),
        "unknown_count": str(verdict.count("unknown")),
    }


def render_outputs(outputs: Mapping[str, str]) -> str:
    """Return ``name=value`` lines for ``$GITHUB_OUTPUT``, or for a dotenv report."""
    return "".join(f"{name}={value}\n" for name, value in outputs.items())
