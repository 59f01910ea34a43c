"""What holds for one record holds for all that differ from it in digits only; many at once are read as one by one."""

import random
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.detect.choose import detect
from receipt_cli.detect.generic import load_generic, may_be_another
from receipt_cli.grammar.catalog import shipped
from receipt_cli.learn import shapes as mining
from receipt_cli.learn.learned import learn
from receipt_cli.learn.shapes import Miner, Shape
from receipt_cli.learn.tokens import MAX_CORE, Looks, core_start, form_of, read_token, shape, split
from receipt_cli.records.envelope import MASK, read_rank
from receipt_cli.scan.engine import Engine
from tests.tools.logs import derived_of

HEADS = (
    b"", b"[rank3]: ", b"2026-01-02 03:04:05,678 - train - INFO - ", b"f1: ", b"f2: ", b"12: ", b"node-17: ",
    b"<13>1 2026-01-02T03:04:05Z host app 77 - - ", b"[1,5]<stdout>:", b"#033[32m", b"#044[32m",
    b"I0102 03:04:05.678901 123 a.py:17] ", b"(worker rank=11, pid=2) ",
)  # fmt: skip
BODIES = (
    b"step 12/400 loss 3.25", b"iter 1,024 | loss: nan | lr 1e-05", b"layer3 f1: 0.75 loss 2.5", b"step 1 of 9 loss -inf",
    b"it 7 [00:10<01:00, 3.2it/s, loss=2.5]", b"step 12 took 2:40:15 of 3 days", b"Acc@1 55.3 step 3. loss 7%",
    b"99%|###  | 3/40 loss=1",
)  # fmt: skip
DIGITS = st.lists(st.integers(0, 9), min_size=80, max_size=80)


def with_digits(record: bytes, digits: list[int]) -> bytes:
    """Return ``record`` with other digits."""
    rest = iter(digits)
    return bytes(48 + next(rest) if 48 <= b < 58 else b for b in record)


@given(head=st.sampled_from(HEADS), body=st.sampled_from(BODIES), digits=DIGITS)
def test_a_form_takes_every_record_apart_as_the_patterns_do(head: bytes, body: bytes, digits: list[int]) -> None:
    form, other = form_of(head + body), with_digits(head + body, digits)
    assert other.translate(MASK) == (head + body).translate(MASK)
    if not form.lasting:
        return
    at = core_start(other)
    parts = split(other[at : at + MAX_CORE].rstrip())
    assert (form.start, form.parts(other), form.key_of(other)) == (at, parts, shape(parts))
    assert form.rank_of(other) == (read_rank(other[:at]) if at else -1)
    for column, text in enumerate(parts[1::2]):
        token, number = read_token(text), form.number(column)
        assert form.token(column, other) in (token, number.like) or token.value != token.value
        assert (number.like.kind, number.like.integer, number.like.grouped) == (token.kind, token.integer, token.grouped)
        if number.value is not None and token.value == token.value:
            assert float(other[number.value].replace(b",", b"")) == token.value
        if number.total is not None:
            assert float(other[number.total].replace(b",", b"")) == token.total


LINES = (*BODIES, b"Validation of epoch 3:", b"--- 7 ---", b"nothing of it", b"Train epoch 2")


@given(head=st.sampled_from(HEADS), line=st.sampled_from(LINES), digits=DIGITS)
def test_what_a_record_showed_in_another_log_is_what_this_one_shows(head: bytes, line: bytes, digits: list[int]) -> None:
    words, vocabulary = frozenset((b"step", b"loss", b"epoch", b"iter", b"it", b"took")), load_generic()
    after, fresh = (Looks(words, lambda text: vocabulary.section(text[core_start(text) :].decode())) for _ in range(2))
    other = with_digits(head + line, digits)
    masked = other.translate(MASK)
    after.look(masked, head + line)
    one, said = after.known.get(masked) or after.look(masked, other)
    own, says = fresh.look(masked, other)
    assert said == says
    assert (one is None) == (own is None)
    if one is not None and own is not None:
        assert (one.start, one.bounds, one.rank_of(other)) == (own.start, own.bounds, own.rank_of(other))
        assert not one.bounds or one.key_of(other) == own.key_of(other)


def records(seed: int) -> bytes:
    """Return a log of two shapes and two ranks: counters that fall, values that change their width, and what is no number."""
    pick = random.Random(seed)
    lines, step, epoch = [], 0, 1
    for _ in range(600):
        step += pick.choice((1, 1, 1, 5, 0))
        if pick.random() < 0.02:
            step, epoch = 0, epoch + 1
        loss = pick.choice(("nan", "inf", "0", "1")) if pick.random() < 0.01 else f"{pick.random():.3f}"
        total = "" if pick.random() < 0.01 else "/4,000"
        seen = f"{step * 256:,}" if pick.random() < 0.5 else str(step * 256)
        rank = pick.choice(("", "[rank1]: ", "[rank2]: "))
        lines.append(f"{rank}epoch {epoch} step {step}{total} loss {loss} samples {seen} eta {pick.choice(('1:02:03', '00:01'))}")
        if pick.random() < 0.3:
            lines.append(f"layer{pick.randrange(3)} step {step} of 4000 lr {1 / (step + 1):.2e}")
    return "\n".join(lines).encode()


@pytest.mark.parametrize("seed", range(6))
def test_many_records_at_once_are_read_as_one_by_one(seed: int) -> None:
    words, log = frozenset([b"step"]), records(seed)
    many = Miner(words).mine([log])
    with mock.patch.object(Shape, "_follow_all", lambda *_: False), mock.patch.object(mining, "MAX_FORMS", 0):
        alone = Miner(words).mine([log])
    lines = Miner(words).mine([line + b"\n" for line in log.split(b"\n")])
    assert repr(many.shapes) == repr(alone.shapes) == repr(lines.shapes)
    assert max(s.followed for s in many.shapes.values()) > mining.FULL_RECORDS + 64


def test_the_first_frame_of_a_bar_is_below_the_least_step() -> None:
    frames = [f"{n}%|#    | {n}/90 [00:0{n}<00:09, 3.1it/s, loss={9 - n:.2f}, lr=0.1]" for n in range(1, 9)]
    learned = learn(["\n".join(["0%|     | 0/90 [00:00<?, ?it/s]", *frames]).encode()], load_generic())
    (rule,) = learned.rules
    assert rule.body["fields"]["step"] == {"type": "integer", "at_least": 1}
    assert "(?!0" not in rule.pattern  # what asks for a digit is slow


MLLOG = (
    ':::MLLOG {{"namespace": "", "time_ms": {time}, "event_type": "POINT_IN_TIME", "key": "{key}", "value": {value}, '
    '"metadata": {meta}}}'
)


def mllog(steps: int) -> list[str]:
    """Return the lines of a benchmark that prints the loss of each step."""
    lines = [MLLOG.format(time=10**12, key="submission_benchmark", value='"llama2_70b_lora"', meta='{"lineno": 4}')]
    for n in range(1, steps + 1):
        meta = f'{{"lineno": 213, "samples_count": {64 * n}, "lr": {4e-4 - n / 1e9}, "step": {n}}}'
        lines.append(MLLOG.format(time=10**12 + n, key="train_loss", value=3 - n / 1000, meta=meta))
    return lines


@pytest.mark.parametrize(
    ("more", "left"), [([], False), ([':::MLLOG {"names'], False), (["step 1 loss 2", "step 2 loss 3", "step 3 loss 2"], True)]
)
def test_a_benchmark_that_explains_a_log_leaves_nothing_to_learn(more: list[str], left: bool) -> None:
    engine = Engine([g for g in shipped() if g.id == "mlperf"], load_catalogue())
    log = "".join(f"{line}\n" for line in [*mllog(20), *more]).encode()
    body, _ = engine.finish(engine.scan([log]))
    assert may_be_another(engine, body, detect(engine, body)) is left


def test_learned_lines_without_a_loss_do_not_stand_before_a_benchmarks_steps() -> None:
    noise = [f"loading shard {n} of the data" for n in range(9)]
    derivation = derived_of([*noise, *mllog(40)])
    assert derivation.primary is not None
    summary = derivation.summaries[derivation.primary]
    assert (summary.record_count, summary.metrics["loss"].first) == (40, 2.999)
