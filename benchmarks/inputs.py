"""Generate the logs for measurements once, and keep them in ``build/bench/`` with their facts, also compressed.

python -m benchmarks.inputs NAME SIZE FILE      write one log
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.figures import facts_path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / "build" / "bench"
SEED = 20_250_301
VERSION = 1
"""Version of the generators; logs of another version are written again."""
COMPRESSORS = {"gz": ("gzip", "-6", "-c"), "zst": ("zstd", "-3", "-q", "-c")}
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30}


def parse_size(text: str) -> int:
    """Return the bytes of ``64MiB``, ``10GB``, ``1G`` or ``5000``. Raises ``ValueError``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?I?)B?", text.strip().upper())
    if found is None or found[2] not in _UNITS:
        raise ValueError(f"not a size: {text!r}")
    return int(float(found[1]) * _UNITS[found[2]])


def print_size(size: int) -> str:
    """Return ``size`` in the unit with the shortest text: ``1 GiB``, ``10 GB``."""
    for factor, unit in ((1 << 30, "GiB"), (10**9, "GB"), (1 << 20, "MiB"), (10**6, "MB")):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size / 1e6:.1f} MB"


def log_path(name: str, size: int, suffix: str = "") -> Path:
    """Return the path of the kept log of ``name`` at ``size`` bytes; ``suffix`` is ``gz`` or ``zst``."""
    return CACHE / f"{name}-{size}-v{VERSION}.log{'.' + suffix if suffix else ''}"


def input_is_kept(name: str, size: int) -> bool:
    """Return whether the plain log of ``name`` exists."""
    return log_path(name, size).exists()


def ensure(name: str, size: int, suffix: str = "") -> Path:
    """Return the path of the log; write it first if it is missing, with its facts beside the plain log."""
    path = log_path(name, size, suffix)
    if not path.exists():
        if suffix:
            _compress(ensure(name, size), path, suffix)
        else:  # in a separate process: a child's peak memory includes its parent's at its start
            subprocess.run([sys.executable, "-m", "benchmarks.inputs", name, str(size), str(path)], cwd=ROOT, check=True)
    return path


def write(name: str, size: int, path: Path, *, facts: bool = True) -> None:
    """Write the log of ``name``, slightly over ``size`` bytes, and its facts, each atomically."""
    from benchmarks.facts import Facts
    from benchmarks.generators import GENERATORS

    path.parent.mkdir(parents=True, exist_ok=True)
    known = Facts() if facts else None
    partial = path.with_name(path.name + ".part")
    with partial.open("wb") as file:
        for block in GENERATORS[name](size, SEED, known):
            file.write(block)
    if known is not None:
        facts_path(path).write_text(json.dumps(known.document(), indent=1) + "\n")
    partial.replace(path)


def _compress(plain: Path, path: Path, suffix: str) -> None:
    partial = path.with_name(path.name + ".part")
    with partial.open("wb") as file:
        subprocess.run([*COMPRESSORS[suffix], str(plain)], stdout=file, check=True)
    partial.replace(path)


if __name__ == "__main__":
    write(sys.argv[1], parse_size(sys.argv[2]), Path(sys.argv[3]))
