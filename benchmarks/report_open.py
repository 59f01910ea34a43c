"""Measure the milliseconds from navigation to a drawn page for the pages of a report, in a headless Chromium.

    python -m benchmarks.report_open REPORT [--times 5]

The pages are the overview and the table of runs. A page is drawn after its script has made panels or rows and the browser
has laid them out. Each line has the least and the largest time of several openings.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.browser.chromium import Page, find_chromium, open_page

_LAID_OUT = "new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)))"


def opened(page: Page, address: str) -> float:
    """Return the milliseconds from navigation to layout of the page."""
    page.call("Page.navigate", url="about:blank")
    page.call("Page.navigate", url=address)
    page.wait("document.documentElement?.dataset.ready === 'yes'")
    return float(page.run(_LAID_OUT))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    program = find_chromium()
    if program is None:
        sys.exit("no Chromium here")
    address = given.report.resolve().as_uri()
    with tempfile.TemporaryDirectory(prefix="receipt-browser-") as profiles:
        page = open_page(program, Path(profiles))
        try:
            page.size(1400, 1000)
            print(f"{given.report}: {given.report.stat().st_size / 1e6:.1f} MB")
            for title, place in (("overview", "#/"), ("table of runs", "#/runs")):
                taken = [opened(page, address + place) for _ in range(given.times)]
                print(f"{title:15} {min(taken):6.0f} to {max(taken):6.0f} ms")
        finally:
            page.__exit__(None, None, None)


if __name__ == "__main__":
    main()
