"""Render a comparison document as Markdown, for a pull request or a job summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from receipt_cli.render.comparison import words
from receipt_cli.render.text import code, escape, table

MAX_BYTES = 60_000
"""Most bytes of a comment: hosts accept 65,536 characters, and a job's summary has other parts."""
_ROOM = 200
"""Bytes reserved for the last line."""
_MAX_ROWS = 40
_MAX_NAMES = 4


def render_markdown(document: Mapping[str, Any], most: int = MAX_BYTES) -> str:
    """Return the comparison (``comparison/1.4``) as GitHub-flavoured Markdown of at most ``most`` bytes.

    If not all contrasts fit, those with a bad outcome come first, and a last line counts those that are left out.
    """
    blocks = [_block(document["baseline"]["runs"], contrast) for contrast in document["contrasts"]]
    targets = [_target(target) for target in document["targets"]]
    text = "\n".join([*blocks, *targets])
    if len(text.encode()) <= most:
        return text
    if targets:  # they come after the comparisons, if there is room
        bounded = render_markdown({**document, "targets": []}, most - _ROOM)
        for target in targets:
            if len(bounded.encode()) + len(target.encode()) < most - _ROOM:
                bounded = f"{bounded}\n{target}"
        return bounded
    order = sorted(range(len(blocks)), key=lambda place: (not _is_bad(document["contrasts"][place]), place))
    kept: list[str] = []
    room = most - _ROOM
    for place in order:
        size = len(blocks[place].encode()) + 1
        if size > room:
            break
        kept.append(blocks[place])
        room -= size
    if not kept:  # one contrast alone is too long
        lines = blocks[order[0]].encode()[: most - _ROOM].decode("utf-8", "ignore").rpartition("\n")[0]
        kept.append(f"{lines}\n")
    rest = order[len(kept) :]
    bad = sum(_is_bad(document["contrasts"][place]) for place in rest)
    return "\n".join([*kept, f"… {len(rest)} more comparisons are left out, {bad} of them with something worse or lost\n"])


def _block(baseline: Sequence[str], contrast: Mapping[str, Any]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(_contrast(baseline, contrast))).strip() + "\n"


def _target(target: Mapping[str, Any]) -> str:
    rows = [[code(name), *map(escape, cells)] for name, *cells in words.target_rows(target)]
    more = [] if len(rows) <= _MAX_ROWS else ["", f"… {len(rows) - _MAX_ROWS} more runs are left out"]
    return "\n".join([f"### {escape(words.target_title(target))}", "", *table(words.TARGET_HEAD, rows[:_MAX_ROWS]), *more]) + "\n"


def _is_bad(contrast: Mapping[str, Any]) -> bool:
    lost = any(m["outcome"] in ("worse", "lost") for m in contrast["metrics"])
    return lost or contrast["verdict"] == "not_comparable" or any(c["b"] is False for c in contrast["outcome"]["checks"])


def _contrast(baseline: Sequence[str], contrast: Mapping[str, Any]) -> Iterator[str]:
    sides = (", ".join(map(code, names[:_MAX_NAMES])) for names in (baseline, contrast["runs"]))
    yield f"### {words.VERDICTS[contrast['verdict']][0]}: {' and '.join(sides)}"
    yield ""
    yield from (f"- {escape(words.reason_text(reason))}" for reason in contrast["reasons"][:_MAX_ROWS])
    yield from _rows(("metric", "a", "b", "change", "95 % interval", ""), [_metric(m) for m in contrast["metrics"]])
    fields = [
        (code(words.field_name(f["pointer"])), *(code(words.field_value(f[side])) for side in ("a", "b")))
        for f in contrast["fields"]
    ]
    yield from _rows(("field", "a", "b"), fields)
    yield ""
    stalls = [] if contrast["stalls"] is None else [words.stall_facts(contrast["stalls"])]
    listed = [*stalls, *map(words.curve_facts, contrast["curves"])]
    yield from (f"- {escape(name)}: {escape(', '.join(facts))}" for name, facts in listed)
    yield ""
    yield from (f"> {escape(note)}" for note in contrast["notes"])
    yield ""


def _metric(m: Mapping[str, Any]) -> tuple[str, ...]:
    unit, *sides = words.figures(m)
    values, outcome = (f"{side} {unit}".strip() for side in sides), words.OUTCOMES[m["outcome"]][0]
    return tuple(map(escape, (words.figure_name(m), *values, words.change(m), words.interval(m), outcome)))


def _rows(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield from ("", *table(titles, rows[:_MAX_ROWS]))
        if len(rows) > _MAX_ROWS:
            yield f"\n… {len(rows) - _MAX_ROWS} more"
