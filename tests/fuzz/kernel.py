"""Fuzz the targets that hold the kernel against the definition, under sanitizers: python -m tests.fuzz.kernel

The kernel is compiled anew under address and undefined-behaviour sanitizers, if the compiler has them, and this program runs
itself with it. Inputs that crash are kept in build/fuzz/kernel.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.fuzz.child import fuzz
from tests.fuzz.harness import ROOT

FOLDER = ROOT / "build" / "fuzz" / "kernel"
NAME = "receipt_cli.scan.kernel._native"
SOURCE = ROOT / "native" / "kernel.c"
CHECKED = "RECEIPT_CHECKED_KERNEL"
"""The environment variable that names the kernel to use."""
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1")
TARGETS = ("layouts", "numbers", "packed", "splits")


def compile_checked() -> tuple[Path, dict[str, str]]:
    """Compile the kernel; return it and the environment that it needs. Without the sanitizers if there are none."""
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
    """Compile, run with what was compiled, and return 1 if the kernel differs or fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.kernel", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="CPU seconds for all targets together")
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
    watches = [fuzz(name, options.seconds / len(TARGETS), options.seed, FOLDER / name) for name in TARGETS]
    for watch in watches:
        print(watch.name, watch.executions, "inputs:", ", ".join(sorted(watch.crashes)) or "no difference")
    return int(any(watch.crashes for watch in watches))


if __name__ == "__main__":
    raise SystemExit(main())
