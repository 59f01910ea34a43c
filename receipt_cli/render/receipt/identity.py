"""Identity of a run: names, log, grammar, machine, model and code, each with its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from receipt_cli.render.fields import items, mapping, real, text, truth, whole
from receipt_cli.render.scale import byte_size, count, parameters
from receipt_cli.render.terminal.page import Page, Span

_LABEL_WIDTH = 8
_MAX_ACCELERATORS = 4
_CHOSEN_BY = {
    "evidence": "version shown by the log",
    "default": "newest version, the log does not show which",
    "option": "as asked for",
}
_DEGREES = ("data", "tensor", "pipeline", "context", "expert")

Item = list[Span]


def write_identity(page: Page, document: Mapping[str, object], *, what: str | None = None) -> None:
    """Add the title and one line for each kind of fact; unknown facts have no line.

    ``what`` is the title of a document other than a receipt; the run's name follows it.
    """
    page.line(*_title(page, document, what))
    for label, facts in (
        ("run", _run(page, document)),
        ("log", _log(page, document)),
        ("import", _import(page, document)),
        ("grammar", _grammars(page, document)),
        ("hardware", _hardware(page, document)),
        ("model", _model(page, document)),
        ("parallel", _parallel(page, document)),
        ("code", _code(page, document)),
        ("software", _software(page, document)),
    ):
        known = _merge_origins(list(facts))
        if known:
            page.flow(label, known, label_width=_LABEL_WIDTH)


def _merge_origins(facts: list[Item]) -> list[Item]:
    """Leave an origin out where the next fact of the line has the same."""
    return [
        item[:-1] if item[-1].text.startswith(" (") and after and item[-1] == after[-1] else item
        for item, after in zip_longest(facts, facts[1:])
    ]


def _title(page: Page, document: Mapping[str, object], what: str | None) -> Iterator[Span]:
    run = mapping(document, "run")
    name = text(run, "name")
    if what is not None:
        yield Span(page.say(what), "heading")
        if name:
            yield from (Span(" · run ", "dim"), Span(page.say(name)))
    elif name:
        yield Span(page.say(name), "heading")
    else:
        grammars = items(document, "derivation", "grammars")
        trainer = (text(grammars[0], "id") if grammars else None) or text(document, "header", "software", "trainer")
        yield Span(f"{page.say(trainer)} run" if trainer else "run of an unknown trainer", "heading")
    for key in ("lane", "preset"):
        value = text(run, key)
        if value:
            yield from (Span(f" · {key} ", "dim"), Span(page.say(value)))


def _run(page: Page, document: Mapping[str, object]) -> Iterator[Item]:
    run = mapping(document, "run")
    for key, label in (("started_at", "started"), ("finished_at", "finished")):
        value = text(run, key)
        if value:
            yield [Span(f"{label} {page.say(value)}")]
    code = whole(run, "exit_code")
    if code is not None:
        yield [Span(f"exit code {code}", "bad" if code else "plain")]


def _log(page: Page, document: Mapping[str, object]) -> Iterator[Item]:
    log = mapping(document, "derivation", "log")
    size, lines, digest = real(log, "size_bytes"), whole(log, "line_count"), text(log, "sha256")
    if size is not None:
        yield [Span(byte_size(size))]
    if lines is not None:
        yield [Span(f"{count(lines)} {'line' if lines == 1 else 'lines'}")]
    if digest:
        yield [Span(f"sha256 {page.say(digest[:12])}")]
    files = len(items(log, "files"))
    if files:
        yield [Span(f"{count(files)} files")]
    runs, used = (whole(document, "derivation", "launches", key) for key in ("count", "used"))
    if runs is not None and used is not None:
        yield [Span(f"run {count(used)} of {count(runs)} in it")]


def _import(page: Page, document: Mapping[str, object]) -> Iterator[Item]:
    origin = mapping(document, "derivation", "origin")
    version, producer = text(origin, "format_version"), text(origin, "producer")
    if origin:
        yield [Span(page.say(text(origin, "format") or "unknown format") + (f" {page.say(version)}" if version else ""))]
    if producer:
        yield [Span(f"written by {page.say(producer)}")]


def _grammars(page: Page, document: Mapping[str, object]) -> Iterator[Item]:
    for grammar in items(document, "derivation", "grammars")[:_MAX_ACCELERATORS]:
        version = whole(grammar, "version")
        name = f"{page.say(text(grammar, 'id') or '?')}@v{'?' if version is None else version}"
        why = _CHOSEN_BY.get(text(grammar, "chosen_by") or "")
        yield [Span(name), *([Span(f" ({why})", "dim")] if why else [])]


def _hardware(page: Page, document: Mapping[str, object]) -> Iterator[Item]:
    models = items(document, "header", "hardware", "accelerators")
    for index, model in enumerate(models[:_MAX_ACCELERATORS]):
        name, number, memory = text(model, "name"), whole(model, "count"), real(model, "memory_bytes")
        if name is None and number is None and memory is None:
            continue
        number_text = "? × " if number is None else f"{count(number)} × "
        memory_text = f", {byte_size(memory)} each" if memory is not None and number != 1 else ""
        memory_text = f", {byte_size(memory)}" if memory is not None and number == 1 else memory_text
        body = f"{number_text}{page.say(name) if name else 'unnamed accelerator'}{memory_text}"
        yield [Span(body), *_origin(page, document, f"/hardware/accelerators/{index}")]
    if len(models) > _MAX_ACCELERATORS:
        yield [Span(f"{len(models) - _MAX_ACCELERATORS} more kinds", "dim")]


def _model(page: Page, document: Mapping[str, object]) -> Iterator[Item]:
    architecture = text(document, "header", "model", "architecture")
    if architecture:
        yield [Span(page.say(architecture)), *_origin(page, document, "/model/architecture")]
    known = whole(document, "header", "model", "parameter_count")
    origin = _origin(page, document, "/model/parameter_count") if known is not None else []
    if known is None:
        known = whole(document, "summary", "parameter_count")
    if known is not None:
        exact = f" ({count(known)})" if 1000 <= known < 1e15 else ""
        yield [Span(parameters(known)), Span(exact, "dim"), Span(" parameters"), *origin]


def _parallel(page: Page, document: Mapping[str, object]) -> Iterator[Item]:
    degrees = mapping(document, "header", "parallelism")
    world = whole(degrees, "world_size")
    if world is not None:
        yield [
            Span(f"{count(world)} {'rank' if world == 1 else 'ranks'}"),
            *_origin(page, document, "/parallelism/world_size"),
        ]
    for name in _DEGREES:
        degree = whole(degrees, name)
        if degree is not None:
            yield [Span(f"{name} {count(degree)}"), *_origin(page, document, f"/parallelism/{name}")]


def _code(page: Page, document: Mapping[str, object]) -> Iterator[Item]:
    git = mapping(document, "header", "git")
    commit, branch, dirty = text(git, "commit"), text(git, "branch"), truth(git, "dirty")
    if commit is None and branch is None:
        return
    body = page.say(commit[:10]) if commit else "unknown commit"
    body += f" on {page.say(branch)}" if branch else ""
    pointer = "/git/commit" if commit else "/git/branch"
    note = [Span(", uncommitted changes", "warn")] if dirty else []
    yield [Span(body), *note, *_origin(page, document, pointer)]


def _software(page: Page, document: Mapping[str, object]) -> Iterator[Item]:
    software = mapping(document, "header", "software")
    for name in ("torch", "cuda", "python"):
        version = text(software, name)
        if version:
            yield [Span(f"{name} {page.say(version)}"), *_origin(page, document, f"/software/{name}")]
    trainer, version = text(software, "trainer", "name"), text(software, "trainer", "version")
    if trainer and version:
        yield [
            Span(f"{page.say(trainer)} {page.say(version)}"),
            *_origin(page, document, "/software/trainer/version"),
        ]


def _origin(page: Page, document: Mapping[str, object], pointer: str) -> Item:
    """Return the source of the header value at ``pointer``: that of the nearest pointer at, above or below it."""
    sources = mapping(document, "header", "sources")
    place = pointer
    while place:
        origin = text(sources, place)
        if origin:
            return [Span(f" ({page.say(origin)})", "dim")]
        place = place.rpartition("/")[0]
    below = next((v for k, v in sources.items() if k.startswith(f"{pointer}/") and isinstance(v, str) and v), None)
    return [Span(f" ({page.say(below)})", "dim")] if below else []
