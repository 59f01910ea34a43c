"""Read the records of one shape: what each column is, what counts in it, and how surely they are of training."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from receipt_cli.learn.counting import (
    ABSENT,
    EPOCHS,
    FEW,
    GLOBAL,
    Counter,
    count_by_bar,
    find_counter,
    glued_bar,
)
from receipt_cli.learn.names import (
    EPOCH,
    LOSS,
    MEAN,
    METRIC,
    PART,
    PLAIN,
    SCORE,
    SMOOTH,
    STEP,
    VALIDATION_LOSS,
    Name,
    Role,
    is_mean,
    read_names,
    read_role,
)
from receipt_cli.learn.reading import SEVERAL_COUNTS, WHOLE, Reading
from receipt_cli.learn.shapes import Shape
from receipt_cli.learn.tokens import BAR, NUMBER, RATE, Token
from receipt_cli.learn.vocabulary import Vocabulary
from receipt_cli.records.envelope import in_json_string


def without(readings: Iterable[Reading], left_out: Iterable[Reading]) -> list[Reading]:
    """Return the readings but those that are left out, each of which is known by its identity."""
    out = set(map(id, left_out))
    return [reading for reading in readings if id(reading) not in out]


def read_shape(shape: Shape, vocabulary: Vocabulary) -> Reading:
    """Return the interpretation of a shape, by its words and by the behaviour of its columns."""
    glued = glued_bar(shape)
    names = read_names(shape, vocabulary, glued)
    roles = [read_role(n, c.kind, vocabulary) for n, c in zip(names, shape.columns, strict=True)]
    roles[: glued + 1] = [None] * (glued + 1)
    for at, role in enumerate(roles):
        if role is not None and role.kind not in (STEP, EPOCH) and shape.columns[at].integer:
            roles[at] = None if shape.literals[at + 1].startswith((b"=", b":")) else role  # ``Acc = [5%=0.68``: a name
    roles = _episodes(shape, names, roles, vocabulary)
    if _counts_training(shape, names, vocabulary):
        roles[0] = Role(EPOCH)
    counter = find_counter(shape, names, roles, vocabulary)
    graded = _is_graded(shape, names, roles, vocabulary)
    metrics = _metrics(shape, names, roles, counter, vocabulary)
    if counter.mode == EPOCHS and not metrics:
        metrics = _figures(shape, names, counter, vocabulary)
    metrics = _without_led(metrics, names, vocabulary) or _values(shape, names, counter)
    if counter.mode == ABSENT and any(role.kind == LOSS for role in metrics.values()):
        counter = count_by_bar(shape) or counter
    kinds = {role.kind for role in metrics.values()}
    first = min((at for at, r in enumerate(roles) if r is not None), default=0)
    spoken = bool(names) and names[first].evaluation and LOSS not in kinds
    spoken = spoken or (counter.mode == ABSENT and bool(names) and names[0].evaluation)
    evaluation = spoken or (VALIDATION_LOSS in kinds and LOSS not in kinds)
    bar = any(c.kind in (BAR, RATE) for c in shape.columns[glued + 1 :])
    steps = [c for r, c in zip(roles, shape.columns, strict=True) if r is not None and r.kind == STEP and c.integer and c.drops]
    again = (SEVERAL_COUNTS,) if counter.mode == ABSENT and steps else ()
    doubts = (*again, *(("quoted",) if _is_quoted(shape, counter, metrics) else ()))
    rivals = _rivals(shape, names, roles, metrics, vocabulary)
    return Reading(shape, vocabulary, names, counter, metrics, evaluation, bar, glued, doubts, graded=graded, rivals=rivals)


def _without_led(metrics: dict[int, Role], names: list[Name], vocabulary: Vocabulary) -> dict[int, Role]:
    """Return the metrics but for losses behind that of an evaluation: ``evaluating batch loss: 0.19; avg_loss: 2.29``.
    They are of training if one is called so, or as that of the evaluation: ``v_loss 4.59  loss 5.36``."""
    losses = [at for at, role in metrics.items() if role.kind == LOSS]
    first = min((at for at, role in metrics.items() if role.kind == VALIDATION_LOSS), default=len(names))
    told = any(
        at < first or {*names[at].spelled} <= {*names[first].spelled} or not vocabulary.training.isdisjoint(names[at].spelled)
        for at in losses
    )
    return {at: role for at, role in metrics.items() if told or at not in losses}


def _rivals(
    shape: Shape, names: list[Name], roles: list[Role | None], metrics: dict[int, Role], vocabulary: Vocabulary
) -> tuple[str, ...]:
    """Return the labels of two columns that may equally be the loss: both name a kind of loss, or neither; () without two."""
    loss = next((at for at, role in metrics.items() if role.kind == LOSS), None)
    siblings = _siblings(shape, names, roles, loss, vocabulary) if loss is not None else []
    if loss is not None and siblings:
        return names[loss].text, names[siblings[0]].text
    chosen = loss if loss is not None and metrics[loss].rank < PLAIN else None
    for at, role in enumerate(roles if chosen is not None else ()):
        if chosen is None or role is None or role.kind != LOSS or at == chosen or role.rank >= PLAIN or _is_zero(shape, at):
            continue
        one, other = ({*shape.columns[place].numbers} for place in (chosen, at))
        kinds = {not vocabulary.kinds.isdisjoint(names[place].spelled) for place in (chosen, at)}
        if len(kinds) == 1 and one != other and "perplexity" not in {r.metric for r in metrics.values()}:
            return names[chosen].text, names[at].text
    return ()


def _is_quoted(shape: Shape, counter: Counter, metrics: dict[int, Role]) -> bool:
    """Return whether the first figure stands behind words of a string in a JSON object."""
    before = b"0".join(shape.literals[: min([*counter.places, *metrics], default=0) + 1])
    return in_json_string(before) and not before.rstrip().endswith(b'"')


def _siblings(shape: Shape, names: list[Name], roles: list[Role | None], loss: int, vocabulary: Vocabulary) -> list[int]:
    """Return the columns beside which the ``loss`` may be a part of another, as they may: it names no more than a kind.

    Beside the only loss that a name qualifies, ``Consistency Loss``, they are the others that are called losses; beside a kind
    of loss, ``cross_entropy``, two figures at least whose names say nothing: ``recon``, ``gan_D``.
    """
    words, role = {*names[loss].spelled}, roles[loss]
    if role is not None and role.rank == WHOLE:
        return _called_losses(shape, names, loss, vocabulary)
    if not words & vocabulary.one_kind or words & (vocabulary.training | {"loss"}):
        return []
    known = vocabulary.scores | vocabulary.grades | vocabulary.fit | vocabulary.foreign | vocabulary.errors
    told = [at for at, role in enumerate(roles) if role is None and at != loss and _may_be_loss(shape, names, at)]
    found = [at for at in told if names[at].sure == names[loss].sure and not known & {*names[at].spelled}]
    return found if len(found) >= FEWEST_SIBLINGS else []


FEWEST_SIBLINGS = 2
"""Figures of names that say nothing beside a kind of loss: of one it is likelier that it is another thing."""


def _called_losses(shape: Shape, names: list[Name], loss: int, vocabulary: Vocabulary) -> list[int]:
    """Return the other columns that are called losses."""
    told = [at for at, name in enumerate(names) if at != loss and "loss" in name.spelled]
    return [at for at in told if _may_be_loss(shape, names, at) and vocabulary.foreign.isdisjoint(names[at].spelled)]


def _may_be_loss(shape: Shape, names: list[Name], at: int) -> bool:
    """Return whether a column has a name and figures that move, of no evaluation and of no unit but the word ``total``."""
    name, column = names[at], shape.columns[at]
    plain = column.kind == NUMBER and column.distinct > 1 and not column.integer and not name.evaluation and name.follows is None
    return plain and bool(name.words) and name.unit in (None, "total")


def _is_zero(shape: Shape, at: int) -> bool:
    """Return whether a column is zero throughout."""
    column = shape.columns[at]
    return column.count >= FEW and not any(column.numbers)


def _counts_training(shape: Shape, names: list[Name], vocabulary: Vocabulary) -> bool:
    """True for ``Train 3, loss: 2.1``: what begins the line and counts one by one is the epoch."""
    name, column = (names[0], shape.columns[0]) if names else (None, None)
    if name is None or column is None or len(names) < 2 or name.words not in vocabulary.training or name.glued:
        return False
    each = column.kind == NUMBER and column.integer and column.stride == 1 and column.first in (0, 1)
    return (
        each and column.strides + column.drops >= column.count - 1 >= 2 and shape.literals[1].lstrip()[:1] in (b",", b":", b"|")
    )


def _episodes(shape: Shape, names: list[Name], roles: list[Role | None], vocabulary: Vocabulary) -> list[Role | None]:
    """Return the roles where ``ep`` counts episodes: beside a reward or a return, and where no step begins again with each."""
    again = any(r is not None and r.kind == STEP and c.drops for r, c in zip(roles, shape.columns, strict=True))
    if again or not any(vocabulary.rewards & set(name.spelled) for name in names):
        return roles
    as_episode = (replace(name, words="episode") if name.words == "ep" else name for name in names)
    return [
        read_role(name, column.kind, vocabulary) if role is not None and role.kind == EPOCH else role
        for name, column, role in zip(as_episode, shape.columns, roles, strict=True)
    ]


def _metrics(
    shape: Shape, names: list[Name], roles: list[Role | None], counter: Counter, vocabulary: Vocabulary
) -> dict[int, Role]:
    """Return the metrics of a shape; of two columns for one metric the surer, or neither."""
    found: dict[str, list[int]] = {}
    for at, role in enumerate(roles):
        if role is None or role.kind in (STEP, EPOCH) or at in (counter.step, counter.epoch):
            continue
        column = shape.columns[at]
        apart = (at, counter.step, counter.epoch)
        if role.kind == LOSS and column.integer and column.rises > 0.8 * (column.count - 1) > 0:
            continue  # ``loss 17 0.5049``: the number behind the name is the step
        if column.integer and not names[at].sure and shape.literals[at + 1].strip() == b":" and at + 1 < len(names):
            continue  # ``loss of batch 7: 0.5``: the number belongs to the name of the next
        if role.kind == LOSS and _is_time(shape, names, at, vocabulary):
            continue  # ``cost`` is a time where nothing says that it is a loss
        if role.kind == LOSS and _is_zero(shape, at) and _called_losses(shape, names, at, vocabulary):
            continue  # a part that is switched off
        if role.metric in _TOTALS and column.count > 1 and not column.rises:
            continue  # the tokens of a step, not those so far
        plainer = [n for i, n in enumerate(names) if i not in apart and not n.evaluation and "loss" in n.words]
        mean = role.kind == LOSS and role.rank >= MEAN
        if mean and any(role.rank >= MEAN + SMOOTH or not is_mean(n, vocabulary) for n in plainer):
            continue  # a running mean of the loss beside it
        if column.kind == NUMBER and column.values:
            found.setdefault(role.metric or f"{SCORE} {names[at].words}", []).append(at)
    chosen: dict[int, Role] = {}
    zero = any(_is_zero(shape, at) and not _called_losses(shape, names, at, vocabulary) for at in _parts(found, roles, names))
    _weigh(found, roles, names, vocabulary, counted=counter.mode != ABSENT and not zero)
    _pair_evaluation(found, roles, names, vocabulary)
    _name_gradient(found, roles, names, shape)
    fit_perplexity(found, roles, names, shape)
    for places in found.values():
        ranked = sorted(places, key=lambda at: (_rank(roles[at]), at))
        if len(ranked) == 1 or _rank(roles[ranked[0]]) < _rank(roles[ranked[1]]):
            role = roles[ranked[0]]
            assert role is not None
            chosen[ranked[0]] = role
    return dict(sorted(chosen.items()))


def _figures(shape: Shape, names: list[Name], counter: Counter, vocabulary: Vocabulary) -> dict[int, Role]:
    """Return figures of unknown names beside an epoch that counts: ``Epoch [3/100] Recon: 0.13 | KL: 39.8``, two at least.

    One suffices that is called as the training is, beside one of an evaluation: ``train=0.66, validation=0.68, test=0.68``.
    """
    found, aside = {}, vocabulary.foreign | vocabulary.timings
    for at, (name, column) in enumerate(zip(names, shape.columns, strict=True)):
        words = set(name.words.split())
        plain = column.kind == NUMBER and not column.integer and name.sure and name.text and name.unit is None
        moves = column.varies
        if plain and moves and words and not (words & aside or name.evaluation or name.several):
            found[at] = Role(PART)
    trained = any(names[at].words in vocabulary.training for at in found) and any(name.evaluation for name in names)
    return found if (len(found) > 1 or trained) and shape.count >= FEW and counter.heading is None else {}


def _values(shape: Shape, names: list[Name], counter: Counter) -> dict[int, Role]:
    """Return the first number without a name of records that name nothing but what counts: ``Epoch 12 (2.75, 0.78, 37.1)``."""
    place = counter.step if counter.step is not None else counter.epoch
    words = re.findall(rb"[A-Za-z]{2,}", b" ".join(shape.literals))
    if place is None or len(words) > 1 or not names[place].words or counter.mode not in (GLOBAL, EPOCHS) or shape.count < FEW:
        return {}
    unnamed = [at for at, (c, name) in enumerate(zip(shape.columns, names, strict=True)) if c.kind == NUMBER and not name.sure]
    moving = [at for at in unnamed if at > place and not (c := shape.columns[at]).integer and 2 * c.distinct > c.count]
    return {moving[0]: Role(PART)} if moving else {}


def leave_out_errors(readings: Sequence[Reading]) -> list[Reading]:
    """Return the readings with mean errors as figures beside the loss, where one record shows that they grade a model."""
    return [_without_errors(reading) for reading in readings] if any(r.graded for r in readings) else [*readings]


def _without_errors(reading: Reading) -> Reading:
    errors = {at for at in reading.roles if "mse" in reading.names[at].spelled}
    roles = {at: Role(PART) if at in errors and role.kind == LOSS else role for at, role in reading.roles.items()}
    return replace(reading, roles={at: r for at, r in roles.items() if at not in errors or r.kind != VALIDATION_LOSS})


def _is_graded(shape: Shape, names: list[Name], roles: list[Role | None], vocabulary: Vocabulary) -> bool:
    if not any(name.words in vocabulary.errors for name in names):
        return False
    known = vocabulary.scores | vocabulary.fit
    return any(
        role is None and name.sure and not name.evaluation and column.kind == NUMBER and not column.integer
        for role, name, column in zip(roles, names, shape.columns, strict=True)
        if name.words and not known & {*name.words.split()}
    )


def _parts(found: dict[str, list[int]], roles: list[Role | None], names: list[Name]) -> list[int]:
    """Return the columns that are called a loss with a word before it."""
    return [at for places in found.values() for at in places if _kind(roles[at]) == PART and "loss" in names[at].words.split()]


def _weigh(
    found: dict[str, list[int]], roles: list[Role | None], names: list[Name], vocabulary: Vocabulary, *, counted: bool
) -> None:
    """Take the only loss on a line that counts for the training's, and one of one kind beside others for a part of it."""
    parts = _parts(found, roles, names)
    losses = found.get("loss", [])
    one_kind = [
        at for at in losses if vocabulary.one_kind & {*names[at].spelled} and not vocabulary.training & {*names[at].spelled}
    ]
    if losses and parts and one_kind == losses:
        for at in found.pop("loss"):
            roles[at] = Role(PART)
            found[f"{SCORE} {names[at].words}"] = [at]
    elif counted and not losses and len(parts) == 1 and not vocabulary.parts & set(names[parts[0]].words.split()):
        del found[f"{SCORE} {names[parts[0]].words}"]
        roles[parts[0]] = Role(LOSS, WHOLE, "loss")
        found["loss"] = parts


def _pair_evaluation(found: dict[str, list[int]], roles: list[Role | None], names: list[Name], vocabulary: Vocabulary) -> None:
    """Take for the validation's loss what is called as the training's is: ``train_mse=0.4 val_mse=0.5``."""
    losses = found.get("loss", [])
    if len(losses) != 1 or "val_loss" in found:
        return
    spelled = {name.words for name in names}
    initial = {"v"} if sum(f"v {words}" in spelled for words in spelled) >= PAIRS else set[str]()
    plain = [word for word in names[losses[0]].words.split() if word not in vocabulary.training]
    for at, name in enumerate(names):
        words = name.words.split()
        rest = [word for word in words if word not in vocabulary.evaluation | initial]
        spoken = len(rest) < len(words) or (name.evaluation and at > losses[0])  # ``Train: loss=0.4 | Val: loss=0.5``
        free = roles[at] is None or (bool(initial) and words[0] == "v")
        if free and spoken and rest == plain and name.unit is None and not name.several:
            found.pop(f"{SCORE} {name.words}", None)
            roles[at] = Role(VALIDATION_LOSS, metric="val_loss")
            found.setdefault("val_loss", []).append(at)


def _name_gradient(found: dict[str, list[int]], roles: list[Role | None], names: list[Name], shape: Shape) -> None:
    """Take for the norm of the gradients what is called ``Grad`` beside a loss and a learning rate, if it is never negative."""
    if {"loss", "learning_rate"} <= found.keys() and "grad_norm" not in found:
        for at, (name, column) in enumerate(zip(names, shape.columns, strict=True)):
            sure = name.words == "grad" and name.sure and name.unit is None and not column.integer
            if sure and all((token.value or 0) >= 0 for token in column.values):
                roles[at] = Role(METRIC, metric="grad_norm")
                found["grad_norm"] = [at]


PAIRS = 3
"""Names of numbers that are printed once more with a ``v`` before them: that is an evaluation's."""


def _kind(role: Role | None) -> str:
    return role.kind if role is not None else ""


SECONDS = r"[ \t]*<units_of_time>(?![\w/])"
_TOTALS = ("tokens_total", "samples_total")


def _is_time(shape: Shape, names: list[Name], at: int, vocabulary: Vocabulary) -> bool:
    """True for a loss by name that a unit behind it calls a time, and for a ``cost`` that does not fall as losses do."""
    if vocabulary.pattern(SECONDS).match(shape.literals[at + 1].decode("utf-8", "replace")):
        return True
    if "cost" not in names[at].words.split():
        return False
    values = [value for value in shape.columns[at].numbers if value is not None]
    third = max(1, len(values) // 3)
    first, last = sum(values[:third]) / third, sum(values[-third:]) / third
    return len(values) > 1 and not last < first - 0.02 * abs(first)


def _rank(role: Role | None) -> int:
    return role.rank if role is not None else 1 << 30


FITS = 0.005
"""A perplexity is the power of a loss if their difference is no more than so much of it: both are rounded."""


def fit_perplexity(found: dict[str, list[int]], roles: list[Role | None], names: list[Name], shape: Shape) -> None:
    """Take for the loss the one of several on a line whose power the perplexity beside it is: ``avg loss 9.0, ppl 8103.1``."""
    powers = found.get("perplexity", [])
    losses = [
        at for at, name in enumerate(names) if "loss" in name.words and not name.evaluation and shape.columns[at].kind == NUMBER
    ]
    if len(powers) != 1 or len(losses) < 2 or not found.get("loss"):
        return
    fitting = [at for at in losses if _is_power(shape.columns[powers[0]].values, shape.columns[at].values)]
    if len(fitting) == 1 and fitting != found["loss"]:
        for at in found["loss"]:
            roles[at] = Role(PART)
            found.setdefault(f"{SCORE} {names[at].words}", []).append(at)
        roles[fitting[0]] = Role(LOSS, metric="loss")
        found["loss"] = fitting


def _is_power(powers: Sequence[Token], losses: Sequence[Token]) -> bool:
    """Return whether nearly each of ``powers`` is e to the power of the loss beside it."""
    pairs = [(p.value, x.value) for p, x in zip(powers, losses, strict=False) if p.value and x.value is not None and p.value > 0]
    close = sum(abs(math.log(power) - loss) <= FITS * max(1, abs(loss)) for power, loss in pairs)
    return len(pairs) > 0 and close >= 0.9 * len(pairs)
