"""Render a report document as one HTML file that loads nothing and runs only its own script."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping
from importlib import resources
from typing import Any

from receipt_cli.report.packing import compact

SCRIPTS = (
    "format.js",
    "model.js",
    "chart.js",
    "panels.js",
    "lanes.js",
    "overlay.js",
    "runs.js",
    "run.js",
    "documents.js",
    "main.js",
)
STYLE = "report.css"
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""In JSON these characters occur only in texts; escaped, they cannot end the element or begin a comment."""


def render_page(report: Mapping[str, Any]) -> bytes:
    """Return the report as HTML in UTF-8. The same report gives the same bytes.

    The page's policy allows only its one style and one script, by their digests, and no connection. Values of receipts are in a
    block of JSON, which the script adds to the page as text, never as markup.
    """
    script = "(function () {\n'use strict';\n" + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();\n"
    style = _asset(STYLE)
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    filled = {
        "POLICY": html.escape(policy, quote=False),
        "TITLE": html.escape(f"{report['title']} · receipt"),
        "STYLE": style,
        "PLAIN": html.escape(report["plain"], quote=False),
        "DATA": compact({key: value for key, value in report.items() if key != "plain"}).translate(_ESCAPES),
        "SCRIPT": script,
    }
    pieces = _asset("page.html").split("@@")  # text, name, text, name, …, text
    return "".join(filled[piece] if place % 2 else piece for place, piece in enumerate(pieces)).encode("utf-8", "replace")


def _asset(name: str) -> str:
    return resources.files("receipt_cli.report").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
