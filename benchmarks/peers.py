"""The measured commands: this program, and other installed programs that read the same logs."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import differences, load_facts, receipt_figures
from benchmarks.inputs import CACHE, ROOT, ensure
from benchmarks.measure import Case

FILES = Path(__file__).resolve().parent / "peer_files"
EXTRA = CACHE / "peers"
"""Folder in which ``make bench-peers`` installs the Python peers."""
LAST = CACHE / "last.receipt.json"
"""Path of the last receipt written by this program."""
MIB = 1 << 20
_NUMBER = "([-+.0-9A-Za-z]+)"
DENSE_PATTERN = (
    r"iteration +(\d+)/ *(\d+) \| consumed samples: +(\d+) \| elapsed time per iteration \(ms\): N \| throughput per GPU"
    r" \(TFLOP/s/GPU\): N \| learning rate: N \| global batch size: +(\d+) \| lm loss: N \| loss scale: N \| grad norm: N"
    r" \| number of skipped iterations: +(\d+) \| number of nan iterations: +(\d+) \|"
).replace("N ", _NUMBER + " ")
LNAV_QUERY = (
    ";SELECT 'records', count(*), min(loss), max(loss), avg(loss), avg(step_time), avg(throughput), avg(rate), avg(norm),"
    " max(samples), sum(batch), avg(scale), sum(skipped), sum(nan) FROM megatron_step"
)


@dataclass(frozen=True, slots=True)
class Peer:
    """Another program. ``limit`` is its largest input in bytes: a slow program reads a shorter log, compared per byte."""

    name: str
    make: Callable[[Path], tuple[str, ...]]
    limit: int | None = None
    program: str | None = None
    module: str | None = None
    figures: bool = False
    """Whether it prints the values of a receipt as JSON."""


def _program(*words: str) -> Callable[[Path], tuple[str, ...]]:
    return lambda log: (*words, str(log))


def _loop(name: str, *rest: str) -> Callable[[Path], tuple[str, ...]]:
    return lambda log: (sys.executable, "-m", f"benchmarks.loops.{name}", str(log), *rest)


def _hand(name: str) -> Peer:
    return Peer("hand-written loop", _loop(name), 128 * MIB, figures=True)


def _mtail(log: Path) -> tuple[str, ...]:
    program = FILES / "megatron.mtail"
    return ("mtail", "-one_shot", "-one_shot_format", "prometheus", "-progs", str(program), "-logs", str(log))


def _lnav(log: Path) -> tuple[str, ...]:
    folder = CACHE / "lnav" / "formats" / "receipt_bench"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(FILES / "megatron_lnav.json", folder / "megatron.json")
    return ("lnav", "-n", "-I", str(CACHE / "lnav"), "-c", LNAV_QUERY, str(log))


WC = Peer("wc -l", _program("wc", "-l"), program="wc")
AWK = Peer("mawk", _program("mawk", "-f", str(FILES / "megatron.awk")), program="mawk")
PERL = Peer("perl", _program("perl", str(FILES / "megatron.pl")), program="perl")
PEERS: dict[str, tuple[Peer, ...]] = {
    "dense": (
        WC,
        Peer("rg -c", _program("rg", "--no-config", "-c", "-e", DENSE_PATTERN), program="rg"),
        _hand("megatron"),
        AWK,
        PERL,
        Peer("lnav", _lnav, 256 * MIB, program="lnav"),
        Peer("mtail", _mtail, 64 * MIB, program="mtail"),
        Peer("pygrok", _loop("grok"), 64 * MIB, module="pygrok"),
        Peer("drain3", _loop("templates"), 64 * MIB, module="drain3"),
    ),
    "sparse": (WC, _hand("megatron"), AWK, PERL),
    "mllog": (_hand("mllog"), Peer("mlperf-logging", _loop("compliance", "6.0.0"), 32 * MIB, module="mlperf_logging")),
    "hf": (_hand("huggingface"),),
    "bars": (_hand("bars"),),
    "ranks": (_hand("ranks"),),
    "dense.gz": (Peer("gzip -dc", _program("gzip", "-dc"), program="gzip"),),
    "dense.zst": (Peer("zstd -dc", _program("zstd", "-dc", "-q"), program="zstd"),),
}
"""Input → programs that are compared with this one."""


def environ() -> dict[str, str]:
    """Return the environment of all commands: this checkout, and separate caches, including bytecode."""
    return {
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(EXTRA))),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(CACHE / "bytecode"),
        "LC_ALL": "C.UTF-8",
    }


def receipt_command(log: Path | str, *options: str) -> tuple[str, ...]:
    """Return the command ``receipt parse`` of this checkout on ``log``, which writes the receipt to a file like a job."""
    return (sys.executable, "-m", "receipt_cli", "parse", str(log), "-o", str(LAST), *options)


def last_differences(source: str, size: int) -> list[str]:
    """Return a line for each value of the input ``source`` that differs in the last receipt."""
    facts = load_facts(input_path(source.partition(".")[0], size))
    return differences(facts, receipt_figures(json.loads(LAST.read_text())), exact=True)


def receipt_case(name: str, source: str, size: int, *options: str) -> Case:
    """Return the case of this program on the input ``source`` (a key of ``PEERS``) at ``size`` bytes."""
    log = input_path(source, size)
    return Case(name, receipt_command(log, *options), plain_size(source, size), environ())


def input_path(source: str, size: int) -> Path:
    """Return the log of ``source``, written if missing; ``dense.gz`` is the log ``dense``, compressed."""
    name, _, suffix = source.partition(".")
    return ensure(name, size, suffix)


def plain_size(source: str, size: int) -> int:
    """Return the bytes of the log before compression."""
    return ensure(source.partition(".")[0], size).stat().st_size


def missing(peer: Peer) -> str | None:
    """Return why a peer cannot run here, or None."""
    if peer.program is not None and shutil.which(peer.program) is None:
        return f"{peer.name}: not installed"
    if peer.module is not None and importlib.util.find_spec(peer.module) is None and not (EXTRA / peer.module).is_dir():
        return f"{peer.name}: not installed (make bench-peers)"
    return None


def peer_case(peer: Peer, source: str, size: int) -> Case:
    """Return the case of a peer on its share of the input ``source``."""
    share = min(size, peer.limit or size)
    return Case(peer.name, peer.make(input_path(source, share)), plain_size(source, share), environ())


def versions() -> dict[str, str]:
    """Return name → version text of the other programs."""
    asked = {
        "wc": ("wc", "--version"),
        "rg": ("rg", "--version"),
        "gzip": ("gzip", "--version"),
        "zstd": ("zstd", "--version"),
        "mawk": ("mawk", "-W", "version"),
        "perl": ("perl", "-e", "print $^V"),
        "lnav": ("lnav", "-V"),
        "mtail": ("mtail", "--version"),
    }
    told = {}
    for name, command in asked.items():
        if shutil.which(name) is not None:
            done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
            told[name] = (done.stdout or done.stderr).strip().partition("\n")[0]
    code = "import importlib.metadata as m\nfor d in m.distributions(): print(d.metadata['Name'], d.version)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environ()}
    )
    wanted = {"pygrok", "drain3", "mlperf-logging", "numpy", "regex", "isal", "zstandard", "hyperscan", "jsonschema-rs"}
    told |= {name: version for name, version in (line.split() for line in done.stdout.splitlines()) if name in wanted}
    return told
