"""Logs as people's own training scripts print them, each with its truth: one production per form of a record.

``script(seed, number, count)`` returns one of ``count`` logs. Each production of ``FORMS`` has an equal share of them, and the
logs of ``PLAIN_FORMS`` have an equal share of ``TRAITS`` besides: tensors, rates with units, lines wrapped at 80 characters,
evaluations before the first record, learning rate and validation on lines of their own, folds, another launch, a resumed run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from benchmarks.generators.own_style import STEP_WORDS, UNKNOWN_WORDS, Cell, Style, bar, clock

Reading = dict[str, float | bool | None]
"""Judged field → its value; fields of ``FIELDS`` that are absent are not judged."""
FIELDS = ("has_steps", "first", "last", "record_count", "loss_first", "loss_last", "loss_min")
TRAITS = ("tensors", "rates", "hard wrap", "evaluations first", "own lines", "folds", "relaunch", "resume")


@dataclass(frozen=True)
class Script:
    """One log: its form, its trait (or ""), its text, what counts in it, and its readings.

    A log has several readings if a careful human could read it in more than one way: a receipt must equal one of them.
    """

    form: str
    trait: str
    text: str
    counter: str
    readings: list[Reading]


@dataclass(frozen=True)
class Mark:
    """Where a record stands: epoch, batch, the step that both make (None if the log does not tell), and the part done."""

    epoch: int
    batch: int
    step: int | None
    share: float


@dataclass
class Form:
    """How a script prints its records.

    ``show`` returns the lines of a record. ``loss`` says what is judged: ``total`` its value, ``either`` its value or null,
    ``none`` that it is null, ``open`` nothing. ``close`` returns lines behind each epoch. ``alone``: nothing is printed between
    the records.
    """

    counter: str
    marks: list[Mark]
    show: Callable[[Mark, str], list[str]]
    loss: str = "total"
    close: Callable[[int], list[str]] = field(default=lambda epoch: [])
    alone: bool = False


def epochs(style: Style, least: int = 14, most: int = 60, strides: Sequence[int] = (1,)) -> list[Mark]:
    """Return the marks of a script with one counter."""
    count, stride = style.rng.randint(least, most), style.rng.choice(strides)
    start = style.rng.choice([0, 1]) if stride == 1 else style.rng.choice([0, stride])
    return [Mark(start + stride * i, 0, start + stride * i, (i + 1) / count) for i in range(count)]


def batches(style: Style, told: bool = True) -> tuple[list[Mark], int, int]:
    """Return the marks of epochs with batches, the number of batches, and of epochs; ``told``: the log prints the former."""
    rng = style.rng
    total, number = rng.choice([40, 98, 118, 469, 938]), rng.randint(3, 7)
    stride = max(1, total // rng.choice([4, 5, 8]))
    inside = [*range(0, total, stride)] if rng.random() < 0.5 else [*range(stride, total + 1, stride)]
    start = rng.choice([0, 1])
    marks = [(e, b, e * total + b) for e in range(number) for b in inside]
    made = [Mark(start + e, b, s if told else None, (i + 1) / len(marks)) for i, (e, b, s) in enumerate(marks)]
    return made, total, number


# ------------------------------------------------------------ one line or a few per record


def rows(style: Style, word: str, lead: Callable[[Mark], str]) -> Callable[[Mark, str], list[str]]:
    """Return how a script prints a record in one line behind its counter ``lead``, with the loss under ``word``."""
    return lambda mark, loss: [style.row(lead(mark), [(word, loss)], mark.share)]


def unknown_counter(style: Style) -> Form:
    """Counters in words that no vocabulary lists."""
    rng = style.rng
    word, marks = rng.choice(UNKNOWN_WORDS), epochs(style, strides=(1, 1, 1, 5, 100))
    count = marks[-1].epoch
    form = rng.choice(
        ["{w} {n}", "{w} {n}", "{w} #{n}", "{w} {n}/{t}", "{w}({n})", "[{w} {n}]", "{w}: {n}", "{w}={n}", "第{n}轮"]
    )
    show = rows(style, style.loss_word, lambda mark: form.format(w=word, n=mark.epoch, t=count))
    return Form("other", marks, show)


def glued_counter(style: Style) -> Form:
    """Counters glued to their words."""
    rng = style.rng
    form = rng.choice(
        ["epoch{e}; batch{b}", "E{e} B{b}", "Epo {e}", "ep{e}", "e{e:03d}/b{b:04d}", "step{e}", "it{e}", "Epoch{e}", "EP{e:02d}"]
    )
    marks = batches(style, told=False)[0] if "{b" in form else epochs(style)
    show = rows(style, style.loss_word, lambda mark: form.format(e=mark.epoch, b=mark.batch))
    return Form("epoch_batch" if "{b" in form else "epoch", marks, show)


def brackets(style: Style) -> Form:
    """Counters in brackets, with and without words and totals."""
    form = style.rng.choice(
        [
            "[ ({e} )",
            "[Epoch {e}/{E}][ {b}:{N}]",
            "[{e}/{E}][{b}/{N}]",
            "[{e}, {b:5d}]",
            "({e}|{b}/{N})",
            "<epoch:{e:3d}>",
            "[{e:4d}]",
            "Epoch:[{e}/{E}]({b}/{N})",
            "{{{e}}}",
            "Epoch [{e}] [{b}/{N}]",
            "[Ep {e} | {b} / {N}]",
        ]
    )
    marks, total, number = batches(style, told="{N}" in form)
    if "{b" not in form:
        marks, number = epochs(style), 99
    show = rows(style, style.loss_word, lambda mark: form.format(e=mark.epoch, b=mark.batch, N=total, E=number + 20))
    return Form("epoch_batch" if "{b" in form else "epoch", marks, show)


def leading_counter(style: Style) -> Form:
    """The counter is the first thing of the line and has no word, or its word behind it."""
    rng = style.rng
    form = rng.choice(
        [
            "{e}-epoch ({b}/{N})",
            "{e}.{b}...",
            "{e}",
            "{e:05d}",
            "{e})",
            "#{e}",
            "{e}th epoch",
            "{e} epoch",
            "{e}/{E}",
            "{e}. epoch",
        ]
    )
    marks, total, number = batches(style, told="{N}" in form)
    if "{b}" not in form:
        marks = epochs(style)
        number = marks[-1].epoch
    word = rng.choice(["logprob", "nll"]) if "..." in form else style.loss_word
    show = rows(style, word, lambda mark: form.format(e=mark.epoch, b=mark.batch, N=total, E=number))
    return Form("epoch_batch" if "{b}" in form else "epoch", marks, show, loss="either" if "..." in form else "total")


def epoch_batch(style: Style) -> Form:
    """Epoch and batch with their totals, or a global step, under the usual words; summaries of epochs between."""
    rng = style.rng
    kind = rng.choice(
        [
            "Epoch [{e}/{E}], {w} [{b}/{N}]",
            "{p} {e}/{E} {w} {b}/{N}",
            "{p}: {e:03d}/{E:03d} | {w} {b:04d}/{N:04d}",
            "{p} {e} {w} {s}",
        ]
    )
    marks, total, number = batches(style)
    word = rng.choice(STEP_WORDS)
    offset = number + marks[0].epoch - 1
    show = rows(
        style,
        style.loss_word,
        lambda mark: kind.format(e=mark.epoch, E=offset, b=mark.batch, N=total, s=mark.step, w=word, p=style.epoch_word),
    )
    mean = rng.uniform(0.5, 1.5)
    close = rng.choice(
        [
            lambda epoch: [f"==== Epoch {epoch} done, mean loss {mean / (epoch + 1):.4f}, {style.seconds * 9:.1f}s ===="],
            lambda epoch: [f"epoch {epoch} took {style.seconds * 9:.2f} s"],
            lambda epoch: [],
        ]
    )
    return Form("epoch_batch", marks, show, close=close)


def two_lines(style: Style) -> Form:
    """A record over two lines: the counter above, the figures below."""
    rng, marks = style.rng, epochs(style)
    total = marks[-1].epoch
    head = rng.choice(
        ["{p} {e}/{t}", "{p} {e}", "----- {e} -----", "{p}: {e}", "== {p} {e} of {t} ==", "{p} {e} lr 0.001", "-----{e}------"]
    )
    indent = rng.choice(["", "    ", "\t", "  - "])
    below = rng.choice(["", "Train ", "train: ", "[train] "])
    valid = rng.random() < 0.4

    def show(mark: Mark, loss: str) -> list[str]:
        lines = [head.format(p=style.epoch_word, e=mark.epoch, t=total)]
        lines.append(f"{indent}{below}{style.join(style.cells([(style.loss_word, loss)], mark.share))}")
        if valid:
            lines.append(
                f"{indent}{below.replace('rain', 'est') or 'val '}loss {style.show(style.start * rng.uniform(0.3, 0.8))}"
            )
        return [*lines, ""] if indent else lines

    return Form("epoch", marks, show)


def block(style: Style) -> Form:
    """A record over many lines: one row for each figure."""
    rng, marks = style.rng, epochs(style, 12, 30, (1, 1, 10, 100))
    head = rng.choice(["[{w}={e}/{t}]:", "{w}: {e}", "{w} {e} of {t}", "REPORT at {w} {e}", "*** {w} {e} ***"])
    word = rng.choice([style.epoch_word, style.step_word])
    indent, wide = rng.choice(["", "  ", "\t"]), rng.choice([0, 0, 12, 18])
    close = rng.choice([[], [""], ["-" * 30]])
    others = rng.sample(["accuracy", "grad norm", "alpha", "lr", "correct", "tokens", "temperature"], rng.randint(2, 4))
    at = rng.randint(0, len(others))

    def show(mark: Mark, loss: str) -> list[str]:
        rows = [(name, f"{rng.uniform(0.1, 0.9):.3f}") for name in others]
        rows.insert(at, (style.loss_word, loss))
        if style.trait == "rates":
            rows.append(("speed", style.rated()))
        lines = [head.format(w=word, e=mark.epoch, t=marks[-1].epoch)]
        return [
            *lines,
            *(f"{indent}{name:<{wide}}{style.link if style.link.strip() else ': '}{value}" for name, value in rows),
            *close,
        ]

    return Form("epoch", marks, show)


def bare_pair(style: Style) -> Form:
    """Training and validation side by side without the word loss."""
    rng, marks = style.rng, epochs(style)
    form = rng.choice(
        [
            "epoch {e:02d} train {a} val {b}",
            "{e:3d}  train {a}  valid {b}",
            "ep {e} trn={a} dev={b}",
            "{e:02d} tr: {a} va: {b}",
            "epoch {e}: train/val {a}/{b}",
            "epoch {e}  train: {a}  test: {b}",
            "Epoch {e} | Training {a} | Validation {b}",
            "epoch {e} train {a} val {b} best {c}",
        ]
    )
    kept = [1e9]

    def show(mark: Mark, loss: str) -> list[str]:
        value = float(style.start) * (0.25 + rng.uniform(0.6, 0.7) * (1 - mark.share))
        kept[0] = min(kept[0], value)
        others = style.cells([], mark.share) if style.trait in ("hard wrap", "rates") else []
        line = form.format(e=mark.epoch, a=loss, b=style.show(value), c=style.show(kept[0]))
        return [style.mark + style.gap.join([line, *([style.join(others)] if others else [])]) + style.tail]

    return Form("epoch", marks, show)


def running_average(style: Style) -> Form:
    """Values with their running average in brackets behind them."""
    rng = style.rng
    form = rng.choice(
        [
            "Epoch: [{e}][{b}/{N}]",
            "Epoch: [{e}][{b:4d}/{N}]",
            "Train [{e}][{b}/{N}]",
            "ep {e} it {b}/{N}",
            "({e}) {b} of {N}",
            "Iter {s}",
        ]
    )
    marks, total, _ = batches(style)
    gap, link = rng.choice(["\t", "  ", " | ", ", "]), rng.choice([" ", ": ", "="])
    names = rng.choice([("Time", "Data"), ("batch_time", "data_time"), ("time", "data"), ("Time", "")])
    loss_too = rng.random() < 0.6
    sums = [0.0, 0]

    def pair(value: float, mean: float) -> str:
        return f"{value:.3f} ({mean:.3f})"

    def show(mark: Mark, loss: str) -> list[str]:
        sums[0], sums[1] = sums[0] + style.value(loss), sums[1] + 1
        cells = [(name, pair(rng.uniform(0.4, 0.8), rng.uniform(0.55, 0.6))) for name in names if name]
        cells.append(
            ("Loss" if names[0] == "Time" else "loss", f"{loss} ({style.show(sums[0] / sums[1])})" if loss_too else loss)
        )
        cells.append(("Prec@1", pair(rng.uniform(30, 90), 60.0)))
        if style.trait == "rates":
            cells.insert(rng.choice([0]) if style.rate_first else len(cells), ("", style.rated()))
        shown = form.format(e=mark.epoch, b=mark.batch, N=total, s=mark.step)
        return [gap.join([shown, *(f"{name}{link}{text}" if name else text for name, text in cells)])]

    return Form("epoch_batch", marks, show)


# ------------------------------------------------------------ losses without total


def gan(style: Style) -> Form:
    """A GAN: two or more named losses and no total."""
    rng = style.rng
    names = rng.choice(
        [
            ("Loss_D", "Loss_G", "D(x)"),
            ("D loss", "G loss"),
            ("d_loss", "g_loss"),
            ("d_A_loss", "g_A_loss", "g_A_cyc_loss", "d_B_loss", "g_B_loss"),
            ("gen", "disc"),
            ("errD", "errG"),
            ("loss_G_GAN", "loss_G_L1", "loss_D_real", "loss_D_fake"),
            ("critic loss", "generator loss", "gp"),
        ]
    )
    form = rng.choice(
        [
            "[{e}/{E}][{b}/{N}]",
            "[Epoch {e}/{E}] [Batch {b}/{N}]",
            "epoch{e}; batch{b}",
            "Iter {s}",
            "epoch {e}, step {b}/{N}",
            "{s}",
        ]
    )
    marks, total, number = batches(style, told="{N}" in form or "{s}" in form)
    boxed = "[Epoch" in form

    def show(mark: Mark, loss: str) -> list[str]:
        cells = [(name, style.printed(style.show(rng.uniform(0.2, 0.9) * (2.4 - mark.share)))) for name in names]
        shown = form.format(e=mark.epoch, b=mark.batch, E=number + 10, N=total, s=mark.step)
        if boxed:
            rate = [f"[{style.rated()}]"] if style.trait == "rates" else []
            return [" ".join([shown, *(f"[{name}: {value}]" for name, value in cells), *rate])]
        return [style.row(shown, cells, mark.share)]

    return Form("epoch_batch", marks, show, loss="none")


def reinforcement(style: Style) -> Form:
    """Reinforcement learning: returns and named losses, or one loss."""
    rng, marks = style.rng, epochs(style, 15, 60, (1, 1, 1, 10, 2048))
    names = rng.choice(
        [
            ("policy_loss", "value_loss", "entropy"),
            ("reward", "avg reward"),
            ("Score", "Average Score"),
            ("actor loss", "critic loss", "alpha"),
            ("mean_reward", "policy loss", "value loss", "entropy", "approx_kl"),
            ("return", "eps"),
            ("reward", "loss"),
            ("loss", "epsilon", "Q_max"),
        ]
    )
    word = rng.choice(["Episode", "episode", "Update", "update", "Timestep", "timesteps", "Rollout", "Iteration", "ep", "game"])
    values = iter(style.losses(len(marks) * 8))

    def show(mark: Mark, loss: str) -> list[str]:
        cells: list[Cell] = []
        for name in names:
            if name == "loss":
                value = loss
            elif name in ("policy_loss", "policy loss", "actor loss"):
                value = style.printed(f"{rng.uniform(-0.05, 0.05):.4f}")
            elif "loss" in name:
                value = style.printed(next(values))
            elif name in ("entropy", "approx_kl", "alpha", "eps", "epsilon"):
                value = f"{1.2 - mark.share + rng.uniform(0, 0.05):.3f}"
            else:
                value = f"{200 * mark.share + rng.uniform(-20, 20):.1f}"
            cells.append((name, value))
        return [style.row(f"{word} {mark.epoch}", cells, mark.share)]

    return Form("other", marks, show, loss="total" if "loss" in names else "none")


def physics(style: Style) -> Form:
    """A network trained on equations: residual, boundary and initial losses, with or without a total."""
    rng, marks = style.rng, epochs(style, 15, 60, (1, 100, 500, 1000))
    total = rng.choice(["", "", "", "total", "Loss", "total_loss"])
    names = rng.choice(
        [
            ("loss_pde", "loss_bc", "loss_ic"),
            ("PDE", "BC", "IC"),
            ("Residual loss", "Boundary loss"),
            ("L_f", "L_b", "L_0"),
            ("mse_u", "mse_f"),
            ("loss_res", "loss_bcs", "loss_ics", "loss_data"),
        ]
    )
    word = rng.choice(["It", "Iter", "Epoch", "iter", "Step", "Adam iter", "LBFGS iter", "epoch"])
    shares = [rng.uniform(0.2, 1) for _ in names]

    def show(mark: Mark, loss: str) -> list[str]:
        whole = style.value(loss) / sum(shares)
        cells = [(name, style.printed(style.show(whole * share))) for name, share in zip(names, shares, strict=True)]
        if total:
            cells.insert(0, (total, loss))
        return [style.row(f"{word} {mark.epoch}", cells, mark.share)]

    return Form("step", marks, show, loss="total" if total else "none")


def scores(style: Style) -> Form:
    """Accuracies, error rates and scores, and no figure that is called a loss."""
    rng, marks = style.rng, epochs(style, 15, 50, (1, 1, 10, 500))
    form = rng.choice(
        [
            "Score at iteration {e} is {a}",
            "epoch {e}: CER {c}% WER {d}%",
            "Epoch {e} train acc {p} test acc {q}",
            "iteration {e} top1 {c} top5 {d}",
            "Iter {e}, accuracy: {p}, F1: {q}",
            "epoch {e} | mIoU {p} | pixel acc {q}",
            "Epoch {e} - perplexity {d}",
        ]
    )

    def show(mark: Mark, loss: str) -> list[str]:
        better = 0.95 - 0.6 * (1 - mark.share) ** 2 + rng.uniform(-0.02, 0.02)
        figures = {
            "p": f"{better:.4f}",
            "q": f"{better - 0.05:.4f}",
            "c": f"{100 * (1 - better):.2f}",
            "d": f"{130 * (1.1 - better):.2f}",
        }
        return [style.mark + form.format(e=mark.epoch, a=loss, **figures) + style.tail]

    return Form("epoch", marks, show, loss="either" if "Score" in form else "none")


def unnamed(style: Style) -> Form:
    """Values without names: lists and columns behind a named counter."""
    rng = style.rng
    form = rng.choice(
        [
            "Epoch {e}: [{a}, {b}]",
            "epoch {e} {a} {b}",
            "iter {e} {a}",
            "Epoch {e} ({a}, {b}, {c})",
            "step {e}: {a} {b} {c}",
            "epoch={e} {a}",
        ]
    )
    marks = epochs(style, strides=(1, 1, 10))

    def show(mark: Mark, loss: str) -> list[str]:
        others = {
            "b": f"{0.5 + 0.4 * mark.share + rng.uniform(-0.02, 0.02):.4f}",
            "c": f"{style.seconds * rng.uniform(0.9, 1.1):.2f}",
        }
        return [style.mark + form.format(e=mark.epoch, a=loss, **others)]

    return Form("epoch", marks, show, loss="open")


def table(style: Style) -> Form:
    """A table under a header, or rows with arrays in or between them."""
    rng, marks = style.rng, epochs(style)
    kind = rng.choice(["plain", "pipes", "commas", "array", "between", "numpy"])
    counter = rng.choice(["epoch", "Epoch", "iter", "step"])
    names = [counter, rng.choice(["train_loss", "loss", "train loss", "trn_loss"]), rng.choice(["val_loss", "valid_loss"]), "acc"]
    if kind in ("plain", "array"):
        names = [name.replace(" ", "_") for name in names]
    again = rng.choice([0, 0, 10])
    gap = {"pipes": " | ", "commas": ","}.get(kind, "  ")

    def array() -> str:
        return "[" + " ".join(f"{rng.uniform(0.4, 0.99):.4f}" for _ in range(4)) + "]"

    def header() -> list[str]:
        if kind in ("between", "numpy"):
            return []
        line = gap.join(
            f"{name:>10}" if kind != "commas" else name for name in [*names, *(["per_class"] if kind == "array" else [])]
        )
        return [line, "-" * len(line)] if kind == "pipes" else [line]

    def show(mark: Mark, loss: str) -> list[str]:
        done = round(mark.share * len(marks)) - 1
        cells = [str(mark.epoch), loss, style.show(style.start * (0.3 + 0.6 * (1 - mark.share))), f"{0.5 + 0.4 * mark.share:.4f}"]
        top = header() if done == 0 or (again and done % again == 0) else []
        if kind == "between":
            return [style.row(f"{counter} {mark.epoch}", [(style.loss_word, loss)], mark.share), f"per class acc: {array()}"]
        if kind == "numpy":
            rows = [f"{start}{array()}{end}" for start, end in (("[", ""), (" ", ""), (" ", "]"))]
            return [style.row(f"{counter} {mark.epoch}", [(style.loss_word, loss)], mark.share), "confusion:", *rows]
        line = gap.join(f"{cell:>10}" if kind != "commas" else cell for cell in cells)
        return [*top, f"{line}  {array()}" if kind == "array" else line]

    return Form("epoch", marks, show)


def several_on_a_line(style: Style) -> Form:
    """Several epochs on one line, as print without a line end leaves them."""
    rng, marks = style.rng, epochs(style)
    gap, each = rng.choice(["  ", " | ", "; ", " -> ", "\t"]), rng.choice([2, 3, 4, 5, 10, 1000])
    form = rng.choice(
        ["Epoch {e} loss: {a}", "[{e}] loss={a}", "ep {e}: loss {a} acc {b}", "epoch {e}, train loss {a}", "iter {e} loss {a}"]
    )
    held: list[str] = []

    def show(mark: Mark, loss: str) -> list[str]:
        held.append(form.format(e=mark.epoch, a=loss, b=f"{0.5 + 0.4 * mark.share:.3f}"))
        if len(held) < each and mark is not marks[-1]:
            return []
        line = gap.join(held)
        held.clear()
        return [line]

    return Form("epoch", marks, show, alone=True)


# ------------------------------------------------------------ bars


@dataclass
class Bars:
    """Bars of one log: what each drawing says, and the redraws of each epoch that are kept in the log."""

    style: Style
    size: int
    kept: list[int]
    fill: str
    turn: str
    twice: bool

    def joined(self, frames: list[str]) -> str:
        """Return the drawings of one bar as the log keeps them; some scripts draw the last one twice."""
        return self.turn.join([*frames, *(frames[-1:] if self.twice else [])])

    def draw(self, name: str, at: int, total: int, postfix: str = "") -> str:
        """Return one drawing of a bar at ``at`` of ``total``."""
        speed = self.style.rng.uniform(3, 20)
        body = f"{int(100 * at / total):3d}%{f'|{bar(self.fill, at / total)}|' if self.fill else ''} {at}/{total}"
        left = f"{clock(at / speed)}<{clock((total - at) / speed) if at else '?'}"
        rate = f"{speed:5.2f}it/s" if at else "?it/s"
        return (
            f"{name}{': ' if name and not name.endswith(':') else ''}{body} [{left}, {rate}{', ' + postfix if postfix else ''}]"
        )


def bars(style: Style) -> Bars:
    """Draw the manner of a log's bars."""
    rng = style.rng
    size = rng.choice([20, 25, 40, 96])
    many = rng.random() < 0.5
    kept = [*range(0, size, max(1, size // rng.randint(3, 6))), size] if many else [0, size]
    return Bars(style, size, kept, rng.choice(["█", "█", "█", "#", ""]), rng.choice(["\r", "\r", "\n"]), rng.random() < 0.2)


def readings_of_bars(losses: list[list[str]], count: int, inside: bool = True) -> list[Reading]:
    """Return the readings of bars with losses: one record per epoch by its last drawing, or one per drawing.

    ``losses`` has the losses of each epoch's drawings, in order. First and last step are not judged.
    """
    final = [float(epoch[-1]) for epoch in losses]
    every = [float(value) for epoch in losses for value in epoch]
    return [
        {
            "has_steps": True,
            "record_count": len(values),
            "loss_first": values[0],
            "loss_last": values[-1],
            "loss_min": min(values),
        }
        for values in ([final, every] if inside and len(every) > len(final) else [final])
    ]


def drawn(style: Style, epochs_count: int, drawings: int) -> list[list[str]]:
    """Return the losses of each drawing of each epoch."""
    values = style.losses(epochs_count * drawings)
    return [values[i * drawings : (i + 1) * drawings] for i in range(epochs_count)]


def postfix_bar(style: Style) -> Script:
    """The figures stand before the bar, as its description."""
    rng, plan = style.rng, bars(style)
    count, start = rng.randint(6, 15), rng.choice([0, 1])
    lead = rng.choice(["", "Epoch {e} ", "epoch {e}/{E} ", "[{e}] "])
    word = rng.choice(["loss: ", "loss=", "Loss ", "train loss: "])
    losses, lines = drawn(style, count, len(plan.kept) - 1), style.head()
    for epoch in range(count):
        if not lead:
            lines.append(f"Epoch {epoch + start}/{count + start - 1}")
        name = lead.format(e=epoch + start, E=count + start - 1)
        frames = [plan.draw(name.strip(), 0, plan.size)]
        frames += [
            plan.draw(f"{name}{word}{loss}, acc: {rng.uniform(0.4, 0.9):.3f}", at, plan.size)
            for at, loss in zip(plan.kept[1:], losses[epoch], strict=True)
        ]
        lines.append(plan.joined(frames))
    return Script("", "", "\n".join([*lines, *style.foot()]) + "\n", "epoch", readings_of_bars(losses, count))


def equals_bar(style: Style) -> Script:
    """Growing bars drawn with ``=``, redrawn behind a carriage return, or a line each."""
    rng, plan = style.rng, bars(style)
    count, start = rng.randint(6, 15), rng.choice([0, 1])
    width, turn = rng.choice([20, 30]), rng.choice(["\r", "\r", "\n"])
    form = rng.choice(
        [
            "{a}/{n} [{bar}] - loss: {l}",
            "[{bar}] {p}% loss {l}",
            "Progress: [{bar}] {a}/{n}, loss = {l}",
            "[{bar}] Step {a}/{n} | Loss: {l} | acc {c}",
            "{a:4d}/{n} [{bar}] - ETA: {t} - loss: {l} - acc: {c}",
        ]
    )
    fill, head, empty = rng.choice([("=", ">", "."), ("=", ">", " "), ("=", "=", "-")])
    losses, lines = drawn(style, count, len(plan.kept) - 1), style.head()
    for epoch in range(count):
        lines.append(f"Epoch {epoch + start}/{count + start - 1}")
        frames = []
        for at, loss in zip(plan.kept[1:], losses[epoch], strict=True):
            full = width * at // plan.size
            shape = fill * full if full == width else fill * max(0, full - 1) + head
            frames.append(
                form.format(
                    a=at,
                    n=plan.size,
                    bar=shape.ljust(width, empty),
                    p=100 * at // plan.size,
                    l=loss,
                    c=f"{rng.uniform(0.4, 0.9):.3f}",
                    t=f"{plan.size - at}s",
                )
            )
        lines.append(turn.join(frames))
    return Script("", "", "\n".join([*lines, *style.foot()]) + "\n", "epoch", readings_of_bars(losses, count))


def nested_bars(style: Style) -> Script:
    """A bar of epochs above a bar of batches."""
    rng, plan = style.rng, bars(style)
    count = rng.randint(6, 15)
    outer, inner = rng.choice(
        [("Epochs", "Batches"), ("Epoch", "  train"), ("Training", "step"), ("", ""), ("Overall", "Epoch {e}")]
    )
    within = rng.random() < 0.6
    up = rng.choice(["\x1b[A", "\r", "\n"])
    losses, lines = drawn(style, count, len(plan.kept) - 1), style.head()
    word, last = rng.choice(["loss=", "train_loss=", "Loss="]), ""
    for epoch in range(count):
        lines.append(plan.draw(outer, epoch, count, last))
        frames = [
            plan.draw(inner.format(e=epoch), at, plan.size, word + loss if within else "")
            for at, loss in zip(plan.kept[1:], losses[epoch], strict=True)
        ]
        lines.append(plan.joined(frames) + ("" if up == "\n" else up))
        last = "" if within else word + losses[epoch][-1]
    lines.append(plan.draw(outer, count, count, last))
    text = "\n".join([*lines, *style.foot()]) + "\n"
    return Script("", "", text, "epoch", readings_of_bars(losses, count, inside=within))


def fold_bars(style: Style) -> Script:
    """Folds of a cross-validation in the bars' names; the last fold is the run."""
    rng, plan = style.rng, bars(style)
    count, folds, start = rng.randint(5, 12), rng.randint(3, 5), rng.choice([0, 1])
    form = rng.choice(
        ["Fold {f} Epoch {e}/{E}", "[fold {f}/{F}] epoch {e}", "Fold {f} | Epoch {e}", "fold{f} ep{e}", "CV {f}, Epoch {e}/{E}"]
    )
    lines, losses = style.head(), list[list[str]]()
    valid = rng.random() < 0.5
    for fold in range(folds):
        losses = drawn(style, count, len(plan.kept) - 1)
        for epoch in range(count):
            name = form.format(f=fold + start, F=folds, e=epoch + 1, E=count)
            frames = [plan.draw(name, 0, plan.size)]
            frames += [
                plan.draw(name, at, plan.size, f"loss={loss}") for at, loss in zip(plan.kept[1:], losses[epoch], strict=True)
            ]
            lines.append(plan.joined(frames))
        if valid:
            lines.append(f"Fold {fold + start} validation accuracy: {rng.uniform(0.6, 0.9):.4f}")
    return Script("", "", "\n".join([*lines, *style.foot()]) + "\n", "epoch", readings_of_bars(losses, count))


def beside_bar(style: Style) -> Script:
    """Learning rate or validation on lines of their own beside bars with the loss."""
    rng, plan = style.rng, bars(style)
    count, start = rng.randint(6, 15), rng.choice([0, 1])
    losses, lines = drawn(style, count, len(plan.kept) - 1), style.head()
    rate = rng.choice(["Learning rate: {}", "lr = {}", "Current LR: [{}]", ""])
    test = rng.choice(
        ["Val loss: {} acc: {}", "validation: loss={} acc={}", "Test: {} / {}", ""] if rate else ["Val loss: {} acc: {}"]
    )
    low, glued = rng.uniform(0.7, 1.2), rng.random() < 0.25
    for epoch in range(count):
        lines += [rate.format(f"{1e-3 * 0.9**epoch:.6f}")] if rate else []
        name = f"Epoch {epoch + start}"
        frames = [plan.draw(name, 0, plan.size)]
        frames += [plan.draw(name, at, plan.size, f"loss={loss}") for at, loss in zip(plan.kept[1:], losses[epoch], strict=True)]
        lines.append(plan.joined(frames))
        if test:
            value = style.show(float(losses[epoch][-1]) * low * rng.uniform(0.9, 1.1))
            shown = test.format(value, f"{rng.uniform(0.5, 0.9):.4f}")
            lines = [*lines[:-1], lines[-1] + shown] if glued else [*lines, shown]
    return Script("", "", "\n".join([*lines, *style.foot()]) + "\n", "epoch", readings_of_bars(losses, count))


def glued_bar(style: Style) -> Script:
    """A record glued behind the last drawing of a bar that has no figures."""
    rng, plan = style.rng, bars(style)
    count, start = rng.randint(8, 25), rng.choice([0, 1])
    values, lines = style.losses(count), style.head()
    word, name = style.epoch_word, rng.choice(["", "Training", "train"])
    for epoch, loss in enumerate(values):
        frames = [plan.draw(name, at, plan.size) for at in plan.kept]
        record = style.row(f"{word} {epoch + start}", [(style.loss_word, style.printed(loss))], (epoch + 1) / count)
        lines.append(plan.joined(frames) + record)
    figures = [float(value) for value in values]
    reading: Reading = {
        "has_steps": True,
        "first": start,
        "last": start + count - 1,
        "record_count": count,
        "loss_first": figures[0],
        "loss_last": figures[-1],
        "loss_min": min(figures),
    }
    return Script("", "", "\n".join([*lines, *style.foot()]) + "\n", "epoch", [reading])


def counter_in_bar(style: Style) -> Script:
    """The epoch stands only in a bar, the loss on lines without a counter between the bar's drawings."""
    rng, plan = style.rng, bars(style)
    count = rng.randint(12, 40)
    values, lines = style.losses(count), style.head()
    name = rng.choice(["", "Epochs", "Training"])
    lines.append(plan.draw(name, 0, count))
    for epoch, loss in enumerate(values):
        cells = style.cells([(style.loss_word, style.printed(loss))], (epoch + 1) / count)
        lines += [style.mark + style.join(cells) + style.tail, plan.draw(name, epoch + 1, count)]
    text = "\n".join([*lines, *style.foot()]) + "\n"
    return Script("", "", text, "epoch", readings_of_bars([[value] for value in values], count))


# ------------------------------------------------------------ traps

NOTHING: Reading = {"has_steps": None, "record_count": None, "loss_first": None, "loss_last": None, "loss_min": None}


def trap_evaluation(style: Style) -> Script:
    """No training: a test of a finished model, of its checkpoints, or a search over parameters."""
    rng, count = style.rng, style.rng.randint(10, 40)
    kind = rng.choice(["batches", "checkpoints", "grid", "search", "classes", "samples"])

    def worse() -> str:
        return f"{rng.uniform(0.2, 0.6):.4f}"

    lines = [line for line in style.head() if "train" not in line.lower()]
    lines.append(
        rng.choice([f"=> loaded checkpoint '{style.name}.pth' (epoch 90)", "Evaluating...", "Running evaluation only", ""])
    )
    if kind == "batches":
        lines += [
            f"Test: [{i * 10}/{count * 10}]\tTime 0.057 (0.0{i % 9}1)\tLoss {worse()} (0.4{i % 10}12)\tAcc@1 7{i % 10}.25"
            for i in range(count)
        ]
        lines.append(f" * Acc@1 {rng.uniform(60, 90):.3f} Acc@5 93.110")
    elif kind == "checkpoints":
        lines += [
            f"Evaluating checkpoint-{(i + 1) * 500}: eval loss {worse()}, eval acc {rng.uniform(0.6, 0.9):.4f}"
            for i in range(count)
        ]
    elif kind == "grid":
        lines += [
            "   C  gamma  mean_score  std",
            *(f"{10 ** (i % 4 - 1):4g}  {0.01 * (i + 1):5.2f}  {worse():>10}  {rng.uniform(0, 0.03):.3f}" for i in range(count)),
        ]
        lines.append("Best parameters: {'C': 10, 'gamma': 0.03}")
    elif kind == "search":
        lines += [
            f"[CV {i % 5 + 1}/5] END max_depth={i // 5 + 2};, score={worse()} total time={rng.uniform(0.2, 3):5.1f}s"
            for i in range(count)
        ]
    elif kind == "classes":
        lines += [f"class {i:3d}: precision {worse()} recall {worse()} support {rng.randint(20, 900)}" for i in range(count)]
    else:
        lines += [f"sample {i}: pred {rng.randint(0, 9)} label {rng.randint(0, 9)} test loss {worse()}" for i in range(count)]
    return Script("", "", "\n".join([*lines, f"Average test accuracy: {rng.uniform(0.6, 0.9):.4f}"]) + "\n", "none", [NOTHING])


def trap_preparation(style: Style) -> Script:
    """No training: data are prepared or downloaded, with counters, rates and bars."""
    rng, plan, count = style.rng, bars(style), style.rng.randint(10, 40)
    kind = rng.choice(["images", "download", "tokens", "recordings", "frames", "shards"])
    lines = [line for line in style.head() if "train" not in line.lower()]
    if kind == "images":
        lines += [
            f"Processed {(i + 1) * 1000}/{count * 1000} images, {rng.uniform(0.2, 0.4):.3f} s/image, skipped {rng.randint(0, 9)}"
            for i in range(count)
        ]
    elif kind == "download":
        for name in ("model.safetensors", "tokenizer.json", f"{style.data}.tar.gz", "vocab.txt")[: rng.randint(1, 4)]:
            frames = [
                f"{name}: {10 * i:3d}%|{bar('█', i / 10)}| {40 * i}M/400M [00:{i:02d}<00:09, {rng.uniform(20, 60):.1f}MB/s]"
                for i in range(11)
            ]
            lines.append(plan.joined(frames))
    elif kind == "tokens":
        lines += [
            f"step {i + 1}/{count}: tokenized {rng.randint(900, 1100)} lines in {rng.uniform(1, 2):.2f} s, {i % 4}% unknown"
            for i in range(count)
        ]
    elif kind == "recordings":
        lines += [
            f"Subject {i:02d}: {rng.randint(200, 400)} epochs, {rng.randint(0, 30)} dropped, amplitude {rng.uniform(3, 9):.3f} uV"
            for i in range(count)
        ]
    elif kind == "frames":
        lines += [
            f"Frame {i}/{count} rendered, PSNR {rng.uniform(25, 35):.2f}, {rng.uniform(0.2, 0.3):.2f} sec/frame"
            for i in range(count)
        ]
    else:
        lines += [plan.joined([plan.draw(f"Writing shard {i}", at, plan.size) for at in plan.kept]) for i in range(count)]
    return Script("", "", "\n".join([*lines, "Done. Everything is written to ./data/processed"]) + "\n", "none", [NOTHING])


PLAIN_FORMS: dict[str, Callable[[Style], Form]] = {
    "unknown counter": unknown_counter,
    "glued counter": glued_counter,
    "brackets": brackets,
    "leading counter": leading_counter,
    "epoch and batch": epoch_batch,
    "two lines": two_lines,
    "block": block,
    "bare pair": bare_pair,
    "running average": running_average,
    "GAN": gan,
    "RL": reinforcement,
    "PINN": physics,
}
OTHER_FORMS: dict[str, Callable[[Style], Form]] = {
    "scores": scores,
    "unnamed values": unnamed,
    "table": table,
    "several on a line": several_on_a_line,
}
WHOLE_FORMS: dict[str, Callable[[Style], Script]] = {
    "postfix before the bar": postfix_bar,
    "bar of =": equals_bar,
    "nested bars": nested_bars,
    "folds in the bar": fold_bars,
    "beside the bar": beside_bar,
    "glued to the bar": glued_bar,
    "counter in the bar": counter_in_bar,
    "trap: evaluation": trap_evaluation,
    "trap: preparation": trap_preparation,
}
FORMS = (*PLAIN_FORMS, *OTHER_FORMS, *WHOLE_FORMS)


# ------------------------------------------------------------ the log around records


def validation(style: Style) -> Callable[[int], list[str]]:
    """Return how this script prints an evaluation after an epoch; it may print none."""
    rng = style.rng
    form = rng.choice(
        [
            "Validation loss: {l}, accuracy: {a}",
            "  val_loss={l} val_acc={a}",
            "[val] loss {l} acc {a}",
            "Test set: Average loss: {l}, Accuracy: {a}",
            "Eval: loss {l} | acc {a}",
            "dev acc: {a}",
            "valid accuracy {a}",
            "*** test loss {l} ***",
        ]
    )
    low, high = rng.uniform(0.5, 1.4) * style.end, rng.uniform(0.6, 1.1) * style.start
    return lambda epoch: [form.format(l=style.show(low + high / (epoch + 2)), a=f"{0.9 - 0.5 / (epoch + 2):.4f}")]


def launch(
    style: Style, form: Form, marks: list[Mark], losses: list[str], evaluate: Callable[[int], list[str]] | None
) -> Iterator[str]:
    """Yield the lines of the records ``marks``, with what is printed between epochs."""
    rng = style.rng
    saves = not form.alone and rng.random() < 0.3
    every = 1 if marks and any(mark.batch for mark in marks) else rng.choice([1, 1, 5])
    own_rate = (
        rng.choice(["Learning rate: {}", "lr = {}", "LR: {}", "current lr {}", "Adjusting learning rate to {}."])
        if style.trait == "own lines"
        else ""
    )
    for index, (mark, loss) in enumerate(zip(marks, losses, strict=True)):
        new = index == 0 or marks[index - 1].epoch != mark.epoch
        if new and own_rate:
            yield own_rate.format(f"{1e-3 * (1 - 0.9 * mark.share):.6f}")
        yield from form.show(mark, style.printed(loss))
        if index + 1 == len(marks) or marks[index + 1].epoch != mark.epoch:
            yield from form.close(mark.epoch)
            if evaluate is not None and mark.epoch % every == 0:
                yield from evaluate(mark.epoch)
            if saves and rng.random() < 0.2:
                yield style.checkpoint(mark.epoch)


def judged(form: Form, marks: list[Mark], losses: list[str]) -> list[Reading]:
    """Return the readings of a run with these records."""
    reading: Reading = {"has_steps": True, "record_count": len(marks)}
    if marks[0].step is not None:
        reading |= {"first": marks[0].step, "last": marks[-1].step}
    values = [float(loss) for loss in losses]
    told: Reading = {"loss_first": values[0], "loss_last": values[-1], "loss_min": min(values)}
    null: Reading = dict.fromkeys(told)
    return {"total": [reading | told], "none": [reading | null], "either": [reading | told, reading | null], "open": [reading]}[
        form.loss
    ]


def wrapped(lines: list[str], width: int = 80) -> list[str]:
    """Return lines as a terminal of ``width`` columns breaks them, with a line end in each place."""
    return [line[at : at + width] for line in lines for at in range(0, max(1, len(line)), width)]


def written(style: Style, form: Form) -> Script:
    """Return the log of a form whose records are lines, with the trait of the style."""
    rng, trait, marks = style.rng, style.trait, form.marks
    evaluate = validation(style) if not form.alone and (trait == "own lines" or rng.random() < 0.4) else None
    head = style.head()
    losses = style.losses(len(marks))
    readings = judged(form, marks, losses)
    lines = [*head]
    if trait == "evaluations first":
        first = rng.choice(
            [
                ["Evaluating the untrained model", *validation(style)(0)],
                ["Sanity check:", "  val batch 0: loss {x} acc 0.0981", "  val batch 1: loss {x} acc 0.1038"],
                ["[val] step 0 | loss {x}", "[test] step 0 | loss {x}"],
                ["Initial test loss: {x}, accuracy: 9.80%"],
                ["Epoch 0 validation loss {x} accuracy 0.1002"],
            ]
        )
        lines += [line.replace("{x}", style.show(style.start * rng.uniform(1.0, 1.2))) for line in first]
    if trait == "folds":
        title = rng.choice(
            [
                "===== Fold {f}/{F} =====",
                "--- CV split {f} ---",
                "Fold {f}",
                "Starting fold {f} of {F}",
                "FOLD: {f}",
                "########## fold {f} ##########",
            ]
        )
        folds = rng.randint(3, 5)
        for fold in range(folds):
            losses = style.losses(len(marks))
            lines += [title.format(f=fold + 1, F=folds), *launch(style, form, marks, losses, evaluate)]
            lines += [
                rng.choice(
                    [f"Fold {fold + 1} accuracy: {rng.uniform(0.6, 0.9):.4f}", f"best acc of fold: {rng.uniform(0.6, 0.9):.4f}"]
                )
            ]
        readings = judged(form, marks, losses)
    elif trait == "relaunch":
        cut = rng.randint(len(marks) // 3, len(marks) - 2)
        lines += launch(style, form, marks[:cut], style.losses(len(marks))[:cut], evaluate)
        lines += rng.choice([["KeyboardInterrupt"], ["^C"], ["Killed"], []])
        lines += [*head, *(["Start training"] if head else ["Start training from scratch"])]
        lines += launch(style, form, marks, losses, evaluate)
    elif trait == "resume":
        cut = rng.randint(len(marks) // 3, len(marks) - 3)
        back = max(1, cut - rng.randint(0, 3))
        lines += launch(style, form, marks[:cut], [*losses[:back], *style.losses(len(marks))[back:cut]], evaluate)
        lines += rng.choice(
            [["KeyboardInterrupt"], ["Killed"], ["slurmstepd: error: *** JOB 48213 CANCELLED DUE TO TIME LIMIT ***"]]
        )
        at = marks[back - 1]
        place = f"{at.epoch}" if not any(mark.batch for mark in marks) else f"{at.epoch}, batch {at.batch}"
        lines += [
            *head,
            rng.choice([f"Resuming from checkpoint of {place}", f"=> loaded checkpoint runs/{style.name}/last.pt ({place})"]),
        ]
        lines += launch(style, form, marks[back:], losses[back:], evaluate)
        readings += judged(form, marks[back:], losses[back:])
    else:
        lines += launch(style, form, marks, losses, evaluate)
    lines = [style.stamp(part) for line in [*lines, *style.foot()] for part in line.split("\n")]
    if trait == "hard wrap":
        lines = wrapped(lines)
    end = "\r\n" if rng.random() < 0.04 else "\n"
    return Script("", "", end.join(lines) + end, form.counter, readings)


def dealt(seed: int, count: int) -> list[tuple[str, str]]:
    """Return the form and the trait of each log: equal shares, in an order drawn from ``seed``."""
    rng = Random(f"{seed} deal")
    forms = [FORMS[i % len(FORMS)] for i in range(count)]
    rng.shuffle(forms)
    plain = sum(form in PLAIN_FORMS for form in forms)
    hands = [TRAITS[i % len(TRAITS)] if i < plain * 5 // 6 else "" for i in range(plain)]
    rng.shuffle(hands)
    return [(form, hands.pop() if form in PLAIN_FORMS else "") for form in forms]


def script(seed: int, number: int, form: str, trait: str) -> Script:
    """Return log ``number`` of ``seed``, in the ``form`` and with the ``trait`` that ``dealt`` gave it."""
    style = Style(Random(f"{seed} {number}"), trait)
    if form in WHOLE_FORMS:
        made = WHOLE_FORMS[form](style)
    else:
        made = written(style, (PLAIN_FORMS.get(form) or OTHER_FORMS[form])(style))
    return Script(form, trait, made.text, made.counter, made.readings)
