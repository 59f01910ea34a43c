"""Set the version of the program, or draft the next version of a definition beside the released one.

``set 1.0.0rc1`` writes the version everywhere; a release gets its date, and headings in the changelogs. ``set 1.0.0rc2.dev0``
opens the development of the next one.

``keep`` records the derived bytes of every golden receipt in ``tests/tools/released.txt``, and copies some receipts to
``fixtures/released/VERSION``: the tests compare what later programs derive.

``draft NAME``: a grammar (``nanogpt``), a kind of ``schemas/index.yaml`` (``receipt``, ``metrics``), ``markers``, or ``rules``
(``derive/N``). The released file stays; its copy has the next version and is a draft. A grammar that has been copied is
deprecated: logs are read by the new one, and receipts of the old one are verified by it.
"""

import argparse
import datetime
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.compile(r'(?m)^__version__ = "(?P<version>[^"]+)"$')
RULES = re.compile(r'(?m)^RULES = "derive/(\d+)"$')
NUMBER = re.compile(r"(?m)^version: (\d+)$")
KEPT = ("nanogpt", "hf-trainer", "megatron-lm", "torchtitan", "ultralytics", "xgboost", "generic", "deepspeed")
"""Folders of recorded logs of which a release keeps a receipt: of several kinds of format."""
RELEASED = "tests/tools/released.txt"
"""A line for each golden receipt of the last release: rules, digest of the inputs, digest of the derived blocks, name."""
MARKERS = "grammars/markers"
"""A grammar's folder by its place, but not in the index: its digest is in every receipt."""


class Refused(Exception):
    """What was asked for cannot be done; nothing was written."""


def read(path: str) -> str:
    """Return the text of a file, named from the root."""
    return (ROOT / path).read_text("utf-8")


def write(path: str, text: str) -> None:
    """Write a file, named from the root."""
    (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
    (ROOT / path).write_text(text, "utf-8")


def program_version() -> str:
    """Return ``__version__``."""
    found = VERSION.search(read("receipt_cli/__init__.py"))
    return found["version"]


def set_version(version: str, date: str) -> Iterator[str]:
    """Set the version; where it is a release (no ``.dev``), also date, citation and headings. Yield the paths of what changed."""
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?(\.dev\d+)?", version):
        raise Refused(f"{version!r} is no version such as 1.0.0rc1 or 1.0.0rc2.dev0")
    texts = {"receipt_cli/__init__.py": VERSION.sub(f'__version__ = "{version}"', read("receipt_cli/__init__.py"))}
    if ".dev" not in version:
        if f"## [{version}]" in read("CHANGELOG.md"):
            raise Refused(f"CHANGELOG.md: {version} has been released")
        head = "## [Unreleased]\n"
        texts["CHANGELOG.md"] = read("CHANGELOG.md").replace(head, f"{head}\n## [{version}] - {date}\n", 1)
        citation = re.sub(r"(?m)^(version|date-released): .*\n", "", read("CITATION.cff"))
        texts["CITATION.cff"] = f"{citation}version: {version}\ndate-released: '{date}'\n"
        changes = read("schemas/CHANGELOG.md")
        texts["schemas/CHANGELOG.md"] = changes.replace("## Drafts\n", f"## Released with {version}\n")
    for path, text in texts.items():
        if text != read(path):
            write(path, text)
            yield path


def keep() -> Iterator[str]:
    """Record what this release derives of the recorded logs. Yield the paths of what changed."""
    from receipt_cli.receipts.assembly import derived_bytes

    version, lines = program_version(), []
    if ".dev" in version:
        raise Refused(f"{version} is no release")
    kept: set[str] = set()
    for golden in sorted((ROOT / "fixtures" / "logs").glob("*/*.receipt.json")):
        document = json.loads(golden.read_bytes())
        name = golden.relative_to(ROOT / "fixtures" / "logs").as_posix()
        rules, derived = document["derivation"]["rules"], hashlib.sha256(derived_bytes(document)).hexdigest()
        lines.append(f"{rules} {inputs_digest(document)} {derived} {name}\n")
        if golden.parent.name in KEPT and golden.parent.name not in kept:
            kept.add(golden.parent.name)
            document["derivation"]["tool_version"] = version
            write(f"fixtures/released/{version}/{name}", json.dumps(document, ensure_ascii=False) + "\n")
            yield f"fixtures/released/{version}/{name}"
    write(RELEASED, "".join(lines))
    yield RELEASED


def inputs_digest(document: dict[str, Any]) -> str:
    """Return the digest of what a receipt was derived from, but for the rules in code: log, definitions and options."""
    derivation = document["derivation"]
    definitions = ("grammars", "markers", "registry", "peaks", "options")
    inputs = [derivation["log"]["sha256"], *(derivation.get(key) for key in definitions)]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def draft(name: str) -> Iterator[str]:
    """Draft the next version of ``name``; yield the paths of what changed."""
    since, dev, _ = program_version().partition(".dev")
    if not dev:
        raise Refused(f"{since} is the version of a release: open the next one first, `make version VERSION=NEXT.dev0`")
    name, _, version = name.partition("@v")
    grammars, schemas = (yaml.safe_load(read(f"{kind}/index.yaml"))[kind] for kind in ("grammars", "schemas"))
    if name == "rules":
        yield from draft_rules()
    elif name == "markers":
        yield from draft_markers()
    elif any(entry["id"] == name for entry in grammars):
        yield from draft_grammar(grammars, name, int(version or 0), since)
    elif any(entry["kind"] == name for entry in schemas):
        yield from draft_schema(schemas, name, since)
    else:
        raise Refused(f"{name!r} is no grammar, no kind of schemas/index.yaml, and neither `markers` nor `rules`")


def draft_rules() -> Iterator[str]:
    """Raise ``derive/N``."""
    path = "receipt_cli/receipts/versions.py"
    write(path, RULES.sub(lambda found: f'RULES = "derive/{int(found[1]) + 1}"', read(path)))
    yield path


def draft_markers() -> Iterator[str]:
    """Copy the newest catalogue of failure markers."""
    number = max(int(path.stem[1:]) for path in (ROOT / MARKERS).glob("v*.yaml"))
    if f"{MARKERS}/v{number}.yaml" not in read("tests/tools/frozen.txt"):
        raise Refused(f"{MARKERS}/v{number}.yaml is a draft: change it")
    yield from copy_numbered(MARKERS, number, number + 1)


def copy_numbered(folder: str, number: int, after: int) -> Iterator[str]:
    """Copy ``vN.yaml`` to another number, and let the code that names it name the copy."""
    old, new = f"{folder}/v{number}.yaml", f"{folder}/v{after}.yaml"
    text, count = NUMBER.subn(f"version: {after}", read(old), count=1)
    if not count:
        raise Refused(f"{old}: has no line `version: {number}`")
    write(new, text)
    yield new
    yield from rename_in_code(f'{Path(folder).name}/v{number}.yaml"', f'{Path(folder).name}/v{after}.yaml"')


def rename_in_code(old: str, new: str) -> Iterator[str]:
    """Replace a text in the package; yield the paths of what changed."""
    for path in sorted((ROOT / "receipt_cli").rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        text = path.read_text("utf-8")
        if "_compiled" not in path.parts and old in text:
            write(where, text.replace(old, new))
            yield where


def draft_grammar(index: list[dict[str, Any]], name: str, number: int, since: str) -> Iterator[str]:
    """Copy a version of a grammar, by default the newest; the copy deprecates it."""
    versions = {entry["version"]: entry for entry in index if entry["id"] == name}
    newest = max(versions)
    entry = versions.get(number or newest)
    if entry is None:
        raise Refused(f"there is no {name}@v{number}")
    if entry["status"] != "released":
        raise Refused(f"grammars/{entry['path']} is {entry['status']}, and only a released version is copied")
    number, after = entry["version"], newest + 1
    yield from copy_numbered(f"grammars/{name}", number, after)
    if name == "generic":
        yield from rename_in_code(f'"generic@v{number}"', f'"generic@v{after}"')
    new = {**entry, "version": after, "path": f"{name}/v{after}.yaml", "status": "draft", "since": since}
    entry |= {"status": "deprecated", "until": since}
    index.insert(index.index(versions[newest]) + 1, new)
    write("grammars/index.yaml", yaml.safe_dump({"grammars": index}, sort_keys=False))
    yield "grammars/index.yaml"
    write("grammars/CHANGELOG.md", f"{read('grammars/CHANGELOG.md')}- `{name}@v{after}`: replaces `@v{number}`.\n")
    yield "grammars/CHANGELOG.md"


def draft_schema(index: list[dict[str, Any]], kind: str, since: str) -> Iterator[str]:
    """Copy the newest version of a schema to its next minor version, or of a table (metrics, peaks) to its next number."""
    entry = [entry for entry in index if entry["kind"] == kind][-1]
    version, old = entry["version"], f"schemas/{entry['path']}"
    if entry["status"] == "draft":
        raise Refused(f"{old} is a draft: change it")
    *major, minor = version.split(".")
    after = ".".join([*major, str(int(minor) + 1)])
    new = old.replace(f"/v{version}.", f"/v{after}.")
    if major:
        text = read(old).replace(f":{kind}:{version}", f":{kind}:{after}").replace(f'"{kind}/{version}"', f'"{kind}/{after}"')
        write(new, text)
        yield new
        yield from rename_in_code(f'SCHEMA_VERSION = "{kind}/{version}"', f'SCHEMA_VERSION = "{kind}/{after}"')
        yield from copy_examples(kind, version, after)
    else:
        yield from copy_numbered(f"schemas/{kind}", int(version), int(after))
    added = {**entry, "version": after, "path": new.removeprefix("schemas/"), "status": "draft", "since": since}
    index.insert(index.index(entry) + 1, added)
    write("schemas/index.yaml", yaml.safe_dump({"schemas": index}, sort_keys=False))
    yield "schemas/index.yaml"
    changes = read("schemas/CHANGELOG.md").rstrip()
    heading = "" if "## Drafts\n" in changes else "\n## Drafts\n\n"
    write("schemas/CHANGELOG.md", f"{changes}\n{heading}- `{kind}/{after}`: as `{kind}/{version}`.\n")
    yield "schemas/CHANGELOG.md"


def copy_examples(kind: str, version: str, after: str) -> Iterator[str]:
    """Copy the two smallest valid examples of a document."""
    folder = ROOT / "fixtures" / "receipts"
    examples = sorted((folder / f"{kind}-{version}" / "valid").glob("*.json"), key=lambda path: path.stat().st_size)
    for path in examples[:2]:
        new = f"fixtures/receipts/{kind}-{after}/valid/{path.name}"
        write(new, path.read_text("utf-8").replace(f'"{kind}/{version}"', f'"{kind}/{after}"'))
        yield new
    if examples:
        expected = f"fixtures/receipts/{kind}-{{}}/expectations.yaml"
        write(expected.format(after), read(expected.format(version)).partition("\n")[0] + "\n{}\n")
        yield expected.format(after)


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    setting = commands.add_parser("set")
    setting.add_argument("version")
    setting.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    commands.add_parser("keep")
    commands.add_parser("draft").add_argument("name")
    options = parser.parse_args()
    try:
        if options.command == "set":
            changed = list(set_version(options.version, options.date))
        else:
            changed = list(keep() if options.command == "keep" else draft(options.name))
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    print("\n".join(changed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
