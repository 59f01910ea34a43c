"""A receipt whose meaning was changed is refused, or the change is named; a change of form alone is neither."""

import copy
import functools
import json
import random
import string
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.analysis.goodput.model import Wall
from receipt_cli.documents.validate import validate_bytes, validate_document
from receipt_cli.errors import ReceiptError
from receipt_cli.evidence.reading import read_evidence
from receipt_cli.importers.importing import import_document
from receipt_cli.receipts.production import Request, produce
from receipt_cli.receipts.stated import read_facts
from receipt_cli.verification.verifier import read_receipt, verify
from tests.tools.examples import costly
from tests.tools.planted import FORMS

LOGS = Path(__file__).resolve().parents[2] / "fixtures" / "logs"
CASES = (
    (LOGS / "nanogpt" / "char-ok.log", 0),
    (LOGS / "nanogpt" / "char-nan.log", None),
    (LOGS / "hf-trainer" / "bar-merged-v5.log", None),
)
CAPTURED = ("run", "header", "attachments", "evidence")
FREE = ("/derivation/tool_version", "/captured_sha256", "/derivation/log/files/*/name")
"""What states no figure and is no part of what is compared: the files of a run may be renamed in an archive."""
Path_ = tuple[str | int, ...]
SCHEMA = json.loads((LOGS.parents[1] / "schemas" / "receipt" / "v1.3.schema.json").read_text("utf-8"))
MANY_FIELDS = (
    *("receipt-emit/plain-loop", "megatron-lm/2026-head-nan", "nanochat/base-accum2-2025-10", "gnmt/two-ranks"),
    *("torchtitan/llama3-2026-oom", "rllib/ppo-tune-2.6", "nanochat/megacpp-steps", "mmcv/nan-cpu", "xgboost/cv-folds"),
    *("vits/so-vits-svc", "maxtext/step-2024-eval", "megatron-lm/primus-2025", "kaldi/gmm-update-code-255"),
    *("detectron2/masks", "torchspec/waits-for-inference-2026"),
)
"""Logs whose receipts have, together, nearly all fields of the derived part."""
INPUTS = ("log", "options", "grammars", "launches", "origin")
"""Fields below ``derivation`` by which a log is read: each is changed alone."""
NEVER = {
    *(f"/goodput/parts/{part}/overlapped_s" for part in ("compilation", "idle", "initialization", "wasted_progress")),
    "/goodput/parts/idle/count",
    *(f"{at}/other_metrics/*/{name}" for at in ("/summary", "/phases/*/summary") for name in ("definition", "scope")),
}
"""Fields of the derived part that are null in every receipt of a log: what stops the training overlaps nothing, the rest of the
wall is no number of times, and a metric outside the registry has no definition."""


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of each value that is no object or array with values."""
    if isinstance(value, dict | list) and value:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))
    else:
        yield path


def other(value: Any, draw: random.Random) -> Any:
    """Return a value of the same type, or null, with another meaning."""
    if draw.random() < 0.2 and value is not None:
        return None
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + draw.choice((-1, 1, 7, 1000))
    if isinstance(value, float):
        return value * draw.choice((0.5, 1.01, 3.0)) + draw.choice((0.0, 1e-3)) or 1.0
    if isinstance(value, str):
        at = draw.randrange(len(value) + 1)
        return value[:at] + draw.choice(string.ascii_lowercase + string.digits) + value[at + draw.randrange(2) :] + "x"
    return draw.choice((0, 1, True, "x", 0.5))


def mutated(document: dict[str, Any], path: Path_, draw: random.Random) -> dict[str, Any]:
    """Return the document with another value at ``path``, or without it."""
    made = copy.deepcopy(document)
    holder: Any = made
    for key in path[:-1]:
        holder = holder[key]
    if isinstance(holder, dict) and draw.random() < 0.1:
        del holder[path[-1]]
    else:
        holder[path[-1]] = other(holder[path[-1]], draw)
    return made


@pytest.mark.parametrize(("log", "code"), CASES, ids=lambda value: value.stem if isinstance(value, Path) else "")
def test_every_change_is_refused_or_named(log: Path, code: int | None) -> None:
    draw = random.Random(19)
    facts = read_facts(["devices=8", "peak_flops=989e12", "tokens_per_step=0.5M", "power=700W", "price_per_hour=24 USD"])
    request = Request(str(log), exit_code=code, name="a run", lane="a lane", wall=Wall(400.0, "wall_time_s"), facts=facts)
    document: dict[str, Any] = json.loads(json.dumps(produce(request).document))
    assert not validate_document(document)
    assert verify(document, [str(log)]).verified
    every = [path for path in leaves(document) if "/" + "/".join(map(str, path)) not in FREE]
    captured = [path for path in every if path[0] in CAPTURED]
    derived = [path for path in every if path[0] not in CAPTURED]
    stated = [path for path in derived if path[0] == "cost" or path[:3] == ("derivation", "options", "facts")]
    assert len(stated) > 20
    for path in [*captured, *stated, *draw.sample(derived, min(costly(60), len(derived)))]:
        changed = mutated(document, path, draw)
        data = json.dumps(changed).encode()
        if path[0] in CAPTURED:
            assert validate_bytes(data, "x"), path
            continue
        try:
            read, invalid = read_receipt(data, "x")
            found = verify(read, [str(log)], invalid=invalid)
        except ReceiptError:
            continue  # refused
        assert not found.verified, path
        assert found.invalid or found.differences or found.touched, path  # a stated fact that completes nothing


def branches(schemas: list[Any]) -> list[dict[str, Any]]:
    """Return the schemas with their references resolved, and all their alternatives."""
    found: list[dict[str, Any]] = []
    for schema in schemas:
        while "$ref" in schema:
            target: Any = SCHEMA
            for key in schema["$ref"].removeprefix("#/").split("/"):
                target = target[key]
            schema = {**{name: part for name, part in schema.items() if name != "$ref"}, **target}
        found += [schema, *branches([one for kind in ("anyOf", "oneOf", "allOf") for one in schema.get(kind, ())])]
    return found


@functools.cache
def below(field: str) -> dict[str, list[Any]]:
    """Return the schemas of what a field contains, by name: ``*`` for names that are data, and for places in an array."""
    holder, _, name = field.rpartition("/")
    found: dict[str, list[Any]] = {}
    for schema in branches(below(holder).get(name, []) if field else [SCHEMA]):
        for inner, part in schema.get("properties", {}).items():
            found.setdefault(inner, []).append(part)
        for part in (schema.get("additionalProperties"), schema.get("items"), *schema.get("prefixItems", ())):
            if isinstance(part, dict):
                found.setdefault("*", []).append(part)
    return found


def stated_fields(field: str = "") -> Iterator[str]:
    """Yield the fields of the schema that have no fields of their own."""
    for name in below(field):
        yield from stated_fields(f"{field}/{name}")
    if not below(field):
        yield field


def places_of_fields(value: Any, field: str = "", path: Path_ = ()) -> Iterator[tuple[str, Path_]]:
    """Yield each value of a document that is not null or empty: its field in the schema, and its path."""
    if isinstance(value, dict | list) and value:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places_of_fields(item, f"{field}/{key if key in below(field) else '*'}", (*path, key))
    elif value not in (None, [], {}):
        yield field, path


def many_fields(folder: Path) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield receipts with their logs."""
    for name in MANY_FIELDS:
        yield json.loads((LOGS / f"{name}.receipt.json").read_text("utf-8")), [str(LOGS / f"{name}.log")]
    log, facts = str(CASES[0][0]), read_facts(["devices=8", "peak_flops=989e12", "power=700W", "price_per_hour=24 USD"])
    wall = Wall(400.0, "wall_time_s")
    yield produce(Request(log, exit_code=0, grammar="nanogpt", wall=wall, facts=facts)).document, [log]
    ranks = [str(folder / f"run-rank{rank}.log") for rank in range(2)]
    for rank in ranks:
        Path(rank).write_bytes(Path(log).read_bytes())
    facts = read_facts(["devices=8", "price_per_device_hour=3 USD"])
    job = read_evidence([LOGS.parent / "evidence" / "pod-oomkilled.json"], None)
    yield produce(Request(ranks[0], more=(ranks[1],), wall=wall, facts=facts, evidence=job)).document, ranks


def rare_fields(folder: Path) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield receipts with their logs: of what few logs print, in the formats of nanoGPT, Transformers, NCCL and Composer."""

    def steps(head: str = "", loss: str = "2.5", time: str = "100.00") -> str:
        return "".join(f"{head}iter {n}: loss {loss if n == 5 else 3 - n / 100}, time {time}ms, mfu 40.00%\n" for n in range(30))

    ranks = [steps(f"[rank{rank}]: ", time="180.00" if rank == 3 else "100.00").splitlines(keepends=True) for rank in range(4)]
    watchdog = (
        "[rank{0}]:[E520 06:31:05.05 ProcessGroupNCCL.cpp:757] [Rank {0}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=3, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600010 milliseconds\n"
        "[rank{0}]:[E520 06:31:05.06 ProcessGroupNCCL.cpp:1870] [PG 0 Rank {0}] Exception detected by watchdog at work: 3, "
        "last enqueued NCCL work: {1}, last completed NCCL work: {2}.\n"
    )
    block = "[batch={0}/600]:\n\t Train memory/allocated_mem: {1}\n\t Train memory/reserved_mem: 90040726016\n"
    block += "\t Train loss/train/total: 11.8004\n\t Train wall_clock/train: {0}.6400\n"
    pairs = "'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 1e-5"
    texts = {
        "inf": steps(loss="inf"),
        "ranks": "".join(line for lines in zip(*ranks, strict=True) for line in lines),
        "secret": f"{steps()}iter 30: loss 2.5, time 1e999ms, mfu 40.00%\n"
        f"Traceback (most recent call last):\nValueError: no access: {FORMS['hf'](random.Random(7))}\n",
        "own": f'{steps()}Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    run(mdoel)\n'
        "NameError: name 'mdoel' is not defined\n",
        "nccl": steps() + watchdog.format(0, 7, 6) + watchdog.format(1, 6, 5) + watchdog.format(2, 7, 6),
        "others": "[transformers] ***** Running training *****\n"
        + "".join(f"{{{pairs}, 'reward/x': {'inf' if n == 3 else 0.5}, 'epoch': {n / 10}}}\n" for n in range(8)),
        "memory": "".join(block.format(n, 30_000_000_000 + 300_000_000 * n) for n in range(1, 100)),
    }
    for name, text in texts.items():
        path = folder / f"{name}.log"
        path.write_text(text, "utf-8")
        yield produce(Request(str(path))).document, [str(path)]
    log, phases = str(CASES[0][0]), str(LOGS / "nanochat" / "speedrun-2025-10.log")
    for request in (
        Request(log, log_complete=False),
        Request(log, running=True),
        Request(phases, wall=Wall(400_000.0, "wall_time_s", "base_train")),
    ):
        yield produce(request).document, [request.path]
    foreign = str(LOGS.parent / "foreign" / "megacpp-training-receipt.json")
    yield import_document(foreign), [foreign]


def test_every_field_of_the_schema_that_is_changed_is_refused_or_named(tmp_path: Path) -> None:
    draw, seen = random.Random(3), set[str]()
    for made, logs in chain(many_fields(tmp_path), rare_fields(tmp_path)):
        document = json.loads(json.dumps(made))
        document["derivation"].setdefault("tool_version", "0.0.0")  # which no golden receipt has
        assert not [found for found in validate_document(document) if found.severity == "error"]
        fresh = {field: path for field, path in places_of_fields(document) if field not in seen}
        derived = {field: path for field, path in fresh.items() if path[0] not in CAPTURED and field not in FREE}
        seen |= derived.keys()
        quiet: dict[Path_, Any] = {}
        for path in derived.values():
            value = other(value_at(document, path), draw)
            changed = copy.deepcopy(document)
            put(changed, path, value)
            if any(found.severity == "error" for found in validate_document(changed)):
                continue  # refused
            if path[:1] == ("derivation",) and path[1] in INPUTS:
                assert not verifies(changed, logs), path
            else:
                quiet[path] = value
        changed = copy.deepcopy(document)
        for path, value in quiet.items():
            put(changed, path, value)
        named = {difference.pointer for difference in verify(changed, logs).differences}
        for path in quiet:
            pointers = ["".join(f"/{key}".replace("~", "~0") for key in path[:end]) for end in range(1, len(path) + 1)]
            assert named & {*pointers}, path
    wanted = {field for field in stated_fields() if not field.startswith(tuple(f"/{name}" for name in CAPTURED))}
    assert wanted - seen == {*FREE, *NEVER}


def value_at(document: Any, path: Path_) -> Any:
    for key in path:
        document = document[key]
    return document


def put(document: dict[str, Any], path: Path_, value: Any) -> None:
    value_at(document, path[:-1])[path[-1]] = value


def verifies(document: dict[str, Any], logs: list[str]) -> bool:
    try:
        return verify(document, logs).verified
    except ReceiptError:
        return False


def test_the_order_of_bytes_in_the_file_is_no_change(tmp_path: Path) -> None:
    log, _ = CASES[0]
    document = produce(Request(path=str(log))).document
    for text in (json.dumps(document), json.dumps(document, indent=7), json.dumps(document, ensure_ascii=False)):
        read, invalid = read_receipt(text.encode(), "x")
        assert verify(read, [str(log)], invalid=invalid).verified


def test_both_parts_of_one_truth_changed_together_are_named() -> None:
    """An exit code in run, options and checks: only the log and the digest still tell."""
    log, _ = CASES[0]
    document = json.loads(json.dumps(produce(Request(path=str(log), exit_code=0)).document))
    document["run"]["exit_code"] = document["derivation"]["options"]["exit_code"] = 1
    document["checks"]["zero_exit_code"] = False
    assert {finding.rule for finding in validate_document(document)} == {"failure_agrees", "captured_touched"}
