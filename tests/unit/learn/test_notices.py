"""Lines about a saved checkpoint, or of a program that begins, in the log of an unknown trainer."""

import pytest

from receipt_cli.detect.generic import load_generic
from receipt_cli.learn.notices import banners, induce_banner, induce_saves, saves


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"Saving checkpoint to out/10.pt", b"Saving checkpoint to "),
        (b"=> saved the latest model checkpoint to /ckpt/10", b"saved the latest model checkpoint to "),
        (b"[2026-01-31 10:00:00] INFO: Saved model to model.pt", b"Saved model to "),
        (b"Checkpoint saved to out/10.pt (1.2 GB)", b"Checkpoint saved to "),
        (b"wrote snapshot at out/10", b"wrote snapshot at "),
        (b"Saving checkpoints every 1000 steps", None),
        (b"Saving checkpoints to out/", None),
        (b"checkpoint_dir: out, save_every: 100", None),
        (b"Loading checkpoint from out/10.pt", None),
        (b"Saved best model to best.pt", None),
        (b"model saved", None),
        (b"logger.info('Saving checkpoint to %s', path)", None),
    ],
)
def test_which_lines_count(line: bytes, words: bytes | None) -> None:
    found = saves(load_generic())
    found.take(b"step 1 loss 2\n" + line + b"\nstep 2 loss 1\n")
    assert (found.count, list(found.samples)) == ((0, []) if words is None else (1, [words]))


def test_more_of_them_than_records_are_no_checkpoints() -> None:
    found = saves(load_generic())
    found.take(b"Saving checkpoint to a\n" * 3)
    assert induce_saves(found, 2) is None
    rule = induce_saves(found, 3)
    assert rule is not None
    assert (rule.body["event"], rule.body["literal"]) == ("checkpoint", ["Saving checkpoint to "])


def test_a_line_with_several_words_of_a_start_is_one_start() -> None:
    found = banners(load_generic())
    found.take(b"Namespace(training=True, start=0)\nstart training of the model, training started\n")
    assert (found.count, found.programs) == (2, 1)
    assert induce_banner(found, 5) is None
    rule = induce_banner(found, 6)
    assert rule is not None and (rule.name, rule.body["literal"]) == ("launch_begins", ["Namespace(", "start training"])
