"""A logger's head changes no figure: what people pass to ``logging.Formatter``, before three shapes of a script's own lines."""

import logging
import math
from pathlib import Path

import pytest

import receipt_cli
from tests.tools.slow import one_in

FORMATS = [
    "%(asctime)s:%(levelname)s: %(message)s",
    "%(asctime)s:%(levelname)s:%(message)s",
    "%(asctime)s:%(levelname)s:%(name)s:%(message)s",
    "%(asctime)s:%(name)s:%(levelname)s:%(message)s",
    "%(asctime)s: %(levelname)s: %(message)s",
    "%(asctime)s : %(levelname)s : %(message)s",
    "[%(asctime)s] [%(levelname)s] %(message)s",
    "[%(asctime)s][%(levelname)s] %(message)s",
    "[%(asctime)s][%(levelname)s]: %(message)s",
    "[%(asctime)s][%(filename)s:%(lineno)d][%(levelname)s] %(message)s",
    "[%(asctime)s][%(filename)s][line:%(lineno)d][%(levelname)s] %(message)s",
    "[%(asctime)s|%(levelname)s] %(message)s",
    "[%(asctime)s - %(levelname)s] %(message)s",
    "[%(asctime)s] %(levelname)s: %(message)s",
    "[%(asctime)s] - %(levelname)s - %(message)s",
    "[%(asctime)s]-[%(levelname)s]: %(message)s",
    "(%(asctime)s) %(message)s",
    "<%(asctime)s> %(message)s",
    "%(asctime)s %(levelname)-8s %(message)s",
    "%(asctime)s | %(levelname)s | %(message)s",
    "%(asctime)s|%(levelname)s|%(message)s",
    "%(asctime)s - %(levelname)s: %(message)s",
    "%(asctime)s-%(levelname)s: %(message)s",
    "%(asctime)s-%(name)s-%(levelname)s-%(message)s",
    "%(asctime)s - %(levelname)s - %(name)s -   %(message)s",
    "%(levelname)s %(asctime)s %(message)s",
    "%(levelname)s - %(asctime)s - %(message)s",
    "%(levelname)s:%(asctime)s:%(message)s",
    "%(levelname)s: %(asctime)s: %(message)s",
    "[%(levelname)s] %(asctime)s - %(message)s",
    "[%(levelname)s] %(asctime)s: %(message)s",
    "[%(levelname)s %(asctime)s] %(message)s",
    "%(asctime)s - %(message)s",
    "%(asctime)s -- %(message)s",
    "%(asctime)s %(message)s",
    "%(asctime)s, %(message)s",
    "%(asctime)s: %(message)s",
    "%(asctime)s:%(message)s",
    "%(asctime)s >> %(message)s",
    "%(asctime)s => %(message)s",
    "%(asctime)s\t%(message)s",
    "[%(asctime)s] %(message)s",
    "[%(asctime)s]: %(message)s",
    "[%(asctime)s]%(message)s",
    "[%(asctime)s] - %(message)s",
    "%(asctime)s [%(threadName)-12.12s] [%(levelname)-5.5s]  %(message)s",
    "%(asctime)s [%(levelname)s] %(name)s: %(message)s",
    "%(asctime)s [%(levelname)s] - %(message)s",
    "%(asctime)s [%(name)s] %(levelname)s: %(message)s",
    "%(asctime)s %(name)s [%(levelname)s] %(message)s",
    "%(asctime)s %(name)s %(levelname)s %(message)s",
    "%(asctime)s %(name)s: %(message)s",
    "%(asctime)s %(name)s %(levelname)s: %(message)s",
    "%(asctime)s - %(filename)s[line:%(lineno)d] - %(levelname)s: %(message)s",
    "%(asctime)s %(filename)s[line:%(lineno)d] %(levelname)s %(message)s",
    "%(asctime)s %(filename)s [line:%(lineno)d] %(levelname)s %(message)s",
    "%(asctime)s %(filename)s:%(lineno)d %(levelname)s %(message)s",
    "%(asctime)s %(filename)s:%(lineno)d: %(message)s",
    "%(asctime)s %(filename)s:%(lineno)d] %(message)s",
    "%(asctime)s [%(filename)s:%(lineno)d] %(levelname)s: %(message)s",
    "%(asctime)s [%(filename)s:%(lineno)d] %(message)s",
    "%(asctime)s - %(filename)s:%(lineno)d - %(message)s",
    "%(asctime)s - %(filename)s - %(levelname)s - %(message)s",
    "%(asctime)s - [%(levelname)s] - %(message)s",
    "%(asctime)s - %(module)s - %(funcName)s - %(levelname)s - %(message)s",
    "%(asctime)s %(levelname)s %(funcName)s: %(message)s",
    "%(asctime)s - %(levelname)s - %(process)d - %(message)s",
    "%(asctime)s %(process)d %(levelname)s %(message)s",
    "[%(asctime)s %(filename)s:%(lineno)d] %(message)s",
    "[%(asctime)s %(name)s] (%(filename)s %(lineno)d): %(levelname)s %(message)s",
    "[%(asctime)s %(name)s] %(levelname)s %(message)s",
    "[%(asctime)s %(levelname)s] %(message)s",
    "[%(asctime)s %(levelname)s %(filename)s:%(lineno)d] %(message)s",
    "[%(asctime)s %(levelname)s %(filename)s line %(lineno)d %(process)d] %(message)s",
    "[%(filename)s:%(lineno)d] %(asctime)s %(levelname)s %(message)s",
    "[%(name)s] %(message)s",
    "[%(name)s] %(asctime)s %(message)s",
    "%(name)s: %(message)s",
    "%(name)s - %(levelname)s - %(message)s",
    "%(levelname)s - %(message)s",
    "%(levelname)s: %(message)s",
    "%(levelname)s:%(name)s:%(message)s",
    "%(levelname)s | %(message)s",
    "[%(levelname)s]: %(message)s",
    "[%(levelname)s]%(message)s",
    "[%(levelname)s] - %(message)s",
    "%(filename)s:%(lineno)d %(message)s",
    "%(filename)s: %(message)s",
]
DATES = [
    "%m/%d %I:%M:%S %p",
    "%m-%d %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%d-%b-%y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %I:%M:%S %p",
    "%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%a, %d %b %Y %H:%M:%S",
    "%b-%d %H:%M",
    "%Y-%m-%d_%H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
    "%y/%m/%d %H:%M:%S",
    "%I:%M:%S %p",
    "%Y.%m.%d-%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y%m%d %H:%M:%S",
    "%Y%m%d-%H:%M:%S",
    "%Y%m%d_%H:%M:%S",
    "%Y-%m-%d-%H-%M-%S",
    "%Y-%m-%d,%H:%M:%S",
    "%d-%m-%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
    "%b %d %H:%M:%S",
    "%b %d, %Y %H:%M:%S",
    "%d %b %Y %H:%M:%S",
    "%Y年%m月%d日 %H:%M:%S",
    "%m-%d-%Y %H:%M:%S",
    "%Y-%m-%d %I:%M:%S %p",
    "%A, %d %B %Y %H:%M:%S",
]
AROUND_DATES = ["%(asctime)s - %(levelname)s - %(message)s", "[%(asctime)s] %(message)s", "%(asctime)s | %(message)s"]


def bodies() -> dict[str, list[str]]:
    heading, line, iterations = (
        ["Creating the model...", "Starting training for 12 epoch(s)"],
        ["start training"],
        ["Loading data"],
    )
    for epoch in range(1, 13):
        loss, accuracy = 2.5 * math.exp(-epoch / 7) + 0.01 * (epoch * 37 % 11), 1 - math.exp(-epoch / 5)
        evaluated = loss + 0.05 + 0.013 * (epoch % 3)
        heading.append(f"Epoch {epoch}/12")
        heading.append(f"- Train metrics: accuracy: {accuracy:.3f} ; loss: {loss:.3f}")
        heading.append(f"- Eval metrics: accuracy: {accuracy - 0.02:.3f} ; loss: {evaluated:.3f}")
        line.append(f"Epoch: {epoch}, train_loss: {loss:.4f}, val_loss: {evaluated:.4f}, val_acc: {accuracy:.4f}")
        iterations += [f"Epoch [{epoch}/12][{n}/60] Loss {loss + n / 6000:.4f} LR 0.001000" for n in range(0, 60, 20)]
        iterations.append(f"Epoch {epoch} validation loss {evaluated:.4f} acc {accuracy:.4f}")
    return {"heading": heading, "line": line, "iterations": iterations}


BODIES = bodies()


def render(pattern: str, date: str | None, messages: list[str]) -> str:
    formatter, lines = logging.Formatter(pattern, date), []
    for number, message in enumerate(messages):
        record = logging.LogRecord("train", logging.INFO, "/home/u/train.py", 100 + len(message), message, (), None, "main")
        record.created = 1532711158.8 + 9.3 * number
        record.msecs, record.process, record.threadName = record.created % 1 * 1000, 4321, "MainThread"
        lines.append(formatter.format(record) + "\n")
    return "".join(lines)


def figures(log: Path, text: str) -> dict[str, object]:
    """Return first, last, least and greatest value of each metric but rates and times, and what counts the records."""
    log.write_text(text)
    summary = receipt_cli.read(log).receipt.to_dict()["summary"]
    clocked = ("throughput", "step_time", "tokens", "samples", "steps")
    kept = {name: found for name, found in summary["metrics"].items() if not name.startswith(clocked)}
    steps = {name: summary["steps"][name] for name in ("first", "last", "planned", "record_count", "restart_count")}
    return {"steps": steps, "metrics": {n: [f[k] for k in ("first", "last", "min", "max")] for n, f in kept.items()}}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    folder = tmp_path_factory.mktemp("plain")
    return {name: figures(folder / "run.log", "\n".join(body) + "\n") for name, body in BODIES.items()}


def test_the_lines_alone_are_read(plain: dict[str, dict[str, object]]) -> None:
    for name, counted in (("heading", 12), ("line", 12), ("iterations", 36)):
        found = plain[name]
        assert found["steps"]["record_count"] == counted, name  # type: ignore[index]
        assert {"loss", "epoch"} <= set(found["metrics"]), name  # type: ignore[call-overload]


@pytest.mark.parametrize("pattern", one_in(3, FORMATS))
def test_a_format(pattern: str, tmp_path: Path, plain: dict[str, dict[str, object]]) -> None:
    for name in ("heading", "line" if len(pattern) % 2 else "iterations"):
        assert figures(tmp_path / f"{name}.log", render(pattern, None, BODIES[name])) == plain[name], name


@pytest.mark.parametrize("date", one_in(2, DATES))
def test_a_date(date: str, tmp_path: Path, plain: dict[str, dict[str, object]]) -> None:
    for pattern in AROUND_DATES[len(date) % 2 :]:
        found = figures(tmp_path / "run.log", render(pattern, date, BODIES["heading"]))
        assert found == plain["heading"], pattern
