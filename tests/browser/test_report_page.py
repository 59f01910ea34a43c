"""The report in a real browser: drawn, filtered, safe from what receipts say, and alone with itself."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.report_store import varied, write_store
from receipt_cli.cli.commands.report import report as write_report
from receipt_cli.comparison.comparable import DEFAULT
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.report.data import render_page, store_report
from tests.browser.chromium import Page, find_chromium, open_page

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_chromium() is None, reason="no Chromium here")]
DRAWN = "[...document.querySelectorAll('[data-panel]')].filter(p => p.querySelector('svg path.dots, .bar i, tbody tr')).length"
ROWS = "document.querySelectorAll('table.runs tbody:not(.space) tr').length"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    program = find_chromium()
    assert program is not None
    page = open_page(program, tmp_path_factory.mktemp("profile"))
    try:
        page.size(1400, 1000)
        yield page
    finally:
        page.__exit__(None, None, None)


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    def write(runs: int, *, hostile: bool = False) -> Path:
        folder = tmp_path_factory.mktemp("report")
        write_store(folder / "store", 2, runs=runs, hostile=hostile)
        write_report(folder / "store", folder / "report.html", title="Runs")
        return folder / "report.html"

    return write


@pytest.fixture(scope="module")
def report(make: Callable[..., Path]) -> Path:
    return make(75)


def opened(page: Page, path: Path, place: str = "") -> None:
    page.requests.clear()
    page.complaints.clear()
    page.open(f"{path.as_uri()}{place}")


def test_the_panels_are_drawn_and_nothing_is_loaded(page: Page, report: Path) -> None:
    opened(page, report)
    assert page.run(DRAWN) == 10  # the last runs, six panels, failures, what varies and doubts
    assert (
        page.run("document.querySelector('[data-panel=tokens] .legend').textContent")
        == "1xa100-small · small64xh100-large · large8xh100-base · base8xmi300-base · base"
    )
    assert "hardware accelerators" in page.run("document.querySelector('.changes').textContent")
    for place in ("/lanes", "/lane/0", "/runs", "/doubts", "/nowhere"):
        page.go(place)
        assert page.run("document.querySelector('h1').textContent")
    assert page.run("document.querySelectorAll('svg').length") == 0
    assert {address.partition("#")[0] for address in page.requests} == {report.as_uri()}
    assert page.complaints == []


def test_the_policy_lets_no_connection_and_no_markup_through(page: Page, report: Path) -> None:
    opened(page, report)
    blocked = "fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'blocked')"
    assert page.run(blocked) == "blocked"
    assert (
        page.run("(() => { try { document.body.innerHTML += '<b>x</b>'; return 'set' } catch (e) { return e.name } })()")
        == "TypeError"
    )
    assert any("Content Security Policy" in text for text in page.complaints)


def test_a_run_has_an_address_by_each_of_its_names(page: Page, report: Path) -> None:
    opened(page, report, "#/runs")
    link = "document.querySelector('.runs tbody:not(.space) a')"
    digest, name = page.run(f"[{link}.hash.split('/')[2], {link}.textContent]")
    title = "document.querySelector('h1').firstChild.textContent"
    for word in (digest, digest[:12], digest + "0" * 48, name):
        page.go("/runs")
        page.go(f"/run/{word}")
        assert page.run(title) == name
    page.go("/run/nobody")
    assert page.run("document.querySelector('.empty').textContent").startswith("There is no such run, or more than one.")


def test_search_and_filters_narrow_panels_and_table(page: Page, report: Path) -> None:
    opened(page, report)
    page.press("/", "/")
    assert page.run("document.activeElement.id") == "q"
    page.type("64xh100 cuda_oom")
    page.wait("document.getElementById('count').textContent.includes('of 300')")
    found = int(page.run("document.getElementById('count').textContent").split()[0])
    assert 0 < found < 75
    assert page.run("document.querySelector('[data-panel=tokens] .legend').textContent") == "64xh100-large · large"
    page.go("/runs?" + page.run("location.hash").partition("?")[2])
    assert page.run(ROWS) == found
    page.go("/runs?state=failed&preset=base")
    assert page.run("[...document.querySelectorAll('.runs .state')].every(s => s.className.includes('failed'))")
    page.go("/runs?q=nothing-has-this-name")
    assert page.run("document.querySelector('.empty').textContent") == "No run fits the filter."


def test_keys_walk_through_runs_and_charts(page: Page, report: Path) -> None:
    opened(page, report, "#/runs")
    page.run("document.querySelector('.window').focus()")
    page.press("ArrowDown")
    page.press("ArrowDown")
    second = page.run("document.querySelectorAll('.runs tbody:not(.space) tr a')[1].getAttribute('href')")
    page.press("Enter")
    page.wait(f"location.hash === '{second}'")
    page.go("/")
    page.run("document.querySelector('[data-panel=tokens] .chart').focus()")
    page.press("ArrowRight")
    assert "tok/s" in page.run("document.getElementById('tip').textContent")
    page.press("Enter")
    page.wait("location.hash.startsWith('#/run/')")


def test_sorting_puts_what_is_unknown_last(page: Page, report: Path) -> None:
    opened(page, report, "#/runs?sort=-tokens")
    heads = page.run("[...document.querySelectorAll('.runs th')].map(h => h.textContent)")
    rows = f"[...document.querySelectorAll('.runs tbody:not(.space) tr')].map(r => r.cells[{heads.index('lane')}].textContent)"
    assert set(page.run(rows)) == {"8xmi300-base"}
    page.go("/runs?sort=cause")
    failure = heads.index("cause")
    assert page.run(f"document.querySelector('.runs tbody:not(.space) tr').cells[{failure}].textContent").startswith(
        "GPU out of memory"
    )


def test_the_colours_follow_the_reader_and_the_switch(page: Page, report: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    page.media(scheme="light")
    opened(page, report)
    light = page.run(background)
    page.media(scheme="dark")
    dark = page.run(background)
    assert light == "rgb(255, 255, 255)" != dark
    page.run("document.getElementById('theme').click()")  # light, whatever the reader prefers
    assert page.run(background) == light
    page.run("document.getElementById('theme').click()")
    page.media(scheme="light")
    assert page.run(background) == dark
    page.run("document.getElementById('theme').click()")
    assert page.run(background) == light


def test_what_receipts_say_is_text(page: Page, make: Callable[..., Path]) -> None:
    opened(page, make(10, hostile=True))
    for place in ("/", "/lanes", "/lane/0", "/runs", "/doubts", page.run("document.querySelector('.strip a.failed').hash")[1:]):
        page.go(place)
        assert page.run("document.title") != "owned"
        assert page.run("document.querySelectorAll('img, iframe, object, main script, main style').length") == 0
    assert page.run("document.querySelector('.tail').textContent").startswith("</script><script>")
    assert page.run("document.querySelectorAll('script').length") == 2
    assert page.complaints == []


def test_five_thousand_runs_stay_fluid(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(render_page(store_report(varied(2, runs=1250), DEFAULT, load_registry(), title="Runs")))
    assert path.stat().st_size < 8_000_000
    opened(page, path)
    assert page.run(DRAWN) == 10
    page.go("/runs")
    assert page.run(ROWS) < 80  # of 5000: only those in sight
    page.run("document.querySelector('.window').scrollTop = 1e6")
    last = "[...document.querySelectorAll('.runs tbody:not(.space) tr')].pop().cells[0].textContent"
    page.wait(f"{last}.startsWith('2026-01-01')")
    elements = page.run(
        "location.hash = '#/'; new Promise(done => setTimeout(() => done(document.querySelectorAll('*').length), 300))"
    )
    assert elements < 3000


def test_the_page_of_one_log_has_its_curves(page: Page, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    losses = [f"{4 - n / 100:.4f}" for n in range(200)] + ["nan"] * 50
    losses[100] = "9.0000"
    log.write_text("".join(f"iter {n}: loss {loss}, time 21.00ms, mfu 2.00%\n" for n, loss in enumerate(losses)))
    command = [sys.executable, "-m", "receipt_cli", "parse", log, "--html", tmp_path / "run.html", "--name", "one <b>run</b>"]
    subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).resolve().parents[2])
    opened(page, tmp_path / "run.html")
    assert page.run("document.querySelector('h1').firstChild.textContent") == "one <b>run</b>"
    assert page.run("[...document.querySelectorAll('[data-curve]')].map(c => c.dataset.curve)") == ["loss"]
    assert page.run("document.querySelectorAll('[data-curve=loss] path.bad').length") == 25  # of 50, evenly
    note = page.run("document.querySelector('[data-curve=loss] .note').textContent")
    assert note == "250 records · 50 not finite (red) · 1 jump (orange)"
    marks, width = "[...document.querySelectorAll('[data-curve=loss] path.bad')]", "p.ownerSVGElement.viewBox.baseVal.width"
    assert page.run(f"{marks}.every(p => p.getBBox().x <= {width})")
    jump, peak = (f"document.querySelector('[data-curve=loss] path.{name}').getBBox()" for name in ("jump", "line"))
    assert page.run(f"Math.abs({jump}.y - {peak}.y) < 0.2")
    doubts = page.run("document.querySelector('[data-panel=doubts] ul').textContent")
    assert "1 jump of loss, at step 100" in doubts
    assert page.complaints == []


def test_a_failed_run_shows_its_card_and_the_end_of_its_log_on_any_screen(page: Page, tmp_path: Path) -> None:
    log = tmp_path / "my-run.log"
    noise = "".join(f"a line of no meaning, number {n}\n" for n in range(60))
    steps = "".join(f"iter {n}: loss {4 - n / 100:.4f}, time 21.00ms, mfu 2.00%\n" for n in range(50))
    raised = 'Traceback (most recent call last):\n  File "train.py", line 7, in main\n    step()\nKeyError: "tokens"\n'
    log.write_text(steps + noise + raised + "a line after the error\n" * 30)
    command = [sys.executable, "-m", "receipt_cli", "parse", log, "--html", tmp_path / "run.html"]
    subprocess.run(command, capture_output=True, cwd=Path(__file__).resolve().parents[2])
    try:
        for width in (1400, 400):
            page.size(width, 1000)
            opened(page, tmp_path / "run.html")
            assert page.run("document.title") == "my-run.log · receipt"
            assert page.run("document.querySelector('pre.card').textContent").startswith(
                "✗ failed    KeyError at train.py:7 in main"
            )
            error = "document.querySelector('.tail b.bad')"
            assert page.run(f"{error}.textContent") == 'KeyError: "tokens"'
            below = page.run(f"(b => b.offsetTop + b.offsetHeight - b.parentNode.scrollTop - b.parentNode.clientHeight)({error})")
            assert -60 < below <= 0  # in the last lines of the box
            assert page.run("document.documentElement.scrollWidth <= window.innerWidth")
            stacked = page.run("getComputedStyle(document.querySelector('main tbody td:not(.n)')).display")
            assert stacked == ("block" if width == 400 else "table-cell")
    finally:
        page.size(1400, 1000)
    assert page.complaints == []
