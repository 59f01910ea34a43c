"""Rearranging a log changes nothing but what it should."""

from pathlib import Path

import pytest

from benchmarks.metamorphic.relations import RELATIONS, Relation, violation
from receipt_cli.receipts.production import Request, produce_all

NANOGPT = [b"iter %d: loss %.4f, time %d.00ms, mfu 12.00%%\n" % (n, 4 - n / 100, 30 + n % 7) for n in range(0, 900, 5)]
EMIT = [
    b"step: %3d  loss: %8.5f  grad_norm: %.4f  memory: 30.00GiB(37.5%%)  tps: %d\n" % (n, 9 - n / 50, 1 + n / 99, 6000 + n)
    for n in range(1, 181)
]
HF = [
    b"{'loss': %.4f, 'grad_norm': %.3f, 'learning_rate': %.3e, 'epoch': %.2f}\n" % (4 - n / 99, 1 + n / 80, 1e-4 / n, n / 100)
    for n in range(1, 181)
]
STAMP = b"2023-01-13 19:41:10 | INFO | yolox.core.trainer:after_iter:253"
TIMES = b"mem: 4538Mb, iter_time: 0.2%02ds, data_time: 0.002s, total_loss: %.1f, iou_loss: 0.6, lr: 1.250e-04"
YOLOX = [
    b"%s - epoch: %d/9, iter: %d/200, %s\n" % (STAMP, epoch, n, TIMES % (n // 10, 9 - epoch / 2 - n / 500))
    for epoch in range(1, 10)
    for n in range(10, 201, 10)
]
LOGS = {"nanogpt": NANOGPT, "torchtitan": EMIT, "hf-trainer": HF, "yolox": YOLOX}


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
@pytest.mark.parametrize("name", LOGS)
def test_a_relation_holds_of_four_trainers(tmp_path: Path, name: str, relation: Relation) -> None:
    path = tmp_path / "run.log"

    def receipts(lines: list[bytes]) -> list[dict[str, object]]:
        path.write_bytes(b"".join(lines))
        return [product.document for product in produce_all(Request(path=str(path), workers=1))]

    assert violation(relation, receipts(LOGS[name]), receipts(list(relation.rearrange(LOGS[name])))) == ""
