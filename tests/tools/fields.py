"""The newest schema of receipts → ``receipt_cli/api/fields.pyi``: the types of its objects, for annotations."""

import json
import textwrap
from pathlib import Path
from typing import Any

from receipt_cli.api.view import View, receipt_schema, resolved

PATH = Path("receipt_cli/api/fields.pyi")
WIDTH = 120
AS_ITEM = ("values",)
"""Fields that are read as an item alone (``problem["values"]``): a mapping has a method of that name."""
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def stub() -> str:
    """Return the text of the stub. Raises ``ValueError`` for a field that a view's own attribute would hide."""
    schema, classes = receipt_schema(), _Classes()
    classes.type_of(schema, "ReceiptFields")
    head = f'"""Written by `make goldens` from the schema {schema["title"]!r}: change that instead."""\n\n'
    imports = "from collections.abc import Mapping\nfrom typing import Any, Literal\n\nfrom receipt_cli.api.view import View\n"
    return head + imports + "".join(f"\n{text}" for text in classes.texts.values())


class _Classes:
    """The classes made so far, by name, in the order in which they are first needed."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def type_of(self, node: dict[str, Any], name: str) -> str:
        """Return the type of what ``node`` describes; an object with fields becomes the class ``name``."""
        if "$ref" in node:
            name, node = _camel(node["$ref"].rpartition("/")[2]), {**resolved(node), **node}  # which may narrow the type
        if "const" in node:
            return "str"
        if "enum" in node:
            values = [value for value in node["enum"] if value is not None]
            return f"Literal[{', '.join(map(json.dumps, values))}]{' | None' if None in node['enum'] else ''}"
        kinds = [node["type"]] if isinstance(node["type"], str) else node["type"]
        return " | ".join(_PLAIN.get(kind) or self._composed(kind, node, name) for kind in kinds)

    def _composed(self, kind: str, node: dict[str, Any], name: str) -> str:
        if kind == "array":
            return f"tuple[{self.type_of(node['items'], f'{name}Item')}, ...]"
        if "properties" not in node:
            values = node["additionalProperties"]
            return f"Mapping[str, {'Any' if values is True else self.type_of(values, f'{name}Value')}]"
        if name not in self.texts:
            self.texts[name] = ""  # its place, before those of the classes that it needs
            body = "".join(self._field(key, child, key in node["required"], name) for key, child in node["properties"].items())
            self.texts[name] = f"class {name}(View):\n{body}"
        return name

    def _field(self, key: str, node: dict[str, Any], required: bool, owner: str) -> str:
        if key in AS_ITEM:
            return ""
        if hasattr(View, key):
            raise ValueError(f"a view's own attribute hides the field {key} of {owner}")
        base = "" if owner == "ReceiptFields" else owner
        found = self.type_of(node, base + _camel(key))
        found += "" if required or found.endswith("None") else " | None"
        text = textwrap.fill(
            f'"""{node["description"]}"""', WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False
        )
        return f"    @property\n    def {key}(self) -> {_folded(found)}:\n{text}\n"


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _folded(type_: str) -> str:
    """Return a long list of literals in lines."""
    if len(type_) < 80 or not type_.startswith("Literal["):
        return type_
    values, _, rest = type_.removeprefix("Literal[").partition("]")
    lines = textwrap.fill(values, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return f"Literal[\n{lines},\n    ]{rest}"
