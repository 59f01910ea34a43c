"""Load the definitions of a site from their folders, and check each against its own samples."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from receipt_cli.authoring.lint import sample_findings
from receipt_cli.definitions.failure_markers import Catalogue, Marker, load_catalogue, parse_catalogue
from receipt_cli.definitions.metrics import Registry, load_registry, with_aliases
from receipt_cli.definitions.search_path import LOCAL, Folder
from receipt_cli.definitions.strict_yaml import read_yaml
from receipt_cli.errors import DataError
from receipt_cli.grammar.catalog import list_grammars, read_file
from receipt_cli.grammar.model import Grammar
from receipt_cli.grammar.parse import check_patterns, load_grammar
from receipt_cli.grammar.site import Site

MAX_FILES = 200
"""Most grammars in one folder."""
GRAMMARS, MARKERS, ALIASES = "grammars", "markers.yaml", "aliases.yaml"


@cache
def load_site(folders: tuple[Folder, ...], notes: tuple[str, ...] = ()) -> Site:
    """Return the definitions in ``folders``; for equal grammar ids and versions, the first folder takes precedence.

    Raises ``DataError`` for a definition that is broken or contradicts its own samples.
    """
    shipped = {entry.id for entry in list_grammars()}
    grammars: dict[str, Grammar] = {}
    sources: dict[str, str] = {}
    texts: dict[str, bytes] = {}
    markers: list[Catalogue] = []
    registry: Registry | None = None
    for folder in folders:
        used = False
        for path in _files(folder):
            text, where = read_file(str(path)), str(path)
            used = True
            if path.name == MARKERS and path.parent == Path(folder.path):
                markers.append(_catalogue(text, where))
            elif path.name == ALIASES and path.parent == Path(folder.path):
                registry = with_aliases(registry or load_registry(), text, where)
            else:
                grammar = _grammar(text, where, shipped)
                if grammar.ref not in grammars:
                    grammars[grammar.ref], sources[grammar.ref], texts[grammar.ref] = grammar, where, text
        if used and folder.origin == LOCAL:
            notes = (*notes, f"used the definitions in {folder.path}")
    ordered = tuple(grammars[ref] for ref in sorted(grammars, key=lambda ref: (grammars[ref].id, grammars[ref].version)))
    return Site(ordered, _joined(markers) if markers else None, registry, sources, texts, notes)


def _files(folder: Folder) -> Iterator[Path]:
    """Yield the regular files with definitions in a folder, without links in a ``.receipt`` folder."""
    root = Path(folder.path)
    inside = root / GRAMMARS
    trusted = inside.is_dir() and not (folder.origin == LOCAL and inside.is_symlink())
    found = sorted(p for p in inside.iterdir() if p.suffix in (".yaml", ".yml")) if trusted else []
    if len(found) > MAX_FILES:
        raise DataError(f"more than {MAX_FILES} grammars in one folder", where=str(inside))
    for path in [*found, root / MARKERS, root / ALIASES]:
        try:
            state = path.lstat() if folder.origin == LOCAL else path.stat()
        except OSError:
            continue
        if stat.S_ISREG(state.st_mode):
            yield path


def _grammar(text: bytes, where: str, shipped: set[str]) -> Grammar:
    """Return a grammar without samples, after a check against its samples."""
    grammar = check_patterns(load_grammar(text, where, with_samples=True))
    if grammar.id in shipped:
        raise DataError(f"{grammar.id} is the id of a shipped grammar", where=where, try_="give the grammar another id")
    found = next(iter(sample_findings(grammar, text)), None)
    if found is not None:
        why = f"in {found.snippet}" if found.snippet else ""
        raise DataError(found.reason, where=found.where, why=why, try_=f"receipt grammar lint {where}")
    return load_grammar(text, where)


def _catalogue(text: bytes, where: str) -> Catalogue:
    read_yaml(text, where)  # safety checks, which shipped definitions skip
    catalogue = parse_catalogue(text, where)
    for marker in catalogue.markers:
        wrong = _wrong_sample(marker)
        if wrong is not None:
            raise DataError(f"{marker.id}: {wrong[0]}", where=where, why=repr(wrong[1].decode("utf-8", "replace")[:200]))
    return catalogue


def _wrong_sample(marker: Marker) -> tuple[str, bytes] | None:
    """Return (fault, line) of the first sample that a marker does not match, or counter sample that it matches; or None."""
    import regex

    try:
        missed = next((sample for sample in marker.samples if marker.search(sample) is None), None)
        struck = next((each.line for each in marker.counter_samples if marker.search(each.line) is not None), None)
    except regex.error as error:
        return f"pattern does not compile: {error}", b""
    if missed is not None:
        return "sample is not matched", missed
    return ("counter sample is matched", struck) if struck is not None else None


def _joined(own: Sequence[Catalogue]) -> Catalogue:
    """Return the shipped markers followed by the site's; the digest covers all files."""
    base = load_catalogue()
    markers = list(base.markers)
    for catalogue in own:
        known = {marker.id for marker in markers}
        twice = next((marker.id for marker in catalogue.markers if marker.id in known), None)
        if twice is not None:
            raise DataError(f"the failure marker {twice} is defined twice", why="ids must be unique")
        markers += catalogue.markers
    digest = hashlib.sha256("".join([base.sha256, *(catalogue.sha256 for catalogue in own)]).encode()).hexdigest()
    retry = {**{key: value for catalogue in own for key, value in catalogue.retry.items()}, **base.retry}
    return replace(base, sha256=digest, markers=tuple(markers), retry=retry)
