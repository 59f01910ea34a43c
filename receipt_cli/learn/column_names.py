"""Name the columns of a shape: by the texts beside each, and by the names of the others."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from receipt_cli.learn.metric_names import LOSS, PART, SCORE, Name, Role, Sort, counter_of, names_alone
from receipt_cli.learn.shapes import Shape
from receipt_cli.learn.tokens import NUMBER, Token
from receipt_cli.learn.vocabulary import Vocabulary


def read_names(shape: Shape, vocabulary: Vocabulary, glued: int = -1) -> list[Name]:
    """Return the name of each column of ``shape``. What a bar that ends with column ``glued`` is of, the rest need not be."""
    sorts = tuple([Sort.of(column) for column in shape.columns])
    return _in_company(names_alone(tuple(shape.literals), sorts, vocabulary, glued), shape, vocabulary)


_LOSSES = re.compile(rb"(?<![A-Za-z_])[Ll]oss(?:es)?[ \t]*[:=]?[ \t]*[\[({]?[ \t]*[A-Za-z_]+[ \t]*[:=]?[ \t]*\Z")


def _of_losses(shape: Shape, number: int) -> bool:
    """True for a number among those that one word announces as losses: ``[Loss: box 1.5 || total 2.1]``."""
    opened = [at for at, text in enumerate(shape.literals[: number + 1]) if _LOSSES.search(text)]
    return bool(opened) and not any(b"]" in text for text in shape.literals[opened[-1] + 1 : number + 1])


def _is_sum(shape: Shape, number: int) -> bool:
    """True for a number that those behind it add up to, in every record: ``train==[2.81=1.12 + 1.69]``."""
    places = [number + 1]
    while places[-1] + 1 < len(shape.columns) and shape.literals[places[-1] + 1].strip() == b"+":
        places.append(places[-1] + 1)
    if len(places) < 2 or shape.literals[number + 1].strip() != b"=":
        return False
    columns = [[token.value for token in shape.columns[at].values] for at in (number, *places)]
    rows = [[value for value in row if value is not None] for row in zip(*columns, strict=False)]
    return bool(rows) and all(len(row) == len(columns) and abs(row[0] - sum(row[1:])) <= 1e-3 * abs(row[0]) for row in rows)


_SUMS = frozenset(["total", "all", "overall", "sum"])
_GAMES = frozenset(["episode", "episodes", "ep", "game", "games", "reward", "rewards", "score", "return", "returns"])


def _is_total(shape: Shape, names: Sequence[Name], number: int, vocabulary: Vocabulary) -> bool:
    """True for ``[epoch: 4/200, iter: 325/489] total: 1.35``: a number behind counters that is no time, no sum of rewards.

    No number beside it is called a loss of training as a whole.
    """
    column, name = shape.columns[number], names[number]
    values = [token.value for token in column.values if token.value is not None]
    rising = all(a <= b for a, b in pairwise(values))
    if column.kind != NUMBER or column.integer or name.unit or name.follows or name.evaluation or not name.sure or rising:
        return False
    words = {word for other in names for word in other.words.split()}
    counts = [other for other in names[:number] if counter_of(other.words.split() or [""], vocabulary) is not None]
    return bool(counts) and not words & _GAMES and not any(other.words in vocabulary.loss for other in names)


def _in_company(names: Sequence[Name], shape: Shape, vocabulary: Vocabulary) -> list[Name]:
    """Return the names as those beside them tell: a name printed again behind one of an evaluation is of it.

    ``Acc 0.5 Loss 2.1 | Val Acc 0.4 Loss 2.3``; ``T_loss`` and ``V_loss``; the total of several losses.
    """
    found: list[Name] = []
    initials = {name.words for name in names}
    for name in names:
        letter, _, rest = name.words.partition(" ")
        if letter in ("t", "v") and {f"t {rest}", f"v {rest}"} <= initials:  # ``T_loss``, ``V_loss``
            name = replace(name, words=f"{'train' if letter == 't' else 'val'} {rest}", evaluation=letter == "v")
        if name.words in _SUMS and (_of_losses(shape, len(found)) or _is_total(shape, names, len(found), vocabulary)):
            name = replace(name, words="total loss")
        elif name.words in vocabulary.training and not name.evaluation and _is_sum(shape, len(found)):
            name = replace(name, words=f"{name.words} loss", several=False, bracket=False)
        after = bool(found) and found[-1].evaluation and bool(name.words)
        twin = after and any(other.words == name.words and not other.evaluation for other in found)
        found.append(replace(name, evaluation=True) if twin else name)
    return found


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
