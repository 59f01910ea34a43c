"""How one own script prints: its words, marks, separators, numbers and the lines around its records, drawn once per log."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from random import Random

Cell = tuple[str, str]
"""(label, value) of one figure; a cell with an empty label is printed as its value alone."""

LOSS_WORDS = (
    "loss", "Loss", "LOSS", "train loss", "Train Loss", "train_loss", "training loss", "Training Loss", "avg loss",
    "Average loss", "mean_loss", "batch loss", "Loss (train)", "loss_train", "total loss", "Total Loss", "cost", "Verlust",
    "perte", "pérdida", "损失", "训练损失",
)  # fmt: skip
EPOCH_WORDS = ("Epoch", "epoch", "EPOCH", "Ep", "ep")
STEP_WORDS = ("step", "Step", "iter", "Iter", "iteration", "Iteration", "batch", "Batch")
UNKNOWN_WORDS = (
    "Sweep", "pass", "Cycle", "lap", "Runde", "Durchlauf", "Época", "vuelta", "эпоха", "Kimg", "gen", "Generation", "wave",
    "tick",
    "Umlauf", "Etappe", "giro", "tour", "chunk no.", "outer", "Trainingsrunde", "进度", "loop", "visit", "tranche",
)  # fmt: skip
NAMES = ("resnet18", "unet_small", "bilstm", "tiny_vit", "mlp3", "gcn2", "lstm_attn", "pointnet", "seq2seq", "convnext_t")
DATA = ("cifar10", "plant_leaves", "ecg5000", "iwslt_de", "shapes3d", "cora", "speech_cmds", "nyu_part", "retina_v2", "tox21")


def curve(rng: Random, count: int, start: float, end: float, noise: float = 0.06) -> list[float]:
    """Return ``count`` values that fall from about ``start`` to about ``end``, with noise relative to each value."""
    rate = rng.uniform(2.5, 6)
    return [
        (end + (start - end) * math.exp(-rate * index / max(1, count - 1))) * (1 + rng.uniform(-noise, noise))
        for index in range(count)
    ]


def number(rng: Random) -> Callable[[float], str]:
    """Return one of the ways in which scripts print a figure."""
    form = rng.choice([".4f", ".4f", ".4f", ".3f", ".5f", ".6f", ".8f", ".4e", ".3e", "", ""])
    return (lambda value: f"{value:{form}}") if form else repr


def bar(rng_fill: str, share: float, width: int = 10) -> str:
    """Return the drawing of a bar: ``rng_fill`` are the full mark and the marks of its eighths."""
    eighths = int(share * width * 8)
    full, rest = divmod(eighths, 8)
    part = " ▏▎▍▌▋▊▉"[rest] if rng_fill == "█" and rest else ""
    return (rng_fill * full + part).ljust(width)


def clock(seconds: float) -> str:
    """Return a duration as progress bars print it."""
    minutes, second = divmod(int(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute:02d}:{second:02d}"


class Style:
    """One script's manner of printing; everything is drawn from ``rng`` when the log begins.

    ``trait`` is the additional form of the log, such as ``tensors``; only those that change a record's line matter here.
    """

    def __init__(self, rng: Random, trait: str = "") -> None:
        self.rng, self.trait = rng, trait
        self.link = rng.choice([": ", ": ", ": ", "=", "=", " ", ":", " = ", " is "])
        self.gap = rng.choice([", ", ", ", " | ", " | ", "  ", "\t", " - ", "; ", " / ", " || "])
        self.mark = rng.choice(
            ["", "", "", "", "", "", ">> ", "=> ", "* ", "--- ", "# ", "  ", "\t", "✅ ", "==> ", "[INFO] ", "• "]
        )
        self.after = rng.choice([": ", ": ", " ", ", ", " | ", " - ", "\t", "; ", " >> ", " -> ", " || "])
        self.tail = rng.choice(["", "", "", "", "", " ", ".", " ...", " |", " ;"])
        if self.link == " " and self.gap == "  ":
            self.gap = ", "
        self.show = number(rng)
        self.loss_word = rng.choice(LOSS_WORDS)
        self.epoch_word, self.step_word = rng.choice(EPOCH_WORDS), rng.choice(STEP_WORDS)
        self.start, self.end = rng.choice([(2.3, 0.2), (0.7, 0.05), (9.2, 2.1), (1.1, 0.4), (46.0, 7.5), (0.31, 0.012)])
        self.seconds = rng.uniform(0.08, 40)
        self.name, self.data = rng.choice(NAMES), rng.choice(DATA)
        self.when = rng.uniform(0, 86400 * 300)
        self.logger = rng.choice(["plain", "level", "brackets", "glog", "root", "short"]) if rng.random() < 0.25 else ""
        wanted = rng.randint(4, 6) if trait == "hard wrap" else rng.choice([0, 0, 1, 1, 2, 3])
        self.extras = rng.sample(["acc", "lr", "time", "norm", "mem", "f1", "eta"], wanted)
        if trait == "own lines" and "lr" in self.extras:
            self.extras.remove("lr")
        self.labels = {
            "acc": rng.choice(["acc", "Acc", "accuracy", "train acc", "Accuracy"]),
            "lr": rng.choice(["lr", "LR", "learning rate", "Learning Rate"]),
            "time": rng.choice(["time", "Time", "elapsed", "t", "took"]),
            "norm": rng.choice(["grad_norm", "gnorm", "grad norm"]),
            "mem": rng.choice(["mem", "GPU mem", "max mem"]),
            "f1": rng.choice(["F1", "f1", "IoU", "dice"]),
            "eta": rng.choice(["eta", "ETA", "remaining"]),
        }
        self.order = rng.random()
        self.percent = rng.random() < 0.4
        self.rate = rng.choice(["sec/batch", "s/batch", "ins/s", "img/sec", "it/s", "ms/step", "samples/s", "s/it", "words/sec"])
        self.rate_first = rng.random() < 0.3
        self.tensor = rng.choice([
            "tensor({}, device='cuda:0', grad_fn=<NllLossBackward0>)", "tensor({}, grad_fn=<MeanBackward0>)",
            "tensor({}, device='cuda:0')", "tensor({})", "tensor([{}], grad_fn=<AddBackward0>)", "array({})", "[{}]",
            "tensor({}, device='cuda:0', dtype=torch.float64)", "tf.Tensor({}, shape=(), dtype=float32)",
        ])  # fmt: skip

    def losses(self, count: int, scale: float = 1.0) -> list[str]:
        """Return ``count`` losses as this script prints them."""
        return [self.show(value) for value in curve(self.rng, count, self.start * scale, self.end * scale)]

    def printed(self, loss: str) -> str:
        """Return a loss as the record prints it: the figure, or the tensor around it."""
        return self.tensor.format(loss) if self.trait == "tensors" else loss

    def value(self, printed: str) -> float:
        """Return the number of a loss that ``printed`` returned."""
        return float(re.search(r"-?\d[\d.]*(?:e[-+]\d+)?", printed)[0])  # type: ignore[index]

    def extra(self, name: str, share: float) -> Cell:
        """Return one figure beside the loss; ``share`` is the part of the run that is done."""
        rng, label = self.rng, self.labels[name]
        if name in ("acc", "f1"):
            value = 0.95 - 0.6 * math.exp(-4 * share) + rng.uniform(-0.02, 0.02)
            return label, f"{100 * value:.2f}%" if self.percent else f"{value:.4f}"
        if name == "lr":
            return label, f"{1e-3 * (1 - 0.9 * share):.2e}" if self.percent else f"{1e-3 * (1 - 0.9 * share):.6f}"
        if name == "time":
            return label, f"{self.seconds * rng.uniform(0.9, 1.1):.3f}{'s' if self.percent else ''}"
        if name == "norm":
            return label, f"{rng.uniform(0.3, 4):.3f}"
        if name == "mem":
            return label, f"{rng.randint(4000, 4400)}{'MB' if self.percent else ''}"
        return label, clock(self.seconds * 200 * (1 - share))

    def rated(self) -> str:
        """Return the speed with its unit behind the number."""
        value = (
            self.rng.uniform(0.15, 0.3) if self.rate.startswith("s") and self.rate != "samples/s" else self.rng.uniform(90, 400)
        )
        return f"{value:.2f} {self.rate}"

    def cells(self, main: Iterable[Cell], share: float) -> list[Cell]:
        """Return the figures of one record in this script's order."""
        cells = [*main]
        extras = [self.extra(name, share) for name in self.extras]
        at = int(self.order * (len(extras) + 1))
        cells = [*extras[:at], *cells, *extras[at:]]
        if self.trait == "rates":
            cells.insert(0 if self.rate_first else len(cells), ("", self.rated()))
        return cells

    def join(self, cells: Iterable[Cell]) -> str:
        """Return cells in one line."""
        return self.gap.join(f"{label}{self.link}{value}" if label else value for label, value in cells)

    def row(self, lead: str, main: Iterable[Cell], share: float) -> str:
        """Return the line of a record: its mark, its counter ``lead``, its figures."""
        return f"{self.mark}{lead}{self.after}{self.join(self.cells(main, share))}{self.tail}"

    def stamp(self, line: str) -> str:
        """Return a line behind the head of the script's logger, if it has one; the clock goes on."""
        self.when += self.rng.uniform(0.2, 3)
        day, second = divmod(int(self.when), 86400)
        month, date = 1 + day // 30, 1 + day % 30
        hour, minute, rest = second // 3600, second // 60 % 60, second % 60
        time = f"{hour:02d}:{minute:02d}:{rest:02d}"
        return {
            "": line,
            "plain": f"2024-{month:02d}-{date:02d} {time},{int(self.when * 1000) % 1000:03d} - {line}",
            "level": f"2024-{month:02d}-{date:02d} {time},{int(self.when * 1000) % 1000:03d} - train - INFO - {line}",
            "brackets": f"[2024-{month:02d}-{date:02d} {time}] {line}",
            "glog": f"I{month:02d}{date:02d} {time}.{int(self.when * 1e6) % 1000000:06d} 21437 train.py:118] {line}",
            "root": f"INFO:root:{line}",
            "short": f"{time} | {line}",
        }[self.logger]

    def head(self) -> list[str]:
        """Return the lines before the training: banner, arguments, warnings, data and model; any of them may be missing."""
        rng, lines = self.rng, list[str]()
        user, place = rng.choice(["mia", "jk", "user01", "ahmed"]), rng.choice(["torch", "dl", "py39"])
        library = f"/home/{user}/miniconda3/envs/{place}/lib/python3.9"
        if rng.random() < 0.4:
            lines += rng.sample([
                f"{library}/site-packages/torch/nn/functional.py:1709: UserWarning: nn.functional.sigmoid is deprecated. "
                "Use torch.sigmoid instead.", f"{library}/site-packages/torchvision/io/image.py:13: UserWarning: Failed to load "
                "image Python extension: ", "  warnings.warn(warning.format(ret))",
                "2024-02-11 09:14:05.118237: I tensorflow/core/platform/cpu_feature_guard.cc:182] This TensorFlow binary is "
                "optimized to use available CPU instructions.", "nohup: ignoring input",
                f"{library}/site-packages/sklearn/metrics/_classification.py:1344: UndefinedMetricWarning: Precision is "
                "ill-defined and being set to 0.0 in labels with no predicted samples.", "Matplotlib is building the font cache.",
            ], rng.randint(1, 3))  # fmt: skip
        if rng.random() < 0.35:
            rule = rng.choice("=-*#") * rng.choice([20, 40, 60])
            lines += [rule, rng.choice([f"  Training {self.name} on {self.data}", f"{self.data} experiment", "MAIN"]), rule]
        values = {
            "batch_size": rng.choice([16, 32, 64, 128]), "epochs": rng.choice([50, 100, 300]), "lr": rng.choice([0.001, 0.0003]),
            "seed": rng.choice([0, 42, 1234]), "dataset": self.data, "model": self.name, "weight_decay": 0.0005,
            "num_workers": rng.choice([2, 4, 8]), "save_dir": f"./runs/{self.name}", "resume": False, "dropout": 0.1,
        }  # fmt: skip
        chosen = dict(rng.sample(sorted(values.items()), rng.randint(4, len(values))))
        kind = rng.choice(["none", "none", "namespace", "rows", "json", "dict", "flags", "columns"])
        if kind == "namespace":
            lines.append(f"Namespace({', '.join(f'{key}={value!r}' for key, value in chosen.items())})")
        elif kind == "rows":
            lines += [f"{key}: {value}" for key, value in chosen.items()]
        elif kind == "json":
            lines += ["{", *(f'  "{key}": "{value}",' for key, value in chosen.items()), "}"]
        elif kind == "dict":
            lines.append(f"config: {chosen}")
        elif kind == "flags":
            lines.append(f"python train.py {' '.join(f'--{key} {value}' for key, value in chosen.items())}")
        elif kind == "columns":
            lines += ["----- options -----", *(f"{key:>20}: {value}" for key, value in chosen.items()), "----- end -----"]
        some = [
            f"Using device: {rng.choice(['cuda', 'cuda:0', 'cpu', 'mps'])}", f"Loaded {rng.randint(800, 60000)} training samples",
            f"train: {rng.randint(800, 60000)} val: {rng.randint(100, 5000)} test: {rng.randint(100, 5000)}",
            f"Number of parameters: {rng.randint(10**5, 10**8)}", "Building model...", "data ready", "Start training",
            "(fc1): Linear(in_features=512, out_features=128, bias=True)", f"Vocabulary size: {rng.randint(2000, 50000)}",
            "Files already downloaded and verified", f"len(train_loader) = {rng.randint(20, 900)}", "",
        ]  # fmt: skip
        return lines + rng.sample(some, rng.randint(0, 6))

    def foot(self) -> list[str]:
        """Return the lines behind the training."""
        rng = self.rng
        return rng.sample([
            "Finished Training", "Done.", f"Total time: {clock(rng.uniform(60, 9000))}", "Best model is at epoch 9",
            f"Model saved to runs/{self.name}/last.pt", f"Test accuracy: {rng.uniform(60, 99):.2f}%", "Bye!", "",
        ], rng.choice([0, 1, 1, 2, 3]))  # fmt: skip

    def checkpoint(self, epoch: int) -> str:
        """Return the notice of a saved checkpoint."""
        return self.rng.choice([
            f"Saving checkpoint to runs/{self.name}/ckpt_{epoch}.pt", "model saved", f"=> saved best model (epoch {epoch})",
            "Checkpoint written.",
        ])  # fmt: skip
