"""Pages of the site that are made when it is built: the README and its kin, fields of the schemas, measured numbers.

MkDocs calls the functions named ``on_…``. Source files link each other as they lie in the repository; here the links
lead to the pages of the site, and a link to a file without a page becomes its name.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
COPIES = {
    "README.md": "index.md",
    "grammars/README.md": "trainers.md",
    "schemas/README.md": "schemas.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files outside of ``docs/`` that are pages of the site."""
RESULTS = "benchmarks/results"
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def site_page(path: str) -> str | None:
    """Return the page of the site that a file of the repository becomes, or None."""
    if path in COPIES:
        return COPIES[path]
    page = path.removeprefix("docs/")
    return page if page != path and page.endswith(".md") and (ROOT / path).is_file() else None


def relink(text: str, folder: str) -> str:
    """Return ``text`` of a file in ``folder`` with its links led to the pages of the site."""

    def lead(link: re.Match[str]) -> str:
        label, target = link[1], link[2]
        path, mark, anchor = target.partition("#")
        if not path or "://" in target:
            return link[0]
        page = site_page(posixpath.normpath(posixpath.join(folder, path)))
        return f"[{label}]({page}{mark}{anchor})" if page else label if label.startswith("`") else f"`{label}`"

    parts = FENCE.split(text)
    return "".join(part if at % 2 else LINK.sub(lead, part) for at, part in enumerate(parts))


def _kind(node: dict[str, Any]) -> str:
    if "const" in node:
        return f"`{json.dumps(node['const'])}`"
    if "enum" in node:
        return " ".join(f"`{json.dumps(value)}`" for value in node["enum"])
    kinds = node.get("type", "any")
    return ", ".join(kinds) if isinstance(kinds, list) else str(kinds)


def fields(schema: dict[str, Any], node: dict[str, Any], pointer: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield pointer, type and description of each field of a schema below ``node``; ``*`` stands for any key or place."""
    node = _resolved(schema, node)
    for name, below in node.get("properties", {}).items():
        place, shown = f"{pointer}/{name}", _resolved(schema, below)
        yield place, _kind(shown), below.get("description") or shown.get("description", "")
        yield from fields(schema, shown, place)
    for keyword in ("items", "additionalProperties"):
        below = node.get(keyword)
        if isinstance(below, dict):
            yield from fields(schema, below, f"{pointer}/*")
    for choice in (*node.get("oneOf", ()), *node.get("anyOf", ())):
        yield from fields(schema, choice, pointer)


def _resolved(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    reference = node.get("$ref")
    found = schema["$defs"][reference.removeprefix("#/$defs/")] if reference else node
    choices = [each for each in found.get("anyOf", found.get("oneOf", ())) if each.get("type") != "null"]
    return _resolved(schema, choices[0] | {"description": found.get("description", "")}) if len(choices) == 1 else found


def field_page() -> str:
    """Return the page of all fields of the newest schema of each kind of document."""
    text = "# Fields\n\nEvery field of the newest schema of each kind of document, generated from the schemas.\n"
    for folder in ("receipt", "header", "evaluation", "ablation", "gpu_profile"):
        newest = max((ROOT / "schemas" / folder).glob("v*.schema.json"), key=lambda path: _version(path.name))
        schema = json.loads(newest.read_text("utf-8"))
        text += f"\n## {folder} {newest.name.removeprefix('v').removesuffix('.schema.json')}\n\n{schema['description']}\n\n"
        text += "| field | type | meaning |\n|---|---|---|\n"
        for pointer, kind, about in dict.fromkeys(fields(schema, schema)):
            text += f"| `{pointer}` | {_cell(kind)} | {_cell(about)} |\n"
    return text


def _version(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def number_page() -> str:
    """Return the page of what was measured: each committed result, the figures of a JSON file as a table."""
    text = "# Numbers\n\nWhat was measured, from the results that are committed with the code.\n"
    for path in sorted((ROOT / RESULTS).iterdir(), key=lambda path: (path.suffix, path.name)):
        if path.suffix == ".md":
            body = re.sub(r"^#", "##", relink(path.read_text("utf-8"), RESULTS), flags=re.MULTILINE)
            text += f"\n{body}\n"
        elif path.suffix == ".json" and not path.with_suffix(".md").exists():
            figures = json.loads(path.read_text("utf-8"))
            rows = "".join(f"| {_cell(key)} | {_cell(shown)} |\n" for key, shown in _scalars(figures))
            text += f"\n## {path.stem.replace('_', ' ')}\n\n| figure | value |\n|---|--:|\n{rows}"
    return text


def _scalars(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the single figures of a result by their path; rows of a series are counted."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _scalars(below, f"{name}, {key}" if name else str(key))
    elif isinstance(value, list):
        yield name, f"{len(value)} rows"
    else:
        yield name, str(value)


def generated() -> dict[str, str]:
    """Return the text of each page that is not a file of ``docs/``."""
    copies = {page: relink((ROOT / path).read_text("utf-8"), posixpath.dirname(path)) for path, page in COPIES.items()}
    return copies | {"fields.md": field_page(), "numbers.md": number_page()}


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to the site."""
    from mkdocs.structure.files import File

    for name, text in generated().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page of ``docs/`` with its links led to pages of the site."""
    return markdown if page.file.src_path in generated_names() else relink(markdown, "docs")


def generated_names() -> set[str]:
    """Return the names of the generated pages."""
    return {*COPIES.values(), "fields.md", "numbers.md"}
