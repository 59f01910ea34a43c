"""Rules of a receipt: its derived parts agree with each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from receipt_cli.documents.invariants.captured import CAPTURED_RULES, HEADER_RULES, ORIGIN_RULES
from receipt_cli.documents.invariants.evidence import EVIDENCE_RULES
from receipt_cli.documents.invariants.goodput import GOODPUT_RULES, STATED_RULES
from receipt_cli.documents.invariants.phase import DIAGNOSIS_RULES, ODDITY_RULES, PROGRESS_RULES, STATISTIC_RULES
from receipt_cli.documents.invariants.rule import PHASES, Broken, Document, Rule, check_texts, each, is_import, said, summaries
from receipt_cli.problems import pointer
from receipt_cli.redaction.mask import count_masks
from receipt_cli.redaction.text import TAIL_BYTES

_LOSSES = ("loss", "val_loss")
_KEYS = 256
"""Most keys of cells that a receipt lists."""
_DIGITS = 400
"""Digits read of a line number; Python refuses to read an integer of thousands of digits."""


def _markers(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (pointer, marker) for the failure's markers and the observed markers."""
    if document["failure"] is not None:
        for number, marker in enumerate(document["failure"]["markers"]):
            yield pointer("failure", "markers", number), marker
    for number, marker in enumerate(document["derivation"]["observed"]):
        yield pointer("derivation", "observed", number), marker


def _lines_add_up(document: Document) -> Broken:
    derivation = document["derivation"]
    total, records = sum(map(int, derivation["lines"].values())), derivation["log"]["record_count"]
    if total != records:
        yield "/derivation/lines", f"the counts add up to {total}, but the log has {records} records"


def _told_and_counted(document: Document) -> Broken:
    for part in ("near_misses", "problems"):
        told, count = len(document["derivation"][part]["first"]), document["derivation"][part]["count"]
        if told > count:
            yield f"/derivation/{part}/count", f"is {count}, but {told} are listed"


def _cells_add_up(document: Document) -> Broken:
    for part, cells in document["derivation"].get("cells", {}).items():
        total, listed = cells["count"], sum(map(int, cells["by_key"].values()))
        if listed > total or (listed < total and len(cells["by_key"]) < _KEYS):
            yield pointer("derivation", "cells", part, "count"), f"is {total}, but the keys have {listed} cells"


def _grammars_and_summary(document: Document) -> Broken:
    summary, grammars = document["summary"], document["derivation"]["grammars"]
    if is_import(document):
        return  # ``origin`` checks it
    if not grammars and (document["phases"] or (summary is not None and summary["steps"]["record_count"])):
        yield "/derivation/grammars", "phases and steps come from a grammar"


def _line_numbers(document: Document) -> Broken:
    derivation, failure = document["derivation"], document["failure"]
    limit = max(derivation["log"]["line_count"], derivation["log"]["record_count"])
    places: list[tuple[str, int | None]] = []
    for part in ("near_misses", "problems"):
        for number, entry in enumerate(derivation[part]["first"]):
            places.append((f"/derivation/{part}/first/{number}/line_number", entry["line_number"]))
            places += [(pointer("derivation", part, "first", number, "lines"), line) for line in entry.get("lines", ())]
    if failure is not None:
        places.append(("/failure/line_number", failure["line_number"]))
        places += _lines_of_failure(failure)
    places += [(f"{at}/last_line", marker["last_line"]) for at, marker in _markers(document)]
    for text, origin in document["header"]["sources"].items():
        if origin.startswith("log:"):
            digits = origin.removeprefix("log:")
            places.append((pointer("header", "sources", text), int(digits[:_DIGITS])))
    for at, line in places:
        if line is not None and line > limit:
            yield at, f"the log has no line {line}"


def _lines_of_failure(failure: Document) -> Iterator[tuple[str, int | None]]:
    """Yield (pointer, line number) from the parts of a failure that receipt/1.3 added."""
    for name in ("exception", "culprit", "progress"):
        if failure.get(name) is not None:
            yield pointer("failure", name, "line_number"), failure[name]["line_number"]
    for number, victim in enumerate(failure.get("victims", {}).get("first", ())):
        yield pointer("failure", "victims", "first", number, "line_number"), victim["line_number"]


def _failure_parties(document: Document) -> Broken:
    failure = document["failure"]
    if failure is None or not failure.keys() >= {"victims", "culprit", "retry"}:
        return
    victims, culprit = failure["victims"], failure["culprit"]
    if len(victims["first"]) > victims["count"]:
        yield "/failure/victims/count", f"is {victims['count']}, but {len(victims['first'])} are listed"
    ranks = [victim["rank"] for victim in victims["first"]]
    if culprit is not None and culprit["rank"] is not None and culprit["rank"] in ranks:
        yield "/failure/culprit/rank", f"rank {culprit['rank']} is also a victim"
    verdict, rule = failure["retry"]["verdict"], failure["retry"]["rule"]
    if str(rule).startswith("reason:") and rule != f"reason:{failure['reason']}":
        yield "/failure/retry/rule", f"gives {verdict} for another reason than {failure['reason']}"


def _failure_stalled(document: Document) -> Broken:
    progress = (document["failure"] or {}).get("progress")
    if progress is None:
        return
    known = progress["silence_s"] is not None and progress["usual_s"] is not None
    if (progress["stalled"] is not None) is not known:
        yield "/failure/progress/stalled", f"is {said(progress['stalled'])}, but must follow from silence_s and usual_s"


def _primary_summary(document: Document) -> Broken:
    summary, phases = document["summary"], document["phases"]
    if phases:
        counts = [phase["summary"]["steps"]["record_count"] or 0 for phase in phases]
        primary = counts.index(max(counts))
        if summary is not None and summary["steps"]["record_count"] is None and summary in [phase["summary"] for phase in phases]:
            return  # its count was left out
        if summary != phases[primary]["summary"] and (summary is not None or max(counts)):
            yield "/summary", f"differs from the summary of the primary phase, /phases/{primary}"
    elif summary is not None and summary["steps"]["record_count"]:
        yield "/summary", "has steps though there is no phase"


def _phase_name(document: Document) -> Broken:
    for number, phase in enumerate(document["phases"]):
        if phase["name"] != phase["summary"]["phase"]:
            yield f"/phases/{number}/summary/phase", "is not the name of its phase"


def _steps(document: Document) -> Broken:
    for at, summary in summaries(document):
        steps = summary["steps"]
        first, last = steps["first"], steps["last"]
        if (first is None) != (last is None):
            if not is_import(document):
                yield f"{at}/steps", "first and last must both be known or both be null"
        elif first is not None and steps["record_count"] == 0 and not is_import(document):
            yield f"{at}/steps/first", "is known, but there is no step record"
        elif first is not None and last is not None and first > last:
            yield f"{at}/steps/last", f"is before the first step, {first}"


def _superseded(at: str, summary: Document) -> Broken:
    if summary["steps"]["superseded_count"] and summary["steps"]["restart_count"] == 0:
        yield f"{at}/steps/superseded_count", "is not 0, but there is no restart"


def _steady_state(at: str, summary: Document) -> Broken:
    steady, records = summary["steady_state"], summary["steps"]["record_count"]
    total = sum(int(steady[name]) for name in ("record_count", "excluded_warmup", "excluded_implausible"))
    if records is not None and total != records:
        yield f"{at}/steady_state", f"the counts add up to {total}, but there are {records} step records"


def _has_steps(document: Document) -> Broken:
    seen = any(phase["summary"]["steps"]["record_count"] != 0 for phase in document["phases"])
    stated = document["checks"]["has_steps"]
    unknown = all(phase["summary"]["steps"]["record_count"] is None for phase in document["phases"])
    if stated is None and not seen and (is_import(document) or document["summary"] is None or unknown):
        return  # an imported document or a log with unread lines may miss steps
    if stated is not seen:
        yield "/checks/has_steps", f"is {said(stated)}, but {said(seen)} by the phases"


def _finite_losses(document: Document) -> Broken:
    stated = document["checks"]["finite_losses"]
    losses = [s["metrics"][name] for _, s in summaries(document) for name in _LOSSES if name in s["metrics"]]
    nonfinite = sum(int(loss["nonfinite_count"] or 0) for loss in losses)
    if nonfinite and stated is not False:
        yield "/checks/finite_losses", f"is {said(stated)} though {nonfinite} losses are not finite"
    elif stated is True and all(loss["record_count"] == 0 for loss in losses) and not is_import(document):
        yield "/checks/finite_losses", "is true though no loss was printed"


def _log_complete(document: Document) -> Broken:
    run, options = document["run"], document["derivation"]["options"]
    said, loss = run.get("log_complete"), run.get("log_loss")
    if loss is not None and said is not False:
        yield "/run/log_loss", "is given, but log_complete is not false"
    if said is False and "launches" not in document["derivation"] and options.get("log_complete") is not False:
        yield "/run/log_complete", "is false though the derivation treated the log as complete"
    if options.get("log_complete") is False and document["checks"]["completed"] is True:
        yield "/checks/completed", "is true though output is missing at the end of the log"


def _no_grammar_match(document: Document) -> Broken:
    failure = document["failure"]
    if failure is None or failure["reason"] != "no_grammar_match":
        return
    if document["derivation"]["grammars"]:
        yield "/failure/reason", "is no_grammar_match though a grammar recognised the log"
    elif is_import(document):
        yield "/failure/reason", "is no_grammar_match though no log was read"


def _failed_without_steps(document: Document) -> Broken:
    checks = document["checks"]
    if checks["has_steps"] is False and checks["completed"] is not True and document["failure"] is None:
        yield "/failure", "is null though no step was found and nothing shows that the run completed"


def _log_tail(document: Document) -> Broken:
    failure = document["failure"]
    size = sum(len(line.encode("utf-8")) for line in failure["log_tail"]) if failure is not None else 0
    if size > TAIL_BYTES:
        yield "/failure/log_tail", f"has {size} bytes of UTF-8, more than {TAIL_BYTES}"


def _control_characters(document: Document) -> Broken:
    texts: list[tuple[str, str | None]] = []
    failure = document["failure"]
    if failure is not None:
        texts.append(("/failure/message", failure["message"]))
        raised = failure.get("exception")
        texts += [(f"/failure/exception/{name}", raised[name]) for name in ("type", "message")] if raised is not None else []
        texts += [(f"/failure/log_tail/{n}", line) for n, line in enumerate(failure["log_tail"])]
    texts += [(f"{at}/message", marker["message"]) for at, marker in _markers(document)]
    for part in ("near_misses", "problems"):
        for n, entry in enumerate(document["derivation"][part]["first"]):
            texts += [(f"/derivation/{part}/first/{n}/{k}", entry[k]) for k in ("excerpt", "detail") if k in entry]
    yield from check_texts(texts)


def _marker_lines(document: Document) -> Broken:
    for at, marker in _markers(document):
        count, first, last = marker["count"], marker["first_line"], marker["last_line"]
        if first > last or (count == 1 and first != last):
            yield at, f"seen {count} times, from line {first} to line {last}"


def _redactions(document: Document) -> Broken:
    derivation = document["derivation"]
    stated = derivation.get("redactions")
    if stated is None:
        return  # versions before receipt/1.2 have none
    told = {key: value for key, value in derivation.items() if key != "redactions"}
    held = count_masks(document["phases"], document["failure"], told)
    for kind in sorted({*stated, *held}):
        if stated.get(kind, 0) != held.get(kind, 0):
            yield pointer("derivation", "redactions", kind), f"is {stated.get(kind, 0)}, but the document has {held.get(kind, 0)}"


RECEIPT_RULES: tuple[Rule, ...] = (
    *HEADER_RULES,
    *ORIGIN_RULES,
    Rule("lines_add_up", ("derivation",), _lines_add_up),
    Rule("told_and_counted", ("derivation",), _told_and_counted),
    Rule("cells_add_up", ("derivation",), _cells_add_up),
    Rule("grammars_and_summary", ("derivation", "summary"), _grammars_and_summary),
    Rule("line_numbers", ("derivation", "failure", "header"), _line_numbers),
    Rule("primary_summary", PHASES, _primary_summary),
    Rule("phase_name", PHASES, _phase_name),
    Rule("steps_in_order", (*PHASES, "derivation"), _steps),
    Rule("superseded_by_restart", PHASES, each(_superseded, summaries)),
    Rule("steady_state_adds_up", PHASES, each(_steady_state, summaries)),
    Rule("has_steps_agrees", (*PHASES, "checks", "derivation"), _has_steps),
    Rule("finite_losses_agrees", (*PHASES, "checks", "derivation"), _finite_losses),
    *CAPTURED_RULES,
    Rule("log_complete_agrees", ("run", "checks", "derivation"), _log_complete),
    Rule("no_grammar_match", ("failure", "derivation"), _no_grammar_match),
    Rule("failed_without_steps", ("failure", "checks"), _failed_without_steps),
    Rule("failure_parties", ("failure",), _failure_parties),
    Rule("failure_stalled", ("failure",), _failure_stalled),
    Rule("log_tail_bounded", ("failure",), _log_tail),
    Rule("control_characters", ("failure", "derivation"), _control_characters),
    Rule("marker_lines", ("failure", "derivation"), _marker_lines),
    *ODDITY_RULES,
    *GOODPUT_RULES,
    *STATED_RULES,
    Rule("redactions_counted", ("phases", "failure", "derivation"), _redactions),
    *STATISTIC_RULES,
    *DIAGNOSIS_RULES,
    *PROGRESS_RULES,
    *EVIDENCE_RULES,
)
"""The rules of a receipt in order of check and report."""
