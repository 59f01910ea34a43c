"""Any plausible way to print a step and a loss is learned; what is learned proves itself; nothing depends on cuts."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from receipt_cli.authoring.lint import lint_grammar
from receipt_cli.authoring.proposal import covers, propose
from receipt_cli.derive import Options, derive
from receipt_cli.detect.generic import load_generic
from receipt_cli.io.source import Source
from receipt_cli.learn import shapes
from receipt_cli.learn.learned import learn
from receipt_cli.learn.shapes import Miner
from tests.tools.examples import costly
from tests.tools.logs import learned_of
from tests.tools.timed import takes_less

STEP = ("step", "iter", "Iteration", "global_step", "global step", "Update", "it")
LOSS = ("loss", "Loss", "train_loss", "training loss", "train/loss", "total_loss", "lm loss", "nll", "cross_entropy")
MORE = ("lr", "learning_rate", "grad_norm", "grad norm", "loss scale", "alpha", "kl_coef", "tau", "beta2", "queue depth")
JOINTS = ((": ", ", "), ("=", " "), (": ", " | "), ("=", ", "), (": ", " - "), (" = ", "; "), (":", "\t"))
HEADS = ("", "[trainer] ", "INFO - ", "rank0 | ", "2026-01-02 03:04:05,678 - train - INFO - ", "[rank0]: ")
WORDS = load_generic()


@st.composite
def formats(draw: st.DrawFn) -> tuple[str, bool]:
    """Return a template of a step record with ``{n}``, ``{x}``, ``{a}`` and ``{b}``, and whether it prints a total."""
    between, cell = draw(st.sampled_from(JOINTS))
    total = draw(st.booleans())
    names = st.lists(st.sampled_from(MORE), min_size=2, max_size=2, unique_by=lambda name: {"lr": "lear"}.get(name, name[:4]))
    first, second = draw(names)
    cells = [
        f"{draw(st.sampled_from(STEP))}{between}{{n}}" + ("/{t}" if total else ""),
        f"{draw(st.sampled_from(LOSS))}{between}{{x}}",
        f"{first}{between}{{a}}",
        f"{second}{between}{{b}}",
    ]
    return draw(st.sampled_from(HEADS)) + cell.join(draw(st.permutations(cells))), total


def printed(template: str, count: int, stride: int, losses: list[float]) -> bytes:
    lines = [
        template.format(
            n=k * stride, t=count * stride, x=f"{losses[k % len(losses)]:.4f}", a=f"{0.5 + k / 7:.3f}", b=f"{k / 3:.2e}"
        )
        for k in range(1, count + 1)
    ]
    return "".join(f"{line}\n" for line in ["starting", *lines, "done"]).encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=costly(100))
@given(
    made=formats(),
    count=st.integers(4, 90),
    stride=st.sampled_from((1, 5, 10, 100)),
    losses=st.lists(st.floats(0.01, 20), min_size=2, max_size=9),
)
def test_a_trainer_that_nobody_knows_is_read(made: tuple[str, bool], count: int, stride: int, losses: list[float]) -> None:
    derivation = learned_of(printed(made[0], count, stride, losses))
    assert derivation.primary is not None
    found = derivation.summaries[derivation.primary]
    last = losses[count % len(losses)]
    loss = found.metrics["loss"]
    assert (found.record_count, found.first, found.last) == (count, stride, count * stride)
    assert (loss.first, loss.last) == (float(f"{losses[1]:.4f}"), float(f"{last:.4f}"))
    assert found.planned == (count * stride if made[1] else None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(made=formats(), count=st.integers(4, 30))
def test_a_draft_passes_lint_and_reads_what_generic_reading_reads(made: tuple[str, bool], count: int, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(printed(made[0], count, 10, [3.5, 2.5, 1.5]))
    proposal = propose(str(log), "mine")
    assert lint_grammar(proposal.text, "mine.yaml") == []
    assert covers(proposal.derivation, learned_of(log.read_bytes()))
    assert max(map(len, proposal.text.decode().split("\n"))) < 600  # a rule is a whole line as a pattern


BANNERS = st.sampled_from(["start training", "Begin the training of resnet", "TRAINING HAS STARTED", "args: Namespace(lr=0.1)"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(banner=BANNERS, counts=st.lists(st.integers(4, 12), min_size=2, max_size=4))
def test_of_launches_that_introduce_themselves_the_last_stands(banner: str, counts: list[int]) -> None:
    lines: list[str] = []
    for launch, count in enumerate(counts):
        lines += [banner, *(f"epoch: {n} end, loss: {9 - launch - n / 100:.3f}" for n in range(count)), "Killed"]
    derivation = learned_of(lines)
    assert derivation.primary is not None
    found = derivation.summaries[derivation.primary]
    assert (found.record_count, found.metrics["loss"].first) == (counts[-1], 10.0 - len(counts))


HERALDS = st.sampled_from(["Test Error: ", "Evaluating ...", "***** Running Evaluation *****", "--- validation ---", "测试:"])
RESULTS = st.sampled_from(["Accuracy: 4{e}.5%, Avg loss: 9.{e}", "loss = 9.{e}, acc = 0.{e}", "mean loss 9.{e}, f1 0.{e}"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(herald=HERALDS, result=RESULTS, epochs=st.integers(2, 6), batches=st.integers(2, 8))
def test_what_a_line_announces_is_no_training(herald: str, result: str, epochs: int, batches: int) -> None:
    lines: list[str] = []
    for e in range(1, epochs + 1):
        lines += [f"Epoch {e}", *(f"loss: {4 - e / 10 - i / 100:.3f}  [{64 * i + 64}/ {640}]" for i in range(batches))]
        lines += [herald, result.format(e=e), ""]
    derivation = learned_of(lines)
    for summary_of in derivation.summaries:
        loss = summary_of.metrics.get("loss")
        assert summary_of.record_count in (0, epochs * batches) and (loss is None or (loss.max or 0) < 9)


LINES = st.one_of(
    BANNERS.map(str.encode),
    HERALDS.map(str.encode),
    st.builds(lambda n, x: f"step {n} loss {x:.3f} lr 0.1".encode(), st.integers(0, 400), st.floats(0, 9)),
    st.builds(lambda n, x: f"[batch={n}/40]:\n\tloss: {x:.3f}".encode(), st.integers(0, 40), st.floats(0, 9)),
    st.builds(lambda n: f"\r 5%|#  | {n}/40 [00:01<00:02, 3.0it/s, loss=1.5]".encode(), st.integers(0, 40)),
    st.builds(lambda n: f"Epoch {n}/9".encode(), st.integers(0, 9)),
    st.binary(max_size=40),
    st.sampled_from([b"", b"\r", b"\x1b[31mstep 3 loss 2.5\x1b[0m", b"\xff\xfe step 1", b"\x00step 2 loss", b"step " * 9]),
)
LOGS = st.lists(LINES, max_size=40).map(b"\n".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=costly(60))
@given(log=LOGS)
def test_whatever_the_log_is_there_is_a_draft_that_proves_itself(log: bytes, tmp_path: Path) -> None:
    assume(log)
    path = tmp_path / "any.log"
    path.write_bytes(log)
    assert lint_grammar(propose(str(path), "mine").text, "mine.yaml") == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(made=formats(), count=st.integers(3, 60))
def test_workers_do_not_matter(made: tuple[str, bool], count: int, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(printed(made[0], count, 10, [3.5, 2.5, 1.5]))
    one, two = (derive(Source(str(log)), Options(grammar="generic"), workers=n) for n in (1, 2))
    assume(one.primary is not None)
    assert one.summaries == two.summaries and one.lines == two.lines


HOSTILE = {
    "digits": b"step " + b"1" * 60_000,
    "numbers": b"step " + b"1 " * 30_000,
    "commas": b"loss " + b"1,111" * 12_000,
    "blanks": b"step" + b" " * 60_000 + b"1",
    "bars": b"step 1%|" + b"#" * 60_000,
    "brackets": b"loss [" * 10_000 + b"1",
    "times": b"step 1:11" * 7_000,
    "equal signs": b"loss=" * 12_000 + b"1",
    "slashes": b"step 1/" * 9_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_line_costs_bounded_time(name: str) -> None:
    assert takes_less(5, learn, [(HOSTILE[name] + b"\n") * 20], WORDS)


def test_a_log_of_ever_new_shapes_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "MAX_SHAPES", 100)
    monkeypatch.setattr(shapes, "KEPT_SHAPES", 50)
    words = [f"step {chr(97 + k % 26)}{'x' * (k % 97)}{chr(97 + k // 26 % 26)} {k} loss 1" for k in range(300)]
    lines = "".join(f"{word}\nstep {k} loss {k / 7:.3f} lr 1\n" for k, word in enumerate(words)).encode()
    miner = Miner(frozenset([b"step", b"loss"])).mine([lines])
    assert len(miner.shapes) <= 100
    learned = learn([lines], WORDS)
    assert learned is not None and learned.records == 300
