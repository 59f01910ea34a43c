"""Render a receipt and its verdict as a Markdown job summary of bounded size; text from logs is only displayed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from receipt_cli.analysis.checks import outcome
from receipt_cli.ci.findings import Finding
from receipt_cli.ci.verdict import Ruling, State, Verdict, departed, draw, title_of
from receipt_cli.render.comparison.markdown import render_markdown
from receipt_cli.render.comparison.words import field_value
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.scale import count, scale_for
from receipt_cli.render.style import Style
from receipt_cli.render.text import MAX_CELL, clean, code, escape, table

MAX_BYTES = 1024 * 1024
"""Largest step summary in bytes: GitHub discards a larger one."""
_MARKS: dict[State, str] = {"passed": "✅", "failed": "❌", "unknown": "❔", "noted": "▫️"}
_MAX_METRICS = 40
_MAX_CURVES = 4
_MAX_RULINGS = 220
_STATISTICS = ("first", "last", "median", "min", "max")


def render_summary(document: Mapping[str, Any], verdict: Verdict, findings: Sequence[Finding], room: int = MAX_BYTES) -> bytes:
    """Return the page as UTF-8, at most ``room`` bytes; name the sections that do not fit and are left out."""
    sections = [
        ("verdict", _head(document, verdict)),
        ("gates", _rulings("Gates", ("gate", "wanted", "found"), verdict.of_kind("gate"))),
        ("golden curves", _golden(verdict)),
        ("checks", _rulings("Checks", ("check", "wanted", "found"), verdict.of_kind("check"))),
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


def _rulings(title: str, columns: Sequence[str], rulings: Sequence[Ruling]) -> Iterator[str]:
    if not rulings:
        return
    yield from (f"### {title}", "")
    yield from table(("", *columns), [_row(ruling) for ruling in sorted(rulings, key=lambda r: not r.fails)[:_MAX_RULINGS]])


def _golden(verdict: Verdict) -> Iterator[str]:
    for curve in departed(verdict.golden)[:_MAX_CURVES] if verdict.golden is not None else ():
        yield from (f"### {escape(title_of(curve))}", "", "```text", *draw(curve, Style()).strip("\n").split("\n"), "```", "")


def _row(ruling: Ruling) -> tuple[str, ...]:
    reason = f" ({escape(ruling.reason)})" if ruling.reason else ""
    return _MARKS[ruling.state], code(ruling.name), escape(ruling.wanted), f"{escape(ruling.found[:MAX_CELL])}{reason}"


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
