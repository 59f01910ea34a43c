"""Each way a run crashes, behind each head of a launcher, collector or logger: is the failure found, and with its name?

``python -m benchmarks.metamorphic.heads [--only TEXT] [--details] [--write]``: a table of heads and endings. ``--write``
keeps it in ``benchmarks/results/heads.md``. The exit code is 1 where a failure is missed or has another name.

The endings are what CPython 3.11, PyTorch 2.9, torchrun and the C++ runtime print, with other paths.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.machine import commit
from benchmarks.metamorphic.wrappings import WRAPPINGS
from receipt_cli.errors import ReceiptError
from receipt_cli.receipts.production import Request, produce

RESULT = Path(__file__).resolve().parents[1] / "results" / "heads.md"
STEPS = [f"iter {n}: loss {3 - n * 0.01:.4f}, time 100.00ms, mfu 40.00%" for n in range(20)]
Lines = Sequence[str]


class Ending(NamedTuple):
    """The last lines of a crashed run; the reason that a receipt must give, and what its message must contain."""

    lines: Lines
    reason: str
    message: str


def _text(text: str) -> list[str]:
    return text.strip("\n").split("\n")


ENDINGS = {
    "plain": Ending(
        _text("""
Traceback (most recent call last):
  File "/src/train.py", line 12, in main
    loss = step(batch)
           ^^^^^^^^^^^
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1511, in _call_impl
    return forward_call(*args, **kwargs)
ValueError: could not broadcast input array from shape (3,) into shape (4,)
"""),
        "traceback",
        "ValueError: could not broadcast",
    ),
    "direct cause": Ending(
        _text("""
Traceback (most recent call last):
  File "/src/chained.py", line 5, in main
    load("x")
  File "/src/chained.py", line 2, in load
    return {}["shard-3"]
           ~~^^^^^^^^^^^
KeyError: 'shard-3'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/src/chained.py", line 8, in <module>
    main()
  File "/src/chained.py", line 7, in main
    raise RuntimeError("cannot load shard 3") from error
RuntimeError: cannot load shard 3
"""),
        "traceback",
        "KeyError: 'shard-3'",
    ),
    "during handling": Ending(
        _text("""
Traceback (most recent call last):
  File "/src/during.py", line 5, in main
    raise ValueError("bad batch 17")
ValueError: bad batch 17

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/src/during.py", line 8, in <module>
    main()
  File "/src/during.py", line 2, in close
    raise OSError(5, "Input/output error")
OSError: [Errno 5] Input/output error
"""),
        "traceback",
        "ValueError: bad batch 17",
    ),
    "no message": Ending(
        _text("""
Traceback (most recent call last):
  File "/src/train.py", line 4, in <module>
    main()
  File "/src/train.py", line 3, in main
    assert n % 2 == 0
           ^^^^^^^^^^
AssertionError
"""),
        "traceback",
        "AssertionError",
    ),
    "SyntaxError": Ending(
        _text("""
Traceback (most recent call last):
  File "/src/train.py", line 1, in <module>
    import broken
  File "/src/broken.py", line 1
    x = (1,
        ^
SyntaxError: '(' was never closed
"""),
        "traceback",
        "SyntaxError: '(' was never closed",
    ),
    "import": Ending(
        _text("""
Traceback (most recent call last):
  File "/src/train.py", line 140, in main
    evaluate(model)
  File "/src/train.py", line 96, in evaluate
    import flash_attn
ModuleNotFoundError: No module named 'flash_attn'
"""),
        "import_error",
        "No module named 'flash_attn'",
    ),
    "group": Ending(
        _text("""
  + Exception Group Traceback (most recent call last):
  |   File "/src/group.py", line 9, in <module>
  |     main()
  |   File "/src/group.py", line 8, in main
  |     raise ExceptionGroup("2 workers failed", errors)
  | ExceptionGroup: 2 workers failed (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/src/group.py", line 6, in main
    |     part(n)
    |   File "/src/group.py", line 2, in part
    |     raise ValueError(f"worker {n} failed")
    | ValueError: worker 0 failed
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "/src/group.py", line 6, in main
    |     part(n)
    |   File "/src/group.py", line 2, in part
    |     raise ValueError(f"worker {n} failed")
    | ValueError: worker 1 failed
    +------------------------------------
"""),
        "traceback",
        "failed",
    ),
    "recursion": Ending(
        _text("""
Traceback (most recent call last):
  File "/src/rec.py", line 2, in <module>
    f(0)
  File "/src/rec.py", line 1, in f
    def f(n): return f(n+1)
                     ^^^^^^
  [Previous line repeated 996 more times]
RecursionError: maximum recursion depth exceeded
"""),
        "traceback",
        "RecursionError: maximum recursion depth exceeded",
    ),
    "CUDA OOM": Ending(
        _text("""
Traceback (most recent call last):
  File "/src/train.py", line 520, in <module>
    loss.backward()
  File "/opt/venv/lib/python3.12/site-packages/torch/_tensor.py", line 625, in backward
    torch.autograd.backward(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 3 has a total capacity of 79.19 GiB.
"""),
        "cuda_oom",
        "CUDA out of memory. Tried to allocate 8.00 GiB",
    ),
    "torchrun": Ending(
        _text("""
E0319 14:05:02.884 4101 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 3 (pid: 4121)
Traceback (most recent call last):
  File "/opt/venv/bin/torchrun", line 10, in <module>
    sys.exit(main())
  File "/opt/venv/lib/python3.12/site-packages/torch/distributed/launcher/api.py", line 277, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
scripts.base_train FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-03-19_14:05:02
  host      : node001
  rank      : 3 (local_rank: 3)
  exitcode  : 1 (pid: 4121)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""),
        "child_failed",
        "",
    ),
    "KeyboardInterrupt": Ending(
        _text("""
Traceback (most recent call last):
  File "/src/train.py", line 4, in <module>
    step()
  File "/src/train.py", line 3, in step
    time.sleep(1)
KeyboardInterrupt
"""),
        "interrupted",
        "KeyboardInterrupt",
    ),
    "C++ terminate": Ending(
        _text("""
terminate called after throwing an instance of 'std::bad_alloc'
  what():  std::bad_alloc
Aborted (core dumped)
"""),
        "",
        "",
    ),
}


def _headed(head: str) -> Callable[[Sequence[bytes]], bytes]:
    return lambda lines: b"".join(head.encode() + line for line in lines)


def _rich(lines: Sequence[bytes]) -> bytes:
    """Return lines as rich's ``RichHandler`` prints them on a console of 200 columns; an exception belongs to one record."""
    steps = [line.removesuffix(b"\n") for line in lines if line.startswith(b"iter ")]
    texts = [b"[07:08:09] " * (n == 0) + b" " * 11 * (n > 0) + b"INFO     " + line for n, line in enumerate(steps)]
    texts.append(b" " * 11 + b"ERROR    training failed")
    rest = [b" " * 20 + line.removesuffix(b"\n") for line in lines[len(steps) :]]
    return b"".join(text.ljust(188) + b"train.py:12\n" for text in texts) + b"".join(text.ljust(200) + b"\n" for text in rest)


def _in_one_record(lines: Sequence[bytes]) -> bytes:
    """Return lines as a JSON logger prints them: an exception is one value of one record."""
    text = [line.decode().removesuffix("\n") for line in lines]
    steps, rest = text[: len(STEPS)], text[len(STEPS) :]
    records: list[dict[str, object]] = [{"levelname": "INFO", "message": line} for line in steps]
    raised = "Traceback (most" in rest[0]  # the rest is printed by a launcher or the runtime
    records += [{"levelname": "ERROR", "message": "training failed", "exc_info": "\n".join(rest)}] if raised else []
    return "".join([*(json.dumps(record) + "\n" for record in records), *(f"{line}\n" for line in rest if not raised)]).encode()


HEADS: dict[str, Callable[[Sequence[bytes]], bytes]] = {
    "none": b"".join,
    **WRAPPINGS,
    "torchrun, local rank": _headed("[rank-7/8] "),
    "mpirun, stderr": _headed("[1,9]<stderr>: "),
    "SageMaker": _headed("[1,mpirank:0,algo-1]<stderr>:"),
    "deepspeed over pdsh": _headed("worker-1: [rank1]: "),
    "Composer": _headed("rank0[812][MainThread]: "),
    "Ray, coloured": _headed("\x1b[36m(TaskRunner pid=38606)\x1b[0m "),
    "absl, glog": _headed("I0102 03:04:05.920936 1388 train.py:226] "),
    "Python logging, ERROR": _headed("2026-01-02 03:04:13,500 - root - ERROR - "),
    "Python logging, ERROR:name:": _headed("ERROR:root:"),
    "Python logging, name and level": _headed("2026-01-02 03:04:13,500 root ERROR "),
    "Python logging, level in brackets": _headed("[2026-01-02 03:04:13,500] [ERROR] "),
    "Python logging, file and line": _headed("[2026-01-02 03:04:14,500] [INFO] [engine.py:812:step] [Rank 6] "),
    "Python logging, pid": _headed("2026-01-02 03:04:13,500 [812] [INFO] "),
    "Transformers": _headed("[INFO|trainer.py:1144] 2026-01-02 03:04:10,250 >> "),
    "NeMo": _headed("[NeMo I 2026-01-02 03:04:05 train:12] "),
    "loguru, ERROR": _headed("2026-01-02 03:04:12.123 | ERROR    | mod:func:12 - "),
    "structlog": _headed("2026-01-02 03:04:12 [info     ] "),
    "Airflow": _headed("[2026-05-06, 07:08:09 UTC] {logging_mixin.py:188} INFO - "),
    "Kaggle": _headed("12.3s\t41\t"),
    "rich": _rich,
    "JSON, an exception in one record": _in_one_record,
}


def verdict(head: str, ending: str, folder: Path) -> str:
    """Return what is wrong with the receipt of a crashed log behind a head: nothing, ``missed``, or what it says instead."""
    end = ENDINGS[ending]
    path = folder / "run.log"
    path.write_bytes(HEADS[head]([f"{line}\n".encode() for line in (*STEPS, *end.lines)]))
    try:
        document: dict[str, Any] = produce(Request(path=str(path), workers=1)).document
    except ReceiptError as error:
        return f"{type(error).__name__}: {error}"
    failure = document["failure"]
    if failure is None or failure["reason"] in ("truncated", "no_grammar_match"):
        return "missed"
    if end.reason and failure["reason"] != end.reason:
        return f"named {failure['reason']}"
    if end.message not in (failure["message"] or ""):
        return f"message {failure['message']!r:.60}"
    return ""


def check(heads: Sequence[str], endings: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each head and ending with what is wrong there, empty where nothing is."""
    with tempfile.TemporaryDirectory() as folder:
        for head in heads:
            for ending in endings:
                yield head, ending, verdict(head, ending, Path(folder))


def table(found: Sequence[tuple[str, str, str]]) -> str:
    """Return the table as Markdown: what is wrong with each pair, and ``ok``."""
    endings = list(dict.fromkeys(ending for _, ending, _ in found))
    wrong = sum(bool(fault) for _, _, fault in found)
    missed = sum(fault == "missed" for _, _, fault in found)
    rows = {head: [fault or "ok" for name, _, fault in found if name == head] for head, _, _ in found}
    lines = [
        "# Endings behind heads",
        "",
        f"{len(rows)} heads of launchers, collectors and loggers, and {len(endings)} endings: of {len(found)} failures",
        f"{missed} are missed, and {wrong - missed} have another name or message. Commit {commit()}.",
        "",
        "| head | " + " | ".join(endings) + " |",
        "|---|" + "---|" * len(endings),
        *(f"| {head} | " + " | ".join(cells) + " |" for head, cells in rows.items()),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metamorphic.heads", description=__doc__)
    parser.add_argument("--only", default="", help="heads whose name contains this text")
    parser.add_argument("--details", action="store_true", help="print each fault, and no table")
    parser.add_argument("--write", action="store_true", help=f"write the table to {RESULT.name}")
    options = parser.parse_args(arguments)
    found = list(check([head for head in HEADS if options.only in head], list(ENDINGS)))
    if options.details:
        print("".join(f"{head} × {ending}: {fault}\n" for head, ending, fault in found if fault), end="")
    elif options.write:
        RESULT.write_text(table(found), "utf-8")
    else:
        print(table(found), end="")
    return int(any(fault for _, _, fault in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
