"""Read the tables of scores that evaluation programs print into a log or a file.

Known are tables with ``|`` that have a column of tasks and one of values (lm-evaluation-harness, EvalScope, lighteval, own
programs), the summary of pycocotools, and the classification report of scikit-learn. A row that does not fit its table is a
problem and gives no score.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from receipt_cli.importers.scores.model import Results, Score, finite, model_args, number, step_in, text, whole
from receipt_cli.patterns import compile_later

TABLES = "score-tables"
TITLE = "tables of scores in a log: lm-evaluation-harness, EvalScope, COCO, scikit-learn"
_CODES = compile_later(r"\x1b\[[0-9;]*m")
_ROW = compile_later(r"\|.*\|\s*$")
_RULE = compile_later(r"[\s|+:=-]+")
_BORDER = compile_later(r"\+[=-][+=-]*\+\s*$")
_COCO = compile_later(
    r"\bAverage (?:Precision|Recall) +\((?P<metric>AP|AR)\) @\[ IoU=(?P<iou>\S+) *\| area= *(?P<area>\w+) *"
    r"\| maxDets= *(?P<most>\d+) \] = +(?P<value>-?\d+\.\d+)"
)
_COCO_TYPE = compile_later(r"\bEvaluate annotation type \*(?P<type>\w{1,40})\*")
_REPORT = compile_later(r"(?:^|\s)precision\s+recall\s+f1-score\s+support\s*$")
_REPORT_ROW = compile_later(r"\s*(?P<label>\S.*?)\s+(?P<figures>-?\d+(?:\.\d+)?(?:\s+-?\d+(?:\.\d+)?){1,3})\s*$")
_REPORT_FIGURES = ("precision", "recall", "f1-score")
_INDENT = compile_later(r"\A(?:\s*-\s+)+")
_PERCENT_TITLE = compile_later(r"\s*[(\[]?%[)\]]?\s*\Z")
_MODEL = compile_later(r"^\S+ \((?P<arguments>[^()]*=[^()]*)\), gen_kwargs: ")
"""The line above the tables of lm-evaluation-harness."""
_ARROWS = {"↑": True, "↓": False}
_MOST_WIDE = 40
"""Most columns of a table that is read."""

_ROLES: Mapping[str, str] = {
    **dict.fromkeys(("task", "tasks", "group", "groups", "dataset", "datasets", "benchmark", "benchmarks", "eval"), "task"),
    **dict.fromkeys(("value", "score"), "value"),
    **dict.fromkeys(("stderr", "std err", "standard error"), "stderr"),
    **dict.fromkeys(("n-shot", "shots", "num_fewshot"), "shots"),
    **dict.fromkeys(("num", "n", "samples", "num samples", "# samples", "sample count"), "samples"),
    **{name: name for name in ("metric", "filter", "version", "subset", "split", "model")},
}
"""Title of a column in lower case → what it holds."""
_METRICS = frozenset(
    {
        *("accuracy", "acc", "acc_norm", "f1", "f1-score", "f1_score", "precision", "recall", "em", "exact_match", "bleu"),
        *("rouge", "rouge-1", "rouge-2", "rouge-l", "auc", "roc-auc", "map", "mrr", "ndcg", "pass@1", "perplexity", "ppl"),
        *("wer", "cer", "top-1", "top-5", "mcc"),
    }
)
"""Titles of columns that hold the values of a metric, in lower case, with ``_`` or a blank for what joins two words."""


Faults = Sequence[tuple[int, str]]
"""(line, what is wrong) of rows that are not read."""
Found = tuple[int, Sequence[Score], Faults]
"""The line that ends a table, the table's scores, and its faults."""


def read_printed(lines: Iterable[str]) -> Results | None:
    """Return the scores in the tables of a log, with their lines from 1; None without any."""
    results = Results(TABLES)
    models: dict[str, None] = {}
    plain = [*(_CODES.sub("", line).rstrip() for line in lines), ""]
    for _, scores, faults in sorted([*_tables(plain, models), *_coco(plain), *_reports(plain)], key=itemgetter(0)):
        results.add(scores)
        for line, detail in faults:
            results.problems.add("row_not_read", line, detail)
    if len(models) == 1:
        [results.model] = models
    return results if results.scores else None


def _tables(lines: Iterable[str], models: dict[str, None]) -> Iterator[Found]:
    """Yield each table with ``|``; add the models that lines above them name to ``models``."""
    step: int | None = None
    table: _Table | None = None
    for line_number, line in enumerate(lines, 1):
        if (named := _MODEL.search(line)) is not None:
            arguments = model_args(named["arguments"])
            if model := text(arguments.get("pretrained")) or text(arguments.get("model")):
                models[model] = None
            step = step_in(model, text(arguments.get("peft")), revision=text(arguments.get("revision")))
        cells = _cells(line)
        roles = _roles(cells) if cells else None
        if table is not None and (cells is None or roles is not None):
            yield line_number, table.scores, table.faults
            table = None
        if cells and roles is not None:
            table = _Table(cells, roles, step if "filter" in roles else None)
        elif cells and table is not None:
            table.add(cells, line_number)


def _cells(line: str) -> list[str] | None:
    """Return the cells of a row between ``|``, without the words before it; [] for a rule of a table, None for any other line."""
    row = _ROW.search(line)
    if row is None:
        return [] if _BORDER.search(line) else None
    if _RULE.fullmatch(row[0]):
        return []
    cells = [cell.strip().strip("*").strip() for cell in row[0].strip().strip("|").split("|")]
    return cells if 2 <= len(cells) <= _MOST_WIDE else None


def _roles(cells: Sequence[str]) -> list[str] | None:
    """Return what each column of a head holds; None if the row is no head of a table of scores."""
    roles = [_role(cell) for cell in cells]
    values = [role for role in roles if role == "value" or role.startswith("=")]
    if roles.count("task") != 1 or not values or any(number(cell) is not None for cell in cells):
        return None
    single = ("value", "stderr", "metric", "shots", "filter", "version", "samples", "model")
    return roles if all(roles.count(role) < 2 for role in single) else None


def _role(title: str) -> str:
    """Return what a column holds by its title: a value of ``_ROLES``, ``=METRIC`` for its values, else ``arrow`` or ``text``."""
    bare = _PERCENT_TITLE.sub("", title).strip()
    lowered = bare.lower()
    if lowered in _ROLES:
        return _ROLES[lowered]
    if {lowered, lowered.replace(" ", "_"), lowered.replace(" ", "-")} & _METRICS:
        return f"={title}"
    return "text" if title else "arrow"


class _Table:
    """One table with ``|``: its scores, and the rows that do not fit it."""

    def __init__(self, titles: Sequence[str], roles: Sequence[str], step: int | None = None) -> None:
        self.scores: list[Score] = []
        self.faults: list[tuple[int, str]] = []
        self._titles, self._roles = titles, roles
        self._task, self._version, self._step = "", "", step

    def add(self, cells: Sequence[str], line_number: int) -> None:
        """Add a row. A blank task is that of the row above, as lm-evaluation-harness prints several metrics of one."""
        if len(cells) != len(self._roles):
            self.faults.append((line_number, f"has {len(cells)} cells in a table of {len(self._roles)} columns"))
            return
        row = dict(zip(self._roles, cells, strict=True))
        if name := _INDENT.sub("", row["task"]).strip():
            self._task, self._version = name, row.get("version", "")
        if not self._task:
            self.faults.append((line_number, "has no task"))
            return
        columns = list(zip(self._roles, cells, strict=True))
        arrows = [_ARROWS[cell] for role, cell in columns if role == "arrow" and cell in _ARROWS]
        others = [cell for role, cell in columns if role in ("text", "subset", "model") and _is_text(cell)]
        base = Score(
            self._task,
            row.get("metric") or "score",
            None,
            subset=" / ".join(others) or None,
            split=text(row.get("split")),
            filter=text(row.get("filter")),
            shots=whole(row.get("shots")),
            sample_count=whole(row.get("samples")),
            higher_is_better=arrows[0] if len(arrows) == 1 else None,
            task_version=text(self._version),
            step=self._step,
            line_number=line_number,
        )
        if "value" in row:
            self._put(base, row["value"], self._titles[self._roles.index("value")], finite(row.get("stderr")))
            return
        for role, title, cell in zip(self._roles, self._titles, cells, strict=True):
            if role.startswith("="):
                self._put(replace(base, metric=_PERCENT_TITLE.sub("", title).strip()), cell, title, None)

    def _put(self, base: Score, cell: str, title: str, stderr: float | None) -> None:
        """Add the value in a cell; an empty one is none. A percent sign there or in the title makes it a ratio."""
        percent = cell.endswith("%") or _PERCENT_TITLE.search(title) is not None
        value = number(cell.removesuffix("%").rstrip())
        if value is None:
            if text(cell) is not None:
                self.faults.append((base.line_number or 0, f"{base.named}: not a number"))
            return
        share = 100 if percent else 1
        self.scores.append(replace(base, value=value / share, stderr=None if stderr is None else stderr / share))


def _is_text(cell: str) -> bool:
    return text(cell) is not None and number(cell.removesuffix("%")) is None


def _coco(lines: Iterable[str]) -> Iterator[Found]:
    """Yield each summary of pycocotools, whose lines stand together."""
    task = "COCO"
    scores: list[Score] = []
    for line_number, line in enumerate(lines, 1):
        if (named := _COCO_TYPE.search(line)) is not None:
            task = named["type"]
        found = _COCO.search(line)
        if found is not None:
            where = f"IoU={found['iou']} area={found['area']} maxDets={found['most']}"
            value = None if float(found["value"]) < 0 else float(found["value"])  # -1: there is no such object
            scores.append(Score(task, found["metric"], value, filter=where, higher_is_better=True, line_number=line_number))
        elif scores:
            yield line_number, scores, ()
            scores = []


def _reports(lines: Sequence[str]) -> Iterator[Found]:
    """Yield each classification report of scikit-learn: a row for each class, then accuracy and averages."""
    for head in (at for at, line in enumerate(lines) if _REPORT.search(line)):
        scores: list[Score] = []
        blank = 0
        end = head
        for end in range(head + 1, len(lines)):
            if not lines[end].strip():
                blank += 1
                if blank == 3:  # one is below the head, and one below the classes
                    break
                continue
            row = _REPORT_ROW.match(lines[end])
            figures = row["figures"].split() if row is not None else []
            if row is None or len(figures) not in (2, 4) or (len(figures) == 2 and row["label"] != "accuracy"):
                break
            names = _REPORT_FIGURES if len(figures) == 4 else ("accuracy",)
            subset = row["label"] if len(figures) == 4 else None
            scores += [
                Score(
                    "classification report", name, float(figure), subset=subset, sample_count=whole(figures[-1]),
                    higher_is_better=True, line_number=end + 1,
                )
                for name, figure in zip(names, figures[:-1], strict=True)
            ]  # fmt: skip
        yield end + 1, scores, ()
