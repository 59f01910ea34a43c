"""Build the ``gpu_profile`` document of a session: figures in base units, null if in doubt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from receipt_cli import __version__
from receipt_cli.gpu_profile import format as gpufl
from receipt_cli.gpu_profile.activity import NS, CopyTotals, Timing, Timings
from receipt_cli.gpu_profile.devices import Columns, metrics_of
from receipt_cli.gpu_profile.session import ReadFile, Session, times_of
from receipt_cli.gpu_profile.spans import Spans
from receipt_cli.gpu_profile.stream import Dictionary, StreamProblems, shown
from receipt_cli.header.document import merge
from receipt_cli.header.values import HeaderFact
from receipt_cli.receipts.production import UNDECLARED, Declared

SCHEMA_VERSION = "gpu_profile/1.2"
RULES = "gpu_profile/2"
"""Version of all rules in code that determine the figures of a session."""
_MAX_KERNELS, _MAX_SCOPES, _MAX_LOSSES = 50, 100, 20
_MAX_REASONS = 50
_SHORT = 200
_DIRECTIONS = (
    "host_to_device", "device_to_host", "device_to_device", "host_to_host", "peer_to_peer", "fill", "unknown"
)  # fmt: skip
_SOURCED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")

Document: TypeAlias = "dict[str, Any]"


def build_document(session: Session, declared: Declared = UNDECLARED) -> Document:
    """Return the document of ``session``."""
    spans = _spans(session)
    busy = {device: None if span is None else span.total() for device, span in spans.items()}
    times = times_of(session, max((length for length in busy.values() if length is not None), default=None))
    kernels, scopes, copies = _kernels(session), _scopes(session), _copies(session)
    devices, sampled = _devices(session, busy), session.samples.hosts
    hosts = [{"name": _text(name, _SHORT), "metrics": _metrics(session, sampler, "host")} for name, sampler in sampled.items()]
    stalls = session.stalls.document(session.metric_names)
    _record_problems(session, complete=times.complete)
    total = None if not busy or None in busy.values() else sum(length for length in busy.values() if length is not None)
    ran = max(1, sum(bool(length) for length in busy.values()))
    ratio = total / times.duration / ran if total is not None and times.duration else None
    events = {
        "format": gpufl.GPUFL_FORMAT,
        "session_id": _text(session.session_id, _SHORT),
        "application": _text(session.application, 500),
        "started_at": times.started_at,
        "duration_s": None if times.duration is None else times.duration / NS,
        "complete": times.complete,
        "lossy": bool(session.problems.lost),
        "losses": [{"kind": kind, "count": count} for kind, count in sorted(session.problems.lost.items())][:_MAX_LOSSES],
        "busy_s": None if total is None else total / NS,
        "busy_ratio": ratio,
        "kernels": kernels,
        "copies": copies,
        "scopes": scopes,
        "devices": devices,
        "hosts": hosts,
    }
    if stalls:
        events["stall_reasons"] = stalls[:_MAX_REASONS]
    records = {"read": session.read, "ignored": session.ignored, "unread": session.unread}
    stated = declared._replace(run={**declared.run, "exit_code": session.exit_code})
    document = assemble(events, stated, session.files, records, session.problems)
    label = session.application or session.session_id or ""
    return document | {"header": _header(session), "profile": {"label": _text(label, _SHORT) or gpufl.GPUFL_FORMAT}}


def assemble(
    events: Document, declared: Declared, files: Sequence[ReadFile], records: Mapping[str, int], problems: StreamProblems
) -> Document:
    """Return the document of ``events``, with keys in schema order; ``records`` are counts of what the ``files`` have."""
    run, attachments = declared
    return {
        "schema_version": SCHEMA_VERSION,
        "run": {key: run.get(key) for key in ("name", "lane", "preset", "started_at", "finished_at", "exit_code")},
        "header": merge(()),
        "profile": {"label": events["format"]},
        "lanes": [],
        "comparison": None,
        "events": events,
        "attachments": [dict(attachment) for attachment in attachments],
        "derivation": {
            "rules": RULES,
            "files": [
                {"name": (shown(f.name) or "?")[:500], "sha256": f.sha256, "size_bytes": f.size_bytes, "line_count": f.line_count}
                for f in files
            ],
            "records": dict(records),
            "problems": {
                "count": problems.count,
                "first": [
                    {"kind": p.kind, "line_number": p.line_number, "detail": p.detail, "excerpt": p.excerpt or None}
                    for p in problems.first
                ],
            },
        },
        "producer": {"name": "receipt_cli", "version": __version__},
    }


def _spans(session: Session) -> dict[int, Spans | None]:
    """Return the busy intervals of each device number, None if unknown."""
    recorded = session.kernels.spans
    numbers = {*session.inventory.names, *session.samples.devices, *session.samples.memory}
    numbers |= {number for number in recorded if number is not None}
    if recorded and not session.kernels_whole:
        session.problems.add("kernels_not_whole", "busy time of the devices is unknown: kernels may be missing")
    if not session.kernels_whole:
        return dict.fromkeys(sorted(numbers))
    if None not in recorded:
        return {number: recorded.get(number, Spans()) for number in sorted(numbers)}
    if len(numbers) != 1:
        of = f"which of the {len(numbers)} devices" if numbers else "which device"
        session.problems.add("device_unknown", f"the records of kernels do not say {of} they ran on")
        return dict.fromkeys(sorted(numbers))
    (number,) = numbers
    together = recorded[None]
    if number in recorded:
        together.absorb(recorded[number])
    return {number: together}


def _named(timings: Timings[int | str], names: Dictionary, session: Session, what: str) -> dict[str, Timing]:
    """Return timings by name: ids with the same name are summed, an id without a name is ``#id``."""
    found: dict[str, Timing] = {}
    nameless = 0
    for key, timing in timings.of.items():
        name = names.name(key) if isinstance(key, int) else shown(key)
        nameless += name is None
        one = found.setdefault(_name(key, names), Timing())
        one.add(timing.count, timing.total, timing.shortest, timing.longest)
    if nameless:
        session.problems.add("name_unknown", f"{nameless} {what} have no name and are listed by their number", count=nameless)
    if timings.left_out.count:
        session.problems.add("too_many_names", f"{timings.left_out.count} {what} are not listed by name: there are too many")
    return found


def _name(key: int | str, names: Dictionary) -> str:
    return (names.name(key) or f"#{key}") if isinstance(key, int) else (shown(key) or "#")


def _kernels(session: Session) -> Document:
    kernels = session.kernels
    launches = kernels.all.count + kernels.unended + kernels.forgotten
    table = kernel_table(_named(kernels.by_name, session.kernel_names, session, "kernels"), kernels.all, launches)
    details = session.details.by_name(session.kernel_names)
    for kernel in table["top"]:
        launch = details.get(kernel["name"])
        if launch is not None and launch.count <= kernel["count"]:
            kernel["launch"] = launch.document()
    return table


def kernel_table(found: Mapping[str, Timing], together: Timing, launches: int) -> Document:
    """Return the block of kernels: totals, and the kernels with the longest total time."""
    top = sorted(found.items(), key=lambda item: (-item[1].total, item[0]))[:_MAX_KERNELS]
    return {
        "name_count": len(found),
        "launch_count": launches,
        "total_s": together.total / NS if together.count else None,
        "top": [{"name": name, **timing.figures()} for name, timing in top],
    }


def _scopes(session: Session) -> list[Document]:
    found = _named(session.scopes.by_name, session.scope_names, session, "scopes")
    opened: Counter[str] = Counter()
    for key, count in session.scopes.open().items():
        opened[_name(key, session.scope_names)] += count
        found.setdefault(_name(key, session.scope_names), Timing())
    order = sorted(found.items(), key=lambda item: (-item[1].total, item[0]))[:_MAX_SCOPES]
    # gpufl's ``warmup`` counts iterations before a scope was opened; it does not mark scopes as warm-up.
    return [{"name": name, **timing.figures(), "warmup_count": None, "open_count": opened[name]} for name, timing in order]


def _copies(session: Session) -> list[Document]:
    vendors = session.inventory.vendors
    table: Mapping[int, str] = gpufl.CUPTI_COPIES if vendors == {"NVIDIA"} else gpufl.ROCM_COPIES if vendors == {"AMD"} else {
        kind: way for kind, way in gpufl.CUPTI_COPIES.items() if gpufl.ROCM_COPIES.get(kind) == way
    }  # fmt: skip
    strange = [kind for kind in session.copies.by_kind if kind is None or kind not in table]
    if strange:
        detail = ", ".join(str(kind) for kind in sorted(kind for kind in strange if kind is not None))
        session.problems.add("copy_kind_unknown", f"kinds of copies that are not known for this vendor: {detail or 'too large'}")
    return directions(session.copies.merged(table))


def directions(moved_by: Mapping[str, CopyTotals]) -> list[Document]:
    """Return the copies by direction, in schema order."""
    return [
        {
            "direction": way,
            "count": moved.count,
            "total_s": moved.total_ns / NS,
            "total_bytes": moved.size,
            "bytes_per_s": moved.size * NS / moved.total_ns if moved.size is not None and moved.total_ns else None,
        }
        for way in _DIRECTIONS
        if (moved := moved_by.get(way)) is not None
    ]


def _devices(session: Session, busy: Mapping[int, int | None]) -> list[Document]:
    return [
        {
            "number": number,
            "name": _text(session.inventory.name(number), _SHORT),
            "memory_bytes": _memory(session, number),
            "busy_s": None if length is None else length / NS,
            "metrics": _metrics(session, session.samples.devices.get(number, {}), f"device {number}"),
        }
        for number, length in busy.items()
    ]


def _metrics(session: Session, columns: Columns, whose: str) -> Document:
    for name, column in columns.items():
        if column.impossible:
            detail = f"{whose}: {name}: {column.impossible} impossible values; the metric is left out"
            session.problems.add("impossible_value", detail, count=column.impossible)
    return metrics_of(columns)


def _header(session: Session) -> Document:
    """Return a header with the devices that were visible to the program."""
    inventory, place = session.inventory, session.inventory.place
    if place is None:
        return merge(())
    kinds = Counter((_text(inventory.name(n), _SHORT), _memory(session, n)) for n in sorted(inventory.names))
    # It is unknown how many of several visible devices the program used.
    one = sum(kinds.values()) == 1
    entries = [{"name": name, "count": 1 if one else None, "memory_bytes": memory} for name, memory in kinds]
    file = place[0] if set(place[0]) <= _SOURCED else ""
    return merge([HeaderFact("/hardware/accelerators", entries, f"import:{file}#{place[1]}" if file else f"import:{place[1]}")])


def _memory(session: Session, number: int) -> int | None:
    sizes = session.samples.memory.get(number, set())
    return next(iter(sizes)) << 20 if len(sizes) == 1 else None


def _record_problems(session: Session, *, complete: bool) -> None:
    """Record problems of the stream as a whole."""
    problems, kernels, scopes, stalls = session.problems, session.kernels, session.scopes, session.stalls
    for (kind, name), count in sorted(session.columns.items()):
        problems.add("unknown_column", f"{kind}: unknown column {name} was left out, in {count} batches", count=count)
    for kind, count in sorted(session.types.items()):
        problems.add("unknown_record", f"{count} records of the unknown type {kind}", count=count)
    unpaired = kernels.unstarted + scopes.unbegun + (kernels.unended if complete else 0)
    if unpaired:
        problems.add("unpaired_record", f"{unpaired} records have no other half: a start or an end is missing", count=unpaired)
        problems.add_loss("unpaired_record", unpaired)
    within = session.details.unreadable + stalls.unreadable
    for kind, number, detail, each in (
        ("contradicting_times", scopes.backwards, "{} scopes end before they begin", True),
        ("too_many_open", kernels.forgotten + scopes.forgotten, "{} begins were left out: too many were open at once", True),
        ("name_unknown", stalls.nameless, "{} samples inside kernels have a reason without a name", False),
        ("too_many_names", int(stalls.too_many), "stall reasons are left out: there are too many", False),
        ("too_many_details", session.details.left_out, "{} details of launches were left out: there are too many", False),
        ("unreadable_value", within, "{} kernel detail or sample records cannot be read", True),
        ("unreadable_value", session.samples.unreadable, "{} samples are not numbers", True),
    ):
        if number:
            problems.add(kind, detail.format(number), count=number if each else 1)
    twice = [number for number, names in session.inventory.names.items() if len(names) > 1]
    twice += [number for number, sizes in session.samples.memory.items() if len(sizes) > 1]
    if twice:
        detail = ", ".join(map(str, sorted(set(twice))[:16]))
        problems.add("contradicting_devices", f"devices with two names or memory sizes: {detail}")


def _text(value: str | None, limit: int) -> str | None:
    return None if value is None else ((shown(value) or "")[:limit].strip() or None)
