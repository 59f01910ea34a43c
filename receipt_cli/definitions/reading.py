"""Check definitions against their JSON Schema; report errors at their file, line and key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from receipt_cli.definitions.resources import find_compiled, read_shipped
from receipt_cli.errors import DataError

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator


MAX_REASON = 300
UNKNOWN, MISSING = "unknown field", "missing"
Path = tuple[str | int, ...]


@cache
def generated_validator(kind: str, version: str) -> Callable[[object], object] | None:
    """Return the validator that the build generated from a schema, which raises ``ValueError`` for the first error.

    It needs only the standard library. None if the package was not built, or the schema has changed.
    """
    name: str | None = find_compiled(f"schemas/{kind}/v{version}.schema.json")
    if name is None:
        return None
    from receipt_cli._compiled import validators

    found: Callable[[object], object] | None = getattr(validators, name, None)
    return found


def refuse(kind: str, version: str, value: object) -> str | None:
    """Return the generated validator's first error in ``value``, "" if valid; None without a generated validator."""
    validate = generated_validator(kind, version)
    if validate is None:
        return None
    try:
        validate(value)
    except ValueError as refused:
        return str(refused)
    return ""


def make_validator(schema: Mapping[str, Any]) -> Validator:
    """Return the validator that reports every error. Raises ``ModuleNotFoundError`` if jsonschema is not installed."""
    from jsonschema import Draft202012Validator, validators  # takes 70 ms, needed only to report errors

    made = validators.extend(Draft202012Validator, {"pattern": _pattern})  # type: ignore[no-untyped-call]
    return cast("Validator", made(schema))


@cache
def compile_pattern(source: str) -> re.Pattern[str]:
    """Return a compiled pattern of a JSON Schema, in which a final ``$`` does not match before a final newline."""
    return re.compile(rf"{source[:-1]}\Z" if source.endswith("$") and not source.endswith("\\$") else source)


def _pattern(_validator: object, source: str, instance: object, _schema: object) -> Iterator[ValidationError]:
    """Yield an error if ``instance`` does not match the pattern ``source``, compiled by ``compile_pattern``."""
    from jsonschema import ValidationError

    if isinstance(instance, str) and not compile_pattern(source).search(instance):
        yield ValidationError("breaks a pattern")


def explain(error: ValidationError) -> Iterator[tuple[Path, str]]:
    """Yield (path, reason) for one schema error; reasons are bounded and do not repeat the document."""
    path, keyword = tuple(error.absolute_path), str(error.validator)
    instance: Any = error.instance
    stated: Any = error.validator_value
    if keyword == "additionalProperties":
        known = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
        yield from (((*path, key), UNKNOWN) for key in instance if key not in known)
    elif keyword == "required":
        yield from (((*path, key), MISSING) for key in stated if key not in instance)
    elif keyword == "type":
        wanted = stated if isinstance(stated, str) else " or ".join(stated)
        yield path, f"is {json_type(instance)}, not {wanted}"
    elif keyword in ("enum", "const"):
        values = stated if keyword == "enum" else [stated]
        yield path, f"is none of {', '.join(json.dumps(v) for v in values)}"[:MAX_REASON]
    else:
        is_key = isinstance(instance, str) and "propertyNames" in error.absolute_schema_path
        yield (*path, instance) if is_key else path, f"breaks {keyword}: {json.dumps(stated)[:MAX_REASON]}"


def json_type(value: object) -> str:
    """Return the JSON Schema name of the type of ``value``."""
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    return "null" if value is None else names.get(type(value), "object" if isinstance(value, dict) else "no JSON value")


def check_definition(kind: str, data: Any, fail: Fail, counts: Callable[[Path, str, object], bool]) -> None:
    """Raise, through ``fail``, the first error of ``data`` against version 1.0 of the schema ``kind``.

    Errors for which ``counts(path, keyword, value)`` is false are ignored.
    """
    if refuse(kind, "1.0", data) == "":
        return
    validator = make_validator(json.loads(read_shipped(f"schemas/{kind}/v1.0.schema.json")))
    for error in validator.iter_errors(data):
        cause = max(error.context or [error], key=lambda inner: (len(inner.path), inner.validator != "type"))
        for path, reason in _explain_types(error) if _is_of_types(error) else explain(cause):
            if all(counts(path, str(each.validator), each.instance) for each in (error, cause)):
                if reason == UNKNOWN:
                    near = similar(str(path[-1]), _known_keys(cause))
                    raise fail(f"unknown key {path[-1]!r}" + f": {near}" * bool(near), *path[:-1], key=str(path[-1]))
                given = cause.instance if reason == MISSING and isinstance(cause.instance, dict) else {}
                near = similar(str(path[-1]), [str(key) for key in given if key not in _known_keys(cause)]) if given else ""
                raise fail(f"{reason}: {near}" if near else reason, *path)


def _known_keys(error: ValidationError) -> list[str]:
    return list(error.schema.get("properties", {})) if isinstance(error.schema, dict) else []


def _is_of_types(error: ValidationError) -> bool:
    """Return whether ``error`` is about alternative schemas that all fail on the type of the value."""
    return bool(error.context) and all(inner.validator == "type" and not inner.path for inner in error.context or ())


def _explain_types(error: ValidationError) -> Iterator[tuple[Path, str]]:
    types = " or ".join(str(inner.validator_value) for inner in error.context or ())
    yield tuple(error.absolute_path), f"is {json_type(error.instance)}, not {types}"


class Fail(Protocol):
    """Makes an error from a reason and its place: the steps (keys and list indices) to it, and a ``key`` there."""

    def __call__(self, reason: str, *steps: str | int, key: str | None = None) -> DataError:
        """Return the error."""


def failing(read: Callable[[], bytes], where: str, hidden: str = "") -> Fail:
    """Return a ``Fail`` for the file ``where``, whose text ``read`` returns; a first step ``hidden`` is not shown."""

    def fail(reason: str, *steps: str | int, key: str | None = None) -> DataError:
        from receipt_cli.definitions.strict_yaml import locate

        visible = steps[1:] if len(steps) > 1 and steps[0] == hidden else steps
        shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in visible).removeprefix(".")
        line = locate(read(), (*steps, key) if key is not None else steps)
        return DataError(f"{shown}: {reason}" if shown else reason, where=f"{where}:{line}")

    return fail


def listed(texts: str | Iterable[str] | None) -> list[str]:
    """Return ``texts`` as a list; a string becomes a list of one, None an empty list."""
    return [texts] if isinstance(texts, str) else list(texts or ())


def similar(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "did you mean …?" with the names of ``known`` similar to ``word``, or ``otherwise`` if there are none."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else otherwise


def below(fail: Fail, *steps: str | int) -> Fail:
    """Return a ``Fail`` for places below ``steps``."""
    return lambda reason, *inner, key=None: fail(reason, *steps, *inner, key=key)
