"""Render a receipt for the terminal: the card, and with ``full`` all other facts below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from receipt_cli.redaction.mask import count_masks
from receipt_cli.render.card import REASONS, find_doubts, render_card
from receipt_cli.render.console import Column, Page, Span, elide_middle, write_table
from receipt_cli.render.fields import UNKNOWN, items, mapping, real, text, truth, whole
from receipt_cli.render.metrics import write_metrics
from receipt_cli.render.scale import byte_size, clock, count, duration, many, measure, number, parameters, percent, scale_for
from receipt_cli.render.style import Style

Document = Mapping[str, object]
Item = Sequence[str]
"""A text, or a line in spans."""
Row = tuple[str, Sequence[Item]]
"""A label and the facts after it."""

_LABEL = 11
_MAX_PHASES = 12
_MAX_LISTED = 6
_MAX_CAUSE_LINES = 12
_MAX_MODELS = 4
_KWH_J = 3.6e6
_WAITS = {
    "inference": "training waits for inference", "training": "training is slower than what feeds it",
    "data": "steps wait for data", "compute": "steps compute", "balanced": "nothing stands out",
}  # fmt: skip
_MEMORY = {
    "steady": "neither allocated nor reserved memory climbs", "growth": "tensors hold more and more",
    "fragmentation": "the cache cannot use again what it holds",
}  # fmt: skip
_SIZES = {
    "inactive_split_bytes": "split and idle", "oom_requested_bytes": "last asked for",
    "oom_reserved_unallocated_bytes": "idle in the cache then", "oom_free_bytes": "free on the device then",
}  # fmt: skip
_EVIDENCE = {
    "log_timestamps": "by the log's timestamps", "arrival": "by when its lines came", "stated": "as stated",
    "started_and_finished": "from start to finish",
    "receipt_run": "measured by receipt run", "wandb_summary": "by wandb", "nanochat_report": "by report.md",
    "trainer_total": "steps by the trainer's own total", "step_times": "steps by their printed times",
    "trainer_loop": "steps at most: the trainer's training loop",
}  # fmt: skip


def render_receipt(
    document: Document,
    *,
    style: Style,
    series: Mapping[str, Sequence[float]] | None = None,
    full: bool = False,
    log: str | None = None,
    running: bool = False,
    last: tuple[str, str] | None = None,
) -> str:
    """Return the card of the receipt ``document``, if ``full`` with all other facts; a newline ends each line.

    ``series`` maps names of ``summary.metrics`` and ``summary.other_metrics`` to their values in step order,
    in base units, NaN if not finite, for the trend of each metric. ``log``, ``running`` and ``last`` are those of
    ``render_card``. The document need not be valid: what is missing or of the wrong type reads as unknown. No line is wider
    than ``style.width``, and no text of the document reaches the terminal as a control sequence.
    """
    card = render_card(document, style, log=log, running=running, last=last)
    if not full:
        return card
    page = Page(style)
    summary = mapping(document, "summary")
    _write(page, "error", _error(document))
    _lines_to_the_cause(page, document)
    _write(page, "progress", _progress(summary))
    _phases(page, document)
    write_metrics(page, summary, series, phase=text(summary, "phase"))
    _write(page, "time", _time(document))
    _write(page, "memory", _memory(summary))
    _write(page, "run", _identity(document))
    _write(page, "checks", _checks(document))
    _write(page, "reading", _reading(document, style))
    rest = page.text()
    return f"{card}\n{rest}" if rest else card


def _write(page: Page, title: str, rows: Iterator[Row]) -> None:
    """Add a section with the rows that have facts, under its title if it has one; nothing without any."""
    shown = [row for row in rows if row[1]]
    if shown and title:
        page.heading(title)
    for label, facts in shown:
        page.flow(label, facts, label_width=_LABEL)


def write_identity(page: Page, document: Document) -> None:
    """Add job, hardware, model, code, software and log of a run, one line for each that is known."""
    _write(page, "", _identity(document))


def _row(label: str, *facts: Item) -> Row:
    return label, [fact for fact in facts if fact]


# error


def _error(document: Document) -> Iterator[Row]:
    failure = mapping(document, "failure")
    reason = text(failure, "reason")
    if reason is None or reason == "truncated":
        return
    line, category, words = whole(failure, "line_number"), text(failure, "category") or "", REASONS.get(reason, reason)
    yield _row("cause", words, "" if category in words else category, f"log:{line}" if line else "")
    raised = mapping(failure, "exception")
    message = text(raised, "message") or text(failure, "message")
    kind = text(raised, "type")
    said = ": ".join(part for part in (kind, message) if part)
    yield _row("says", said)
    frame = mapping(raised, "frame")
    if (file := text(frame, "file")) and (at := whole(frame, "line")) is not None:
        function = text(frame, "function")
        yield _row("frame", f"{file}:{at}" + (f" in {function}" if function else ""))
    yield _row("first", _party(mapping(failure, "culprit")))
    parties = [shown for one in items(failure, "victims", "first") if (shown := _party(one))]
    more = (whole(failure, "victims", "count") or len(parties)) - _MAX_LISTED
    yield _row("after it", *parties[:_MAX_LISTED], f"{count(more)} more" if more > 0 else "")
    seen: list[str] = []
    for one in items(failure, "markers"):
        if text(one, "role") in ("error", "cause", "consequence", "stop", None):
            name, first_line = text(one, "reason") or text(one, "id") or "?", whole(one, "first_line")
            words = "traceback" if name == "traceback" else REASONS.get(name, name.replace("_", " "))
            told = f"{words} ×{count(whole(one, 'count') or 1)}"
            seen.append(told + (f", first log:{first_line}" if first_line else ""))
    yield _row("lines", *seen[:_MAX_LISTED])
    silence, since = real(failure, "progress", "silence_s"), whole(failure, "progress", "line_number")
    if truth(failure, "progress", "stalled") and silence is not None:
        yield _row("stalled", Span(f"no progress for the last {clock(silence)}, since log:{since or '?'}", "warn"))


def _party(party: object) -> str:
    """Return rank, host and collective of a party to a failure; empty for an unknown one."""
    rank, host = whole(party, "rank"), text(party, "host")
    enqueued, completed = whole(party, "enqueued"), whole(party, "completed")
    parts = [f"rank {rank}" if rank is not None else "", f"on {host}" if host is not None else ""]
    parts += [f"(collective {enqueued} enqueued, {completed} completed)"] if enqueued is not None else []
    return " ".join(part for part in parts if part)


def _lines_to_the_cause(page: Page, document: Document) -> None:
    """Add the last lines up to the cause, if the receipt holds them."""
    tail = [line for line in items(document, "failure", "log_tail") if isinstance(line, str)]
    message = (text(document, "failure", "message") or "").strip()[:80]
    cause = next((index for index, line in enumerate(tail) if message and message in line), None)
    if cause is None or text(document, "failure", "reason") == "truncated":
        return
    for index in range(max(0, cause + 1 - _MAX_CAUSE_LINES), cause + 1):
        body = elide_middle(page.say(tail[index].expandtabs(4).rstrip()), page.style.width - 4)
        page.line(Span("│ ", "dim"), Span(body, "warn" if index == cause else "dim"), indent=2)


# progress


def _progress(summary: Document) -> Iterator[Row]:
    steps = mapping(summary, "steps")
    records, restarts, again = (whole(steps, key) for key in ("record_count", "restart_count", "superseded_count"))
    if records:
        lost = f"{count(again)} records repeated" if again else ""
        yield _row("records", count(records), f"{count(restarts)} restarts" if restarts else "", lost)
    found = mapping(summary, "checkpoints")
    total, step, took = whole(found, "count"), whole(found, "last_step"), real(found, "duration_s")
    if total:
        last = f"the last at step {count(step)}" if step is not None else ""
        yield _row("checkpoints", count(total), last, f"{duration(took)} together" if took else "")
    tokens = mapping(summary, "position")
    if (at := real(tokens, "last")) is not None:
        yield _row("position", f"{count(at)} {(text(tokens, 'kind') or '').replace('_', ' ')}")


def _phases(page: Page, document: Document) -> None:
    phases = items(document, "phases")
    if len(phases) < 2:
        return
    columns = [Column("phase", least=12), *(Column(name, right=True) for name in ("steps", "records", "loss"))]
    columns.append(Column("time", right=True, drop=1))
    rows = []
    for phase in phases[:_MAX_PHASES]:
        summary = mapping(phase, "summary")
        ends = [whole(summary, "steps", key) for key in ("first", "last")]
        planned, records = whole(summary, "steps", "planned"), whole(summary, "steps", "record_count")
        steps = "–".join(UNKNOWN if end is None else count(end) for end in ends) + (f" / {count(planned)}" if planned else "")
        losses = [real(summary, "metrics", "loss", key) for key in ("first", "last")]
        scale = scale_for("loss", [value for value in losses if value is not None])
        loss = " → ".join(UNKNOWN if value is None else scale.format(value) for value in losses)
        time = real(summary, "training_time_s")
        name = text(phase, "name") or text(summary, "phase")
        shown = [steps, UNKNOWN if records is None else count(records), loss, UNKNOWN if time is None else clock(time)]
        rows.append([Span(name or "unnamed", "strong"), *shown])
    page.gap()
    write_table(page, columns, rows, hidden=len(phases) - len(rows), what="phases")


# time and memory


def _time(document: Document) -> Iterator[Row]:
    goodput, summary = mapping(document, "goodput"), mapping(document, "summary")
    ratio, wall = real(goodput, "goodput_ratio"), real(goodput, "wall_time_s")
    if wall is not None:
        how = [_EVIDENCE.get(slug, slug) for key in ("evidence", "step_evidence") if (slug := text(goodput, key))]
        yield _row("wall", clock(wall), f"{percent(ratio)} in steps" if ratio is not None else "", *dict.fromkeys(how))
    losses = [(name, real(goodput, "badput_s", name)) for name in mapping(goodput, "badput_s")]
    lost = [_loss(goodput, name, value) for name, value in sorted(losses, key=lambda pair: -(pair[1] or 0)) if value]
    yield _row("lost to", *lost)
    yield _row("not known", *(name.replace("_", " ") for name, value in losses if value is None and wall is not None))
    stalls = mapping(goodput, "stalls")
    longest = next(iter(items(stalls, "longest")), None)
    if (length := real(longest, "duration_s")) is not None and (total := real(stalls, "total_s")) is not None:
        where = f"the longest {clock(length)}, log:{whole(longest, 'after_line')} to log:{whole(longest, 'line_number')}"
        yield _row("stalls", f"{count(whole(stalls, 'count') or 1)}, {clock(total)}", where)
    quantiles = (("median", "p50_s"), ("90 %", "p90_s"), ("99 %", "p99_s"))
    spread = (f"{label} {duration(value)}" for label, key in quantiles if (value := real(summary, "step_times", key)))
    yield _row("step time", *spread)
    realised = mapping(summary, "realised")
    rates = [f"{unit}_per_s" for unit in ("tokens", "samples", "steps") if real(realised, f"{unit}_per_s")]
    if rates and (length := real(realised, "duration_s")) is not None:
        shown = measure(rates[0], real(realised, rates[0]) or 0)
        yield _row("measured", f"{shown} over {clock(length)} of wall time")
    yield from _slow(summary)
    waits = text(summary, "bottleneck", "verdict")
    if waits in _WAITS:
        yield _row("bottleneck", waits or "", _WAITS[waits or ""], text(summary, "bottleneck", "because") or "no figure says why")


_LOOK_AT = {
    "data": "the loader of these steps: its workers, the storage, what the samples are made of",
    "communication": "the rank that came last to these steps, then the network between the ranks",
    "compute": "what these steps compute: longer samples, a compilation, clocks of the devices",
    "generation": "how long the generated samples of these steps are, and the queue of the server",
    "evaluation": "how often is evaluated, and on how many batches",
    "checkpoint": "how checkpoints are written: beside the steps, in parts, to quicker storage",
}
"""Cause of slow steps → what to look at next."""
_PRINT_PARTS = "print the time of the parts of a step: data, communication, computing"


def _slow(summary: Document) -> Iterator[Row]:
    slow = mapping(summary, "slow_steps")
    steps, excess = whole(slow, "step_count"), real(slow, "excess_s")
    if steps is None or excess is None:
        return
    causes = mapping(slow, "causes")
    known = {name: each for name in causes if (each := whole(causes, name, "step_count")) is not None}
    rest = steps - sum(known.values())
    told = [f"{count(each)} by {name}" for name, each in known.items()]
    yield _row("slow steps", f"{count(steps)}, {duration(excess)} beyond the usual", *told,
               "cause not printed" if not known else f"{count(rest)} of unprinted cause" if rest else "")  # fmt: skip
    for one in items(slow, "longest")[:1]:
        times = [real(one, key) for key in ("step_time_s", "usual_s", "part_s", "usual_part_s")]
        took, usual, part, usual_part = ("?" if time is None else duration(time) for time in times)
        step, cause, line = whole(one, "step"), text(one, "cause"), whole(one, "line_number")
        slow_ranks = items(one, "slow_ranks")
        ranks = [f"{whole(each, 'rank')}{f' ({why})' if (why := text(each, 'cause')) else ''}" for each in slow_ranks]
        where = f"step {count(step)}" if step is not None else "a step"
        grew = f"{cause} {part}, usually {usual_part}" if cause and times[2] is not None else ""
        on = f"slow on rank {', '.join(ranks)}" if ranks else ""
        yield _row("the slowest", f"{where} took {took}, usually {usual}", grew, on, f"log:{line}")
    yield _row("look at", _LOOK_AT.get(text(slow, "verdict") or "", _PRINT_PARTS if not known else ""))


def _loss(goodput: Document, name: str, value: float) -> str:
    guessed = "~" if text(goodput, "parts", name, "how") == "inferred" else ""
    beside = real(goodput, "parts", name, "overlapped_s")
    more = f" +{duration(beside)} beside" if beside else ""
    return f"{name.replace('_', ' ')} {guessed}{clock(value)}{more}"


def _memory(summary: Document) -> Iterator[Row]:
    memory = mapping(summary, "memory")
    figures, reading = mapping(memory, "figures"), text(memory, "reading")
    if reading in _MEMORY:
        growing = text(memory, "growing")
        most = f"grows most: {growing.replace('_', ' ')}" if growing else ""
        yield _row(reading or "", _MEMORY[reading or ""], most)
    for kind in ("allocated", "reserved"):
        yield _row(kind, _sizes(figures, kind) or _sizes(figures, f"peak_{kind}"))
    yield _row("at the end", *(f"{label} {byte_size(size)}" for name, label in _SIZES.items() if (size := real(figures, name))))
    for name, noun in (("alloc_retry_count", "retries"), ("oom_count", "refusals")):
        if times := real(figures, name):
            yield _row(noun, Span(count(round(times)), "warn"))
    low, high = real(figures, "rank_peak_min_bytes"), real(figures, "rank_peak_max_bytes")
    if low is not None and high is not None:
        yield _row("ranks", f"peaks {byte_size(low)} to {byte_size(high)}" if low != high else f"peak {byte_size(low)}")
    ranks = mapping(summary, "ranks")
    slow = [f"rank {name} at {duration(each)} a step" for name, rank in ranks.items()
            if truth(rank, "straggles") and (each := real(rank, "median_step_time_s")) is not None]  # fmt: skip
    yield _row("slow", *slow[:_MAX_LISTED], f"{len(slow) - _MAX_LISTED} more" if len(slow) > _MAX_LISTED else "")


def _sizes(figures: Document, kind: str) -> str:
    first, last, most = (real(figures, f"{kind}_{end}_bytes") for end in ("first", "last", "max"))
    if first is None or last is None:
        return ""
    peak = f", {byte_size(most)} at most" if most is not None and most > max(first, last) else ""
    shown = byte_size(first) if byte_size(first) == byte_size(last) else f"{byte_size(first)} → {byte_size(last)}"
    return f"{'peak ' * kind.startswith('peak_')}{shown}{peak}"


# run


def _identity(document: Document) -> Iterator[Row]:
    """Yield job, hardware, model, code, software, grammar and log of a run."""
    run, header = mapping(document, "run"), mapping(document, "header")
    names = [f"{key} {value}" if key != "name" else value
             for key in ("name", "lane", "preset") if (value := text(run, key))]  # fmt: skip
    yield _row("name", *names)
    moments = [f"{key.partition('_')[0]} {value}" for key in ("started_at", "finished_at") if (value := text(run, key))]
    code = whole(run, "exit_code")
    yield _row("job", *moments, f"exit code {code}" if code is not None else "")
    for job in items(document, "evidence")[:_MAX_MODELS]:
        yield _row("scheduler", *_job(job))
    yield _row("cost", *_cost(mapping(document, "cost")))
    models = items(header, "hardware", "accelerators")[:_MAX_MODELS]
    yield _row("hardware", *(_accelerator(document, index, model) for index, model in enumerate(models)))
    yield _row("model", *_model(document))
    degrees = mapping(header, "parallelism")
    kinds = ("world_size", "data", "tensor", "pipeline", "context", "expert")
    shown = {"world_size": "ranks"}
    parallel = [_fact(document, f"/parallelism/{kind}", f"{shown.get(kind, kind)} {count(degree)}")
                for kind in kinds if (degree := whole(degrees, kind)) is not None]  # fmt: skip
    yield _row("parallel", *_merged(parallel))
    commit, branch = text(header, "git", "commit"), text(header, "git", "branch")
    if commit or branch:
        body = (commit[:10] if commit else "unknown commit") + (f" on {branch}" if branch else "")
        dirty = ", uncommitted changes" if truth(header, "git", "dirty") else ""
        yield _row("code", _fact(document, "/git/commit" if commit else "/git/branch", body + dirty))
    software = mapping(header, "software")
    versions = [_fact(document, f"/software/{name}", f"{name} {told}")
                for name in ("torch", "cuda", "python") if (told := text(software, name))]  # fmt: skip
    yield _row("software", *_merged(versions))
    grammars = [f"{name}@v{'?' if (version := whole(one, 'version')) is None else version}"
                for one in items(document, "derivation", "grammars")[:_MAX_MODELS] if (name := text(one, "id"))]  # fmt: skip
    yield _row("grammar", *grammars)
    yield _row("log", *_log(mapping(document, "derivation")))


def _log(derivation: Document) -> Iterator[str]:
    log, origin = mapping(derivation, "log"), mapping(derivation, "origin")
    size, lines, digest = real(log, "size_bytes"), whole(log, "line_count"), text(log, "sha256")
    if origin:
        parts = (text(origin, "format") or "unknown format", text(origin, "format_version"), text(origin, "producer"))
        yield " ".join(filter(None, parts))
    if size is not None:
        yield byte_size(size)
    if lines is not None:
        yield many(lines, "line")
    if files := len(items(log, "files")):
        yield f"{count(files)} files"
    if digest:
        yield f"sha256 {digest[:12]}"


def _job(job: object) -> Iterator[str]:
    yield " ".join(filter(None, (text(job, "source"), text(job, "job_id"))))
    yield from filter(None, (text(job, "state") or text(job, "ended"), text(job, "reason")))
    code, peak, limit = whole(job, "exit_code"), real(job, "max_rss_bytes"), real(job, "memory_limit_bytes")
    if code is not None:
        yield f"exit code {code}"
    if peak is not None:
        yield f"{byte_size(peak)} at its peak"
    if limit is not None:
        yield f"{byte_size(limit)} granted"


def _cost(cost: Document) -> Iterator[str]:
    amount, hours, energy = real(cost, "amount"), real(cost, "device_hours"), real(cost, "energy_j")
    power, devices = real(cost, "power_w_per_device"), whole(cost, "device_count")
    if amount is not None:
        yield f"{number(amount)} {text(cost, 'currency') or ''}".rstrip()
    if hours is not None and devices is not None:
        yield f"{number(hours)} device-hours ({many(devices, 'device')})"
    if energy is not None:
        yield f"{number(energy / _KWH_J)} kWh"
    if source := text(cost, "price_source"):
        yield f"price {source}"
    if power is not None:
        yield f"power {number(power)} W a device, {text(cost, 'power_source') or ''}"


def _accelerator(document: Document, index: int, model: object) -> Item:
    name, many, memory = text(model, "name"), whole(model, "count"), real(model, "memory_bytes")
    if name is None and many is None and memory is None:
        return []
    body = f"{count(many)} × " if many is not None else ""
    body += (name or "unnamed accelerator") + (f", {byte_size(memory)}" if memory is not None else "")
    return _fact(document, f"/hardware/accelerators/{index}", body)


def _model(document: Document) -> list[list[str]]:
    facts = []
    if architecture := text(document, "header", "model", "architecture"):
        facts.append(_fact(document, "/model/architecture", architecture))
    known = whole(document, "header", "model", "parameter_count")
    known = whole(document, "summary", "parameter_count") if known is None else known
    if known is not None:
        facts.append(_fact(document, "/model/parameter_count", f"{parameters(known)} parameters ({count(known)})"))
    return _merged(facts)


def _fact(document: Document, pointer: str, body: str) -> list[str]:
    """Return a fact of the header and its source: that of the nearest pointer at, above or below ``pointer``."""
    sources = mapping(document, "header", "sources")
    place = pointer
    while place:
        if origin := text(sources, place):
            return [body, Span(f" ({origin})", "dim")]
        place = place.rpartition("/")[0]
    below = next((v for k, v in sources.items() if k.startswith(f"{pointer}/") and isinstance(v, str) and v), None)
    return [body, *([Span(f" ({below})", "dim")] if below else [])]


def _merged(facts: list[list[str]]) -> list[list[str]]:
    """Leave a source out if the next fact of the line has the same."""
    followed = zip_longest(facts, facts[1:])
    return [item[:1] if len(item) > 1 and after and after[1:] == item[1:] else item for item, after in followed]


# checks and reading


def _checks(document: Document) -> Iterator[Row]:
    checks, lines = mapping(document, "checks"), mapping(document, "derivation", "check_lines")
    failed = [name for name in checks if truth(checks, name) is False]
    places = [Span(f" (log:{line})" if (line := whole(lines, name)) else "", "dim") for name in failed]
    yield _row("failed", *([Span(name, "bad"), place] for name, place in zip(failed, places, strict=True)))
    yield _row("unknown", *(Span(name, "warn") for name in checks if truth(checks, name) is None))
    yield _row("passed", *(name for name in checks if truth(checks, name) is True))


def _reading(document: Document, style: Style) -> Iterator[Row]:
    derivation = mapping(document, "derivation")
    words = {"matched": "read", "ignored": "known and without figures", "unmatched": "not read"}
    counts = {name: whole(derivation, "lines", name) for name in words}
    yield _row("records", *(f"{count(n)} {words[name]}" for name, n in counts.items() if n is not None))
    for doubt in find_doubts(document, style):
        yield _row("doubt", Span(doubt, "warn"))
    for label, name in (("problem", "problems"), ("almost", "near_misses")):
        for one in items(derivation, name, "first")[:_MAX_LISTED]:
            line, rule = whole(one, "line_number"), text(one, "rule")
            what = text(one, "detail") or (f"{text(one, 'grammar') or '?'} {rule}" if rule else text(one, "kind") or "?")
            excerpt = text(one, "excerpt")
            if what != "?":
                yield _row(label, f"log:{line}" if line else "", what, (excerpt or "")[:80])
    derivation = {key: value for key, value in derivation.items() if key != "redactions"}
    parts = (document.get(key) for key in ("run", "header", "phases", "failure", "attachments", "evidence"))
    masks = count_masks(*parts, derivation)  # how often each class of secret is masked
    most = sorted(masks.items(), key=lambda item: (-item[1], item[0]))[:_MAX_LISTED]
    yield _row("masked", *(f"{count(times)} {kind}" for kind, times in most))
