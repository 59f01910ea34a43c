"""Hold the kernel against the definition on generated and mutated blocks: python -m tests.fuzz.kernel [--seconds 60] [--seed 1]

The kernel is compiled anew under address and undefined-behaviour sanitizers, where the compiler has them, and this
program runs itself with it. An engine with the kernel reads logs in blocks of few records, one that reads each record by
its patterns reads them whole; what they find must be equal. Both live on from log to log, so that layouts are known. Lines
that a collector packed are unpacked by both, too. The first log with a difference is kept in build/fuzz/kernel.
"""

import argparse
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import sysconfig
import time
from itertools import pairwise
from pathlib import Path

from receipt_cli.io.envelopes import Unpacker
from tests.fuzz.harness import ROOT
from tests.tools.made import made_grammar

FOLDER = ROOT / "build" / "fuzz" / "kernel"
NAME = "receipt_cli.scan.kernel._native"
SOURCE = ROOT / "native" / "kernel.c"
CHECKED = "RECEIPT_CHECKED_KERNEL"
"""The environment variable that names the kernel to use."""
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1")
LOGS = sorted((ROOT / "fixtures" / "logs").glob("*/*.log"))
OTHER = {"type": "number", "metric": "other"}
GRAMMAR = made_grammar(
    {
        "row": {
            "event": "step",
            "literal": "step ",
            "pattern": r"\bstep (?P<step>\d++)(?: of (?P<total>\d++))?(?: loss (?P<loss>\S+))?(?: took (?P<time>[\d.,]+ ?m?s?))?",
            "fields": {
                "step": {"type": "integer", "at_least": 3},
                "total": {"type": "integer", "metric": "other"},
                "loss": {**OTHER, "null_if": ["-1"]},
                "time": {**OTHER, "printed_in": "ms"},
            },
        },
        "last": {
            "event": "eval",
            "literal": "done ",
            "pattern": r"\bdone (?P<step>\d++)/(?P=step)(?!\d) loss (?P<loss>\S+)",
            "fields": {"step": {"type": "integer"}, "loss": OTHER},
        },
        "fourth": {
            "event": "eval",
            "literal": ["part 4 of ", "part 1 of 1"],
            "pattern": r"\bpart (?P<step>\d++) of \S+ loss (?P<loss>\S+)",
            "fields": {"step": {"type": "integer"}, "loss": OTHER},
        },
        "cells": {
            "event": "step",
            "literal": "it ",
            "pairs": {
                "start": r"^it (?P<step>\d++) ",
                "cell": "|",
                "key": ":",
                "keys": {"mem": "mem", "lr": "lr", "eta": "eta"},
                "unknown": "other",
            },
            "fields": {
                "step": {"type": "integer"},
                "mem": {**OTHER, "printed_in": "GiB"},
                "lr": OTHER,
                "eta": {**OTHER, "printed_in": "hms"},
            },
        },
        "table": {
            "event": "step",
            "literal": ["#tab", "row "],
            "table": {
                "header": r"^#tab ++\S",
                "row": r"^ *+row ++\d++(?: ++\S++)++$",
                "keys": {"n": "step", "loss": "loss", "x1": "loss"},
                "skip_cells": 1,
            },
            "fields": {"step": {"type": "integer"}, "loss": {**OTHER, "printed_in": "percent"}},
        },
        "block": {
            "event": "step",
            "literal": ["open ", " .: "],
            "block": {
                "open": r"\bopen (?P<step>\d++)$",
                "row": r"^ {2}(?P<key>[^.]+?)\.*+ \.: (?P<value>\S[^\r\n]*+)$",
                "keys": {"loss": "loss", "time": "time"},
            },
            "fields": {
                "step": {"type": "integer"},
                "loss": OTHER,
                "time": {**OTHER, "printed_in": "ms", "value": r"([\d.]++)\)?$"},
            },
        },
    },
    ignore={"rest": {"literal": "step 0", "pattern": "step 0"}},
)
PIECES = (
    "step {d} of {d}", "step {d} loss {n}", "step {d} loss {n} took {n} ms", "step {d} took {n}ms",
    "it {d} eta: {d}:{t}:{t}|lr: {n}", "it {d} mem: {n}|lr: {n}|x: {n}", "it {d} lr: {n}|lr: {n}",
    "done {r}/{r} loss {n}", "done {d}/{d} loss {n}", "part {r} of {d} loss {n}", "part {d} of {n}",
    "Traceback (most recent call last):", '  File "a.py", line {d}, in f', "CUDA out of memory. Tried to allocate {n} GiB",
    "Process exited with exit code {r}", "\\x{d} step {d} loss {n}", "RuntimeError: {d} \\ {n}",
    " {t}%|{b}| {d}/{d} [{t}:{t}, step {d} loss {n}]", "step {d} loss {n} {t}%|{b}| {d}", "it {d} lr: {n}|bar: {t}%|{b}|x: {n}",
    "step {d} of {d} step {d} loss {n}", "nothing {d}", "  ", "", "Error {d}", "step none", "it's {d}",
    "#tab n loss x{r}", "#tab  n  loss ", "row {d} {n} {n}", " row  {d} {n} {n}", "row {d} {n} é{n} {n} GB",
    "open {d}", "  loss .: {n}", "  time... .: ({n}, {n})", "  k{r}/{d}\t\u2003 .: {n} ", "  é\u00a0{d} .:   {n}",
    "  x .: y {t}%|{b}|",
)  # fmt: skip
HEADS = ("", "", "[rank{r}]: ", "2026-01-02 {t}:{t}:{t},{d} - INFO - ", "2: ", "[2026-13-01 25:{t}:61] ", "17000{t}{t}00.123 ")
NUMBERS = ("{i}", "{i}.{i}", "-{i}.{i}", "{i}e-0{r}", "{i}.{i}e+{t}", "1,{k}", "0,{k}", "nan", "inf", "-1", "{i}GB", "{i}%")
ENDS = (b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\n\n")
BAR = re.compile(rb"(?<=%\|)[^|]*(?=\|)")
CELLS = ("█", "█", "▎", "▌", "▉", " ", " ", "#", "x", "|")
END = re.compile(rb"[\r\n]")
DIGITS = b"0123456789"
CUTS = 12
"""So often a text is cut and read again: what the definition gives does not depend on it, and is read once."""
HOSTILE = (b"\0", b"\r", b"\x08", b"\x1b[0m", b"\xff", b"\xc3\xa9", b"\r\n", b" [repeated 3x across cluster]", b"9" * 70)


KEYS = (
    "log",
    "msg",
    "message",
    "MESSAGE",
    "time",
    "ts",
    "date",
    "level",
    "severity",
    "stream",
    "rank",
    "loss",
    "exc_info",
    "_source",
    "x",
)
VALUES = (
    "it 1\n", "a\r\nb\n", "\u00e9\u2588\x00", "2026-01-02T03:04:05.1Z", "1767323045", 1767323045123, 1767323045.25, "info",
    "warn", "stdout", "stderr", '{"log": "it 2", "time": "2026-01-02T03:04:05Z"}', [65], ["a", {"b": None}], {},
    None, True, -1.5, 7, "",
)  # fmt: skip
WRECKS = (
    b"",
    b"\\",
    b'"',
    b"\\u00",
    b"{",
    b"}",
    b"[",
    b",",
    b"\xff",
    b"\xed\xa0\x80",
    b"NaN",
    b"0",
    b".",
    b"e5",
    b"\n",
    b"\t",
    b" ",
    b"\x01",
)


def packed(rng: random.Random) -> bytes:
    """Return an object around a line, or something like one."""
    entry = {rng.choice(KEYS): rng.choice(VALUES) for _ in range(rng.randrange(6))}
    blank = rng.choice(("", " "))
    text = bytearray(json.dumps(entry, ensure_ascii=rng.random() < 0.5, separators=("," + blank, ":" + blank)).encode())
    text[:0] = rng.choice((b"", b"", b"", b"[", b"x\t", b"2026-01-02T03:04:05Z stdout P "))
    text += rng.choice((b"", b"", b"", b",", b"]", b"\r", b" "))
    while rng.random() < 0.2:
        at = rng.randrange(len(text) + 1)
        text[at : at + rng.randrange(2)] = rng.choice(WRECKS)
    return bytes(text)


def unpack(native: object, pieces: list[bytes]) -> tuple[bytes, list[int]]:
    """Return what is unpacked of ``pieces``, and the lines that are empty."""
    unpacker = Unpacker(native)
    return b"".join(map(unpacker.feed, pieces)) + unpacker.rest(), list(unpacker.emptied)


def number(rng: random.Random) -> str:
    """Return a number as some trainer prints one."""
    whole = rng.choice((rng.randrange(10), rng.randrange(10**6), rng.getrandbits(rng.randrange(1, 70))))
    form = rng.choice(NUMBERS)
    return form.format(i=whole, r=rng.randrange(10), t=f"{rng.randrange(70):02}", k=f"{rng.randrange(1000):03}")


def bar(rng: random.Random) -> str:
    """Return the cells of a bar, or of something like one."""
    if rng.random() < 0.2:
        return "".join(rng.choices(CELLS, k=rng.randrange(6)))
    return "█" * rng.randrange(12) + rng.choice(("", "", "▏", "▌", "▉")) + " " * rng.randrange(12)


def line_of(rng: random.Random, form: str) -> bytes:
    """Return a line of a form, with bytes in it that are no text now and then."""
    form = form.replace("{b}", bar(rng))
    for mark in ("{d}", "{n}", "{t}", "{r}"):
        while mark in form:
            text = {"{d}": str(rng.randrange(10 ** rng.randrange(1, 5))), "{t}": f"{rng.randrange(70):02}"}.get(mark)
            form = form.replace(mark, text or (number(rng) if mark == "{n}" else str(rng.randrange(10))), 1)
    raw = bytearray(form, "utf-8")
    while rng.random() < 0.06:
        at = rng.randrange(len(raw) + 1)
        raw[at : at + rng.randrange(2)] = rng.choice(HOSTILE)
    return bytes(raw)


def log_of(rng: random.Random, forms: list[str], known: list[bytes], lines: int) -> bytes:
    """Return some lines: most of them ``known`` ones with other digits, which the kernel reads, some with more or fewer."""
    from benchmarks.identity import stretch

    digits = {line: [at for at, byte in enumerate(line) if byte in DIGITS] for line in known}
    made = []
    for end in rng.choices(ENDS, k=lines):
        if not known or rng.random() < 0.05:
            line = line_of(rng, rng.choice(forms))
        else:
            like = rng.choice(known)
            moved = bytearray(like)
            for at, digit in zip(digits[like], rng.choices(DIGITS, k=len(digits[like])), strict=True):
                moved[at] = digit
            line = stretch(bytes(moved), rng, 0.2) if rng.random() < 0.1 else bytes(moved)
            if b"%|" in line:
                line = BAR.sub(lambda _: bar(rng).encode(), line)
        made += [line, end]
    return b"".join(made)


def cut(text: bytes, rng: random.Random) -> list[bytes]:
    """Return ``text`` in pieces, most of which end within two bytes of a record's end."""
    places = {0, len(text)}
    for found in END.finditer(text):
        if rng.random() < 0.7:
            places.add(min(len(text), max(0, found.end() + rng.choice((0, 0, 0, 0, -2, -1, 1, 2)))))
    ordered = sorted(places)
    return [text[a:b] for a, b in pairwise(ordered)]


def compare(seconds: float, seed: int) -> int:
    """Compare until the time is over; return 1 where the two differ."""
    from benchmarks.identity import find_difference, mutate, plain_body
    from receipt_cli.definitions.failure_markers import load_catalogue
    from receipt_cli.grammar.catalog import shipped
    from receipt_cli.grammar.parse import build_grammar
    from receipt_cli.scan.engine import Engine

    rng, blocks, read = random.Random(seed), 0, 0
    end = time.monotonic() + seconds
    made = [build_grammar(GRAMMAR, "made.yaml", "0" * 64)]
    while time.monotonic() < end:
        whole = rng.random() < 0.005
        grammars = shipped() if whole else made
        fast, pure = (Engine(grammars, load_catalogue(), by_layout=by_layout) for by_layout in (True, False))
        assert fast.kernel is not None, "no kernel"
        forms = [rng.choice(HEADS) + rng.choice(PIECES) for _ in range(rng.randrange(1, 9))]
        known = [line_of(rng, rng.choice(forms)) for _ in range(rng.randrange(12))]
        log = rng.choice(LOGS).read_bytes()
        for _ in range(4 if whole else 60):
            lines = rng.randrange(1, 300)
            text = mutate(log[rng.randrange(len(log)) :][:3000], rng) if whole else log_of(rng, forms, known, lines)
            defined = plain_body(pure.finish(pure.scan([text]))[0])
            for _ in range(CUTS):
                parts = cut(text, rng)
                found = plain_body(fast.finish(fast.scan(parts, whole=rng.random() < 0.5))[0])
                if found != defined:
                    FOLDER.mkdir(parents=True, exist_ok=True)
                    (FOLDER / "difference.log").write_bytes(text)
                    print(f"block {blocks} of seed {seed}: {find_difference(found, defined)}; see {FOLDER / 'difference.log'}")
                    return 1
                blocks, read = blocks + sum(END.search(part) is not None for part in parts), read + found["records"]
            parts = cut(b"\n".join(packed(rng) for _ in range(rng.randrange(20))), rng)
            if unpack(fast.native, parts) != unpack(None, parts):
                FOLDER.mkdir(parents=True, exist_ok=True)
                (FOLDER / "difference.log").write_bytes(b"".join(parts))
                print(f"packed lines of seed {seed} differ; see {FOLDER / 'difference.log'}")
                return 1
            if time.monotonic() >= end:
                break
    print(f"{blocks} blocks, {read} records, seed {seed}: no difference")
    return 0


def compile_checked() -> tuple[Path, dict[str, str]]:
    """Compile the kernel; return it and the environment that it needs. Without the sanitizers where there are none."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    target = FOLDER / "_native.abi3.so"
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
    command = [*compiler, "-std=c99", "-Wall", "-Wextra", "-ffp-contract=off", "-fPIC", "-shared"]
    command += [f"-I{sysconfig.get_path('include')}", str(SOURCE), "-o", str(target)]
    if subprocess.run([*command, *SANITIZERS], check=False).returncode == 0:
        found = subprocess.run([*compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        preload = f"{found.stdout.strip()} {os.environ.get('LD_PRELOAD', '')}".strip()
        return target, {"LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1", "PYTHONMALLOC": "malloc"}
    print("the compiler has no sanitizers: they are left out")
    subprocess.run([*command, "-O1"], check=True)
    return target, {}


def main() -> int:
    """Compile, run with what was compiled, and return 1 where the kernel differs or fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.kernel", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    checked = os.environ.get(CHECKED)
    if checked is None:
        target, needed = compile_checked()
        command = [sys.executable, "-m", "tests.fuzz.kernel", "--seconds", str(options.seconds), "--seed", str(options.seed)]
        return subprocess.run(command, cwd=ROOT, env={**os.environ, **needed, CHECKED: str(target)}, check=False).returncode
    spec = importlib.util.spec_from_file_location(NAME, checked)
    assert spec is not None and spec.loader is not None
    module = sys.modules[NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return compare(options.seconds, options.seed)


if __name__ == "__main__":
    raise SystemExit(main())
