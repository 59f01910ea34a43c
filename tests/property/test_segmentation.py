"""What a log is made of does not depend on where it was cut, nor on what was appended to it or printed beside it."""

import os
import random
from collections.abc import Callable
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest

from benchmarks.metamorphic.__main__ import ended, of_trainers, receipts
from benchmarks.metamorphic.pairs import differences
from benchmarks.metamorphic.relations import Document
from receipt_cli.derive import Plan, Reading, plan_reading
from receipt_cli.events.streams import gather
from receipt_cli.events.table import Row
from receipt_cli.io.source import Source, Stream
from tests.tools.slow import one_in

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "logs"
LOGS = sorted(path for path in FIXTURES.glob("*/*.log"))
CUTS = int(os.environ.get("CUTS", "3"))
"""Places at which each fixture is cut; ``make test-cuts`` takes 50."""


@cache
def plan() -> Plan:
    return plan_reading()


def read(path: Path) -> Reading:
    source = Source(str(path))
    return plan().read(gather(plan().engine, [Stream((source,))]))


def printed(reading: Reading, line: int) -> list[Row]:
    tables = [one.events for one in reading.parts or (reading,)]
    return [row for table in tables for row in table.where(table.line == line)]


@pytest.mark.parametrize("path", one_in(3, LOGS), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_cut_log_has_only_figures_that_the_whole_log_prints(path: Path, tmp_path: Path) -> None:
    size = path.stat().st_size
    places = random.Random(path.stem)
    _check_cuts(path, [places.randrange(1, size) for _ in range(CUTS)], tmp_path)


INSIDE = {
    "before a value, in a part of its own": ("espnet/asr-oom", "loss_att=135.426, acc"),
    "behind the group of digits that may be the step": ("fairseq/v012-train-inner-nan", "bsz=529.5, num_updates=600, "),
    "before what is in brackets": ("marian/v17-cuda-oom", "translation : 4.02 : stalled 1 times"),
    "before the name by which another rule reads it": ("mmcv/nan-cpu", "loss_cls: nan, l"),
    "in the record of another writer behind a bar": ("torchspec/draft-2026", "TIMING step=3: step=1.084s data=0.325s com"),
    "in the brackets of another writer": ("torchspec/waits-for-inference-2026", "compute=0.896s [fwd=0.287s bwd=0"),
}


@pytest.mark.parametrize(("name", "text"), INSIDE.values(), ids=INSIDE)
def test_a_log_cut_inside_a_record_has_only_figures_that_the_whole_log_prints(name: str, text: str, tmp_path: Path) -> None:
    path = FIXTURES / f"{name}.log"
    assert text.encode() in path.read_bytes()
    _check_cuts(path, [path.read_bytes().index(text.encode()) + len(text)], tmp_path)


def _check_cuts(path: Path, ends: list[int], folder: Path) -> None:
    data = path.read_bytes()
    whole = read(path)
    known = {grammar.ref for grammar in whole.grammars}
    for end in ends:
        cut = folder / "cut.log"
        cut.write_bytes(data[:end])
        reading = read(cut)
        line = data.count(b"\n", 0, end) + 1
        theirs = printed(whole, line)
        for event in printed(reading, line):
            if event.grammar.ref not in known:
                continue
            assert any(_is_part(event, other) for other in theirs), (data[:end].splitlines()[-1], event, theirs)


def _is_part(event: Row, other: Row) -> bool:
    """True where the whole record prints each figure of the cut one."""
    steps = event.step in (None, other.step) and event.planned in (None, other.planned)
    facts = event.facts.items() <= other.facts.items()
    return (
        steps
        and facts
        and all(
            name in mine and (mine[name] == value or value != value)
            for mine, ours in ((other.metrics, event.metrics), (other.unregistered, event.unregistered))
            for name, value in ours.items()
        )
    )


TRAINERS = (
    " accelerate autoresearch catboost composer detectron2 espnet forgather gluoncv"
    " habitat ignite kaldi lerobot lightning marian megatron-lm mmcv"
    " ms-swift nanogpt nerfstudio olmo openpcdet pix2pix pytorch-examples rsl-rl"
    " skyrl stable-baselines3 tensorflow-estimator torchtitan transformer-xl vits"
)
LOGS_OF = {path.parent.name: path for path in of_trainers(LOGS, len(LOGS))}
HARD = [("composer", "skyrl"), ("tensorflow-estimator", "skyrl"), ("ignite", "skyrl"), ("detectron2", "lightning")]
HARD += [("lightning", "forgather"), ("accelerate", "autoresearch"), ("transformer-xl", "gluoncv"), ("megatron-lm", "rsl-rl")]
HARD += [("flair", "composer"), ("accelerate", "rllib"), ("skyrl", "nemo"), ("modded-nanogpt", "llm-c")]
HARD += [("nemo", "lightning"), ("composer", "llm-c"), ("megatron-lm", "gpt-neox")]
"""Pairs whose border only times, end lines, the form of a line or a call of a program show; three more begin with the lines
of a trainer whose callback prints the steps."""
PAIRED = [LOGS_OF[name] for name in TRAINERS.split()]
PAIRS = [(LOGS_OF[one], LOGS_OF[other]) for one, other in HARD]
PAIRS += [(LOGS_OF[name], FIXTURES / "receipt-emit" / "lightning.log") for name in ("forgather", "megatron-lm", "opennmt-py")]
PAIRS += random.Random("pairs").sample(sorted({*permutations(PAIRED, 2)} - {*PAIRS}), 32)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], list[Document]]:
    folder = tmp_path_factory.mktemp("alone")
    return cache(lambda path: receipts(ended(path.read_bytes()), folder / "alone.log"))


OF_ONE_TRAINER = """
torchtitan/llama3-2025-no-gradnorm torchtitan/llama3-2026-ansi
hf-trainer/axolotl-keys hf-trainer/bar-merged-v5
mmcv/epochs-json-cpu mmcv/iterations-crash-console
megatron-lm/2021-fp16-slurm-time-limit megatron-lm/2019-no-colon
megatron-lm/megatron-deepspeed-seconds-lm-loss megatron-lm/megatron-deepspeed-2022
transformer-xl/nvidia-time-limit transformer-xl/nvidia-time-limit
ultralytics/detect-8.4-cpu ultralytics/yolov5-written
ultralytics/detect-8.1-bars-cpu ultralytics/detect-8.4-cpu
ultralytics/segment-8.3 ultralytics/segment-8.3
deepspeed/engine-ok deepspeed/engine-ok
deepspeed/engine-abort-at-exit deepspeed/engine-ok
deepspeed/engine-crash-rank1 deepspeed/engine-breakdown
detectron2/file-nan detectron2/file-nan
mlperf/mllog-success mlperf/mllog-success
torchtitan/llama3-2026-oom torchtitan/llama3-2026-oom
hf-trainer/oom-killed-wrapped-v5 hf-trainer/printer-v5
lightgbm/folds-early-stopping lightgbm/cv-train-metric
lightgbm/folds-early-stopping lightgbm/train-early-stopping
lightgbm/multiclass-holdout lightgbm/folds-early-stopping
receipt-emit/plain-loop receipt-emit/two-ranks-raised
paddle/science paddle/detection
paddle/recognition paddle/detection
pytorch-examples/mnist pytorch-examples/imagenet
mlperf/mllog-success mlperf/mllog-srun-label
mlperf/mllog-srun-label mlperf/mllog-success
mlperf/mllog-success mlperf/mllog-aborted-train-loss
swin/stopped swin/complete
fairseq/v09-epochs-resumed fairseq/2018-simple
"""
"""By three: times part them; a scheduler's notice ends the first; an opening comes again at the end; rules are learned; few
steps come again; a heading before the first step; a last record comes again behind the end line; every rank introduces
itself; rules that count epochs from another number; and runs without steps that count."""
SAME = [tuple(FIXTURES / f"{name}.log" for name in pair.split()) for pair in OF_ONE_TRAINER.strip().splitlines()]


@pytest.mark.parametrize("pair", [*PAIRS, *SAME], ids=lambda pair: " + ".join(f"{path.parent.name}/{path.stem}" for path in pair))
def test_each_of_two_logs_has_its_receipts_one_behind_the_other(
    pair: tuple[Path, Path], alone: Callable[[Path], list[Document]], tmp_path: Path
) -> None:
    one, other = pair
    both = receipts(ended(one.read_bytes()) + ended(other.read_bytes()), tmp_path / "both.log")
    assert list(differences([*alone(one), *alone(other)], both)) == []
