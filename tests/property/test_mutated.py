"""A receipt whose meaning was changed is refused, or the change is named; a change of form alone is neither."""

from __future__ import annotations

import copy
import json
import random
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.analysis.goodput.model import Wall
from receipt_cli.documents.validate import validate_bytes, validate_document
from receipt_cli.errors import ReceiptError
from receipt_cli.receipts.production import Request, produce
from receipt_cli.receipts.stated import read_facts
from receipt_cli.verification.verifier import read_receipt, verify
from tests.tools.examples import costly

LOGS = Path(__file__).resolve().parents[2] / "fixtures" / "logs"
CASES = (
    (LOGS / "nanogpt" / "char-ok.log", 0),
    (LOGS / "nanogpt" / "char-nan.log", None),
    (LOGS / "hf-trainer" / "bar-merged-v5.log", None),
)
CAPTURED = ("run", "header", "attachments")
FREE = ("/derivation/tool_version", "/captured_sha256")
"""What states no figure and is no part of what is compared."""
Path_ = tuple[str | int, ...]


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
