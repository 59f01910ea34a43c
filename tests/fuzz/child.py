"""One target in a process of its own: under atheris where that is installed, else under our own mutator.

python -m tests.fuzz.child NAME SECONDS SEED FOLDER CORPUS RESULT
"""

import importlib.util
import os
import random
import sys
import time
from pathlib import Path

from tests.fuzz.harness import Watch, load, write_result
from tests.fuzz.mutate import LARGEST, mutate

EVERY = 4096
"""Inputs after which the counts are written: libFuzzer does not come back."""


def main() -> None:
    """Fuzz until the time is over."""
    name, seconds, seed, folder, corpus, result = sys.argv[1:]
    if importlib.util.find_spec("atheris") is not None and not os.environ.get("FUZZ_OWN"):
        _with_atheris(name, int(seconds), int(seed), Path(folder), Path(corpus), Path(result))
    else:
        write_result(Path(result), fuzz(name, float(seconds), int(seed), Path(folder)).result("own"))


def fuzz(name: str, seconds: float, seed: int, folder: Path) -> Watch:
    """Run the seeds of a target, and changed ones for so many CPU seconds; return what was seen."""
    target, seeds = load(name)
    watch, rng = Watch(name, target, folder), random.Random(seed)
    for data in seeds:
        watch(data)
    end = time.process_time() + seconds
    while time.process_time() < end:
        watch(mutate(seeds, rng))
    return watch


def _with_atheris(name: str, seconds: int, seed: int, folder: Path, corpus: Path, result: Path) -> None:
    import atheris

    with atheris.instrument_imports(include=["receipt_cli"]):
        target, seeds = load(name)
    watch = Watch(name, target, folder)
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds):
        watch(data)
        (corpus / f"seed-{number:04}").write_bytes(data[: 16 * LARGEST])
    rng, end = random.Random(seed), time.process_time() + seconds

    def one(data: bytes) -> None:
        watch(data)
        if watch.executions % EVERY == 0 or time.process_time() > end:
            write_result(result, watch.result("atheris"))
            if time.process_time() > end:
                os._exit(0)

    def mutator(data: bytes, limit: int, number: int) -> bytes:
        """Let half of the inputs be changed by tokens, and the other half by libFuzzer."""
        if number % 2:
            rng.seed(number)
            return mutate([data, rng.choice(seeds)], rng)[:limit]
        return bytes(atheris.Mutate(data, limit))

    options = [f"-seed={seed}", f"-max_len={LARGEST}", "-timeout=120", "-rss_limit_mb=3000", "-verbosity=0", "-len_control=20"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={folder}/", str(corpus)], one, custom_mutator=mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
