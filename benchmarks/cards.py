"""Print the card of each log below a folder; exit code 1 if one has more than eight lines or a line wider than 80 columns.

python -m benchmarks.cards FOLDER
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.cells import cell_len as cells

from benchmarks.survey import NOT_LOGS, SUFFIXES
from receipt_cli.errors import ReceiptError
from receipt_cli.receipts.production import Request, produce
from receipt_cli.render.card import MOST_LINES, render_card
from receipt_cli.render.style import Style

WIDTH = 80


def logs(folder: Path) -> Iterator[Path]:
    """Yield the logs below a folder, by name."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in SUFFIXES and path.name not in NOT_LOGS and ".receipt." not in path.name:
            yield path


def card(document: dict[str, Any], log: str) -> str:
    """Return the card of a receipt as printed to a pipe."""
    return render_card(document, Style(width=WIDTH), log=log)


def main() -> int:
    """Print the cards; return 1 if one is too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    seen = large = 0
    for path in logs(folder):
        try:
            shown = card(produce(Request(path=str(path))).document, path.name)
        except ReceiptError as error:
            print(f"# {path.relative_to(folder)}: {error.message}\n")
            continue
        seen += 1
        widest = max(map(cells, shown.splitlines()))
        much = shown.count("\n") > MOST_LINES or widest > WIDTH
        large += much
        print(f"# {path.relative_to(folder)}{': TOO LARGE' if much else ''}\n{shown}")
    print(f"{seen} cards, {large} of them too large")
    return 1 if large or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
