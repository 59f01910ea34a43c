"""Read the JSON results of lm-evaluation-harness, Every Eval Ever and MTEB."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from receipt_cli.importers.scores.model import (
    Results,
    ResultsFormat,
    Score,
    finite,
    model_args,
    number,
    plain,
    step_in,
    text,
    whole,
)
from receipt_cli.importers.text import Number, Value, at, members

LM_EVAL, EVERY_EVAL_EVER, MTEB = "lm-eval", "every-eval-ever", "mteb"
_NOT_METRICS = frozenset({"alias", "name", "samples", "sample_len", "sample_count", " ", ""})
_STDERR = "_stderr"
_SETTINGS = (
    "model", "model_args", "model_dtype", "num_fewshot", "batch_size", "limit", "gen_kwargs", "device", "bootstrap_iters",
    "random_seed", "numpy_seed", "torch_seed", "fewshot_seed",
)  # fmt: skip
"""Settings of lm-evaluation-harness that are kept."""
_AROUND = frozenset(
    {"dataset_revision", "mteb_dataset_name", "mteb_version", "task_name", "evaluation_time", "kg_co2_emissions", "date"}
)
"""Keys of MTEB's results that are no split, in its form before version 1.11."""
_OF_SUBSET = frozenset({"hf_subset", "languages", "evaluation_time"})


def _is_lm_eval(document: dict[str, Value]) -> bool:
    results = members(document, "results")
    stated = isinstance(document.get("versions"), dict) and isinstance(document.get("config"), dict)
    return bool(results) and stated and all(isinstance(scores, dict) for scores in results.values())


def _read_lm_eval(document: dict[str, Value]) -> Results:
    config, arguments = members(document, "config"), model_args(at(document, "config", "model_args"))
    model = text(document.get("model_name")) or text(arguments.get("pretrained")) or text(arguments.get("model"))
    revision = text(config.get("model_sha")) or text(arguments.get("revision")) or text(config.get("model_revision"))
    version = text(document.get("lm_eval_version"))
    results = Results(LM_EVAL, producer=f"lm_eval {version}" if version else "lm_eval", model=model, revision=revision)
    names = (model, text(arguments.get("pretrained")), text(arguments.get("peft")))
    results.step = step_in(*names, revision=text(arguments.get("revision")))
    results.started_at = number(document.get("date"))
    results.config = {name: plain(config[name]) for name in _SETTINGS if name in config}
    results.add_fact("/model/parameter_count", whole(config.get("model_num_parameters")), "import:/config/model_num_parameters")
    for name in ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed"):
        results.add_fact(f"/seeds/{name}", whole(config.get(name)), f"import:/config/{name}")
    scored = {**members(document, "results"), **members(document, "groups")}  # a group is in both
    results.add(
        score
        for task, entries in scored.items()
        if isinstance(entries, dict)
        for score in _lm_eval_scores(document, task, entries)
    )
    return results


def _lm_eval_scores(document: dict[str, Value], task: str, entries: dict[str, Value]) -> Iterator[Score]:
    """Yield the scores of a task: keys are ``METRIC,FILTER``, before version 0.4 ``METRIC``."""
    shots = next(
        (count for place in (("n-shot", task), ("configs", task, "num_fewshot"), ("config", "num_fewshot"))
         if (count := whole(at(document, *place))) is not None),
        None,
    )  # fmt: skip
    samples = whole(at(document, "n-samples", task, "effective"))
    samples = next((n for n in (samples, whole(entries.get("sample_len")), whole(entries.get("samples"))) if n is not None), None)
    for key, value in entries.items():
        metric, comma, filter_name = key.partition(",")
        if key in _NOT_METRICS or metric.endswith(_STDERR) or not isinstance(value, Number):
            continue
        better = at(document, "higher_is_better", task, metric)
        yield Score(
            task, metric, number(value), filter=text(filter_name), shots=shots,
            stderr=finite(entries.get(f"{metric}{_STDERR}{comma}{filter_name}")), sample_count=samples,
            higher_is_better=better if isinstance(better, bool) else None, task_version=text(at(document, "versions", task)),
        )  # fmt: skip


def _is_every_eval_ever(document: dict[str, Value]) -> bool:
    return isinstance(document.get("evaluation_results"), list) and isinstance(document.get("model_info"), dict)


def _read_every_eval_ever(document: dict[str, Value]) -> Results:
    details = members(document, "model_info", "additional_details")
    model = text(at(document, "model_info", "id")) or text(at(document, "model_info", "name"))
    library = [text(at(document, "eval_library", part)) for part in ("name", "version")]
    results = Results(EVERY_EVAL_EVER, text(document.get("schema_version")), model=model)
    results.producer = " ".join(part for part in library if part and part != "unknown") or None
    results.revision = text(details.get("sha")) or text(details.get("revision"))
    results.step = step_in(model, revision=text(details.get("revision")))
    results.started_at = _seconds(document.get("evaluation_timestamp"))
    results.config = {"model_info": plain(document["model_info"]), "source_metadata": plain(document.get("source_metadata"))}
    read = [
        _every_eval_ever_score(entry) if isinstance(entry, dict) else None for entry in _items(document["evaluation_results"])
    ]
    for place, score in enumerate(read):
        if score is None:
            results.problems.add("record_is_no_score", None, f"/evaluation_results/{place}: no name or no score")
    results.add(score for score in read if score is not None)
    return results


def _every_eval_ever_score(entry: dict[str, Value]) -> Score | None:
    metric, source = members(entry, "metric_config"), members(entry, "source_data")
    task, printed = text(entry.get("evaluation_name")), at(entry, "score_details", "score")
    if task is None or not isinstance(printed, Number):
        return None
    value = number(printed)
    if metric.get("has_unknown_level") is True and value == -1:
        value = None  # its word for an unknown level
    name = next(
        (found for key in ("metric_name", "metric_id", "evaluation_description") if (found := text(metric.get(key)))), None
    )
    subset, lower = text(source.get("dataset_name")), metric.get("lower_is_better")
    doubt = members(entry, "score_details", "uncertainty")
    return Score(
        task, name or "score", value, subset=subset if subset != task else None, split=text(source.get("hf_split")),
        shots=whole(at(entry, "generation_config", "additional_details", "num_fewshot")),
        stderr=finite(at(doubt, "standard_error", "value")), sample_count=whole(doubt.get("num_samples")),
        higher_is_better=not lower if isinstance(lower, bool) else None,
    )  # fmt: skip


def _is_mteb(document: dict[str, Value]) -> bool:
    named = text(document.get("task_name")) or text(document.get("mteb_dataset_name"))
    return named is not None and "mteb_version" in document


def _read_mteb(document: dict[str, Value]) -> Results:
    version, revision = text(document.get("mteb_version")), text(document.get("dataset_revision"))
    results = Results(MTEB, version, producer=f"mteb {version}" if version else "mteb")
    results.config = {"dataset_revision": revision, "evaluation_time_s": finite(document.get("evaluation_time"))}
    results.model = text(document.get("model_name"))
    task = text(document.get("task_name")) or text(document.get("mteb_dataset_name")) or "?"
    scores: list[Score] = []
    for split, subset, entries in _mteb_parts(document):
        named = {".".join(path): value for path, value in _leaves(entries)}
        scores += [
            Score(
                task, metric, number(value), subset=subset, split=split, task_version=revision,
                stderr=finite(named.get(f"{metric}{_STDERR}")), higher_is_better=True if metric == "main_score" else None,
            )
            for metric, value in named.items()
            if not metric.endswith(_STDERR)
        ]  # fmt: skip
    results.add(scores)
    return results


def _mteb_parts(document: dict[str, Value]) -> Iterator[tuple[str, str | None, dict[str, Value]]]:
    """Yield (split, subset, values by metric) of either form: a list of subsets for each split, or a split at the top."""
    scores = document.get("scores")
    if isinstance(scores, dict):
        for split, subsets in scores.items():
            for entries in _items(subsets):
                if isinstance(entries, dict):
                    subset = text(entries.get("hf_subset"))
                    yield (
                        split,
                        None if subset == "default" else subset,
                        {k: v for k, v in entries.items() if k not in _OF_SUBSET},
                    )
        return
    for split, entries in document.items():
        if split not in _AROUND and isinstance(entries, dict):
            yield split, None, {key: value for key, value in entries.items() if key not in _OF_SUBSET}


def _leaves(entries: dict[str, Value], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Number]]:
    for key, value in entries.items():
        if isinstance(value, Number):
            yield (*path, key), value
        elif isinstance(value, dict) and len(path) < 3:
            yield from _leaves(value, (*path, key))


def _items(value: Value) -> list[Value]:
    return value if isinstance(value, list) else []


def _seconds(value: Value) -> float | None:
    """Return a time as seconds since 1970: such a number, or RFC 3339 with a zone."""
    stated = number(value)
    if stated is not None or not isinstance(value, str):
        return stated
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment.astimezone(UTC).timestamp() if moment.tzinfo is not None else None


FORMATS = (
    ResultsFormat(LM_EVAL, "results_*.json of lm-evaluation-harness", _is_lm_eval, _read_lm_eval),
    ResultsFormat(EVERY_EVAL_EVER, "record of Every Eval Ever", _is_every_eval_ever, _read_every_eval_ever),
    ResultsFormat(MTEB, "JSON of a task of MTEB", _is_mteb, _read_mteb),
)
"""The formats that are one JSON object, the most specific first."""
