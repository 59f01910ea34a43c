"""``receipt_cli.emit`` may be imported by any trainer: the standard library alone, and little of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = """
import sys
before = set(sys.modules)
import receipt_cli.emit
at_import = sorted(set(sys.modules) - before)
from receipt_cli.emit import *
tracker = GoodputTracker()
with tracker.span("step"):
    pass
tracker.summary(), tracker.to_receipt_goodput()
performance = TemporalPerformanceTracker()
performance.start_run({"a": 1})
performance.record_step(1, {"loss": 1.0}, tokens=1)
performance.finish_run()
performance.write(sys.argv[1])
receipt = AblationReceipt(kind="k", variant="v", architecture="g", config={"n_layer": 1})
receipt.record(1, {"loss": 1.0}, {"mass": [0.5]})
receipt.write(sys.argv[1])
StepPrinter(sys.stderr).step(1, loss=1.0)
import receipt_cli.emit
with receipt_cli.emit.TorchLoop(stream=sys.stderr) as loop:
    loop.step(1.0)
for extra in ("push", "profiling"):
    __import__(f"receipt_cli.emit.{extra}")
print(*at_import)
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def loaded(tmp_path: Path) -> tuple[set[str], set[str]]:
    """Return the modules that the import alone loads, and the packages that its use loads; nothing is installed there."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", WORK, str(tmp_path / "document.json")],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    first, second = done.stdout.splitlines()
    return set(first.split()), set(second.split())


def test_it_works_where_nothing_is_installed(tmp_path: Path) -> None:
    _, packages = loaded(tmp_path)
    assert packages - set(sys.stdlib_module_names) == {"receipt_cli"}


def test_the_import_loads_nothing_of_the_rest(tmp_path: Path) -> None:
    modules, _ = loaded(tmp_path)
    ours = {name for name in modules if name.startswith("receipt_cli")}
    ground = {"receipt_cli"}
    assert ours - ground == {name for name in ours if name.startswith("receipt_cli.emit")}
    assert not {name for name in ours if re.match(r"receipt_cli\.emit\.(callbacks|push|otel|profiling)\b", name)}
    slow = {"asyncio", "dataclasses", "inspect", "json", "logging", "pathlib", "subprocess", "tempfile", "urllib.request"}
    assert not modules & slow
