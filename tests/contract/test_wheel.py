"""What is installed is what was tested: wheel and sdist carry every file and work outside the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.slow

KINDS = ("grammars", "schemas")
PACKAGED = (*KINDS, "receipt_cli", "tests", "fixtures")
JUNK = {".pyc", ".pyo"}


def run(*command: str | Path, cwd: Path) -> str:
    """Return what ``command`` prints; it sees neither the checkout nor the settings of this environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RECEIPT_"))}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def files_under(root: Path, folder: str) -> set[str]:
    found = {p.relative_to(root).as_posix() for p in (root / folder).rglob("*") if p.is_file() and p.suffix not in JUNK}
    assert found, f"{folder}/ is empty"
    return found


def build_wheel(source: Path, target: Path) -> Path:
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet")
    run(sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", target, source, cwd=target)
    (wheel,) = target.glob("*.whl")
    return wheel


def contents(wheel: Path) -> dict[str, int]:
    """Return path → CRC of everything in ``wheel`` except its own table of contents."""
    with ZipFile(wheel) as archive:
        return {i.filename: i.CRC for i in archive.infolist() if not i.filename.endswith("/RECORD")}


@pytest.fixture(scope="module")
def source(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout: a build compiles into its source, which the programs of other tests import meanwhile."""
    copy = tmp_path_factory.mktemp("source") / "receipt"
    skipped = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "_compiled", "_native*.so", "*.part")
    shutil.copytree(root, copy, ignore=skipped)
    return copy


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it; the dependencies are those that the tests run with."""
    home = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", home / "venv", cwd=home)
    python = home / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "-q")
    run(*pip, wheel, cwd=home)
    (site,) = (home / "venv").glob("lib/python*/site-packages")
    # Lines of this file are not searched for further .pth files, so an editable install stays out of sight.
    paths = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (site / "dependencies.pth").write_text("\n".join(paths) + "\n")
    return home


def test_wheel_carries_every_data_file(root: Path, wheel: Path) -> None:
    packed = {name.removeprefix("receipt_cli/") for name in contents(wheel)}
    wanted = files_under(root, "grammars") | files_under(root, "schemas")
    assert {name for name in packed if name.startswith(tuple(f"{kind}/" for kind in KINDS))} == wanted


def test_wheel_carries_every_module_and_its_types(source: Path, wheel: Path) -> None:
    names = {
        n
        for n in contents(wheel)
        if n.startswith("receipt_cli/") and not n.startswith(("receipt_cli/grammars/", "receipt_cli/schemas/"))
    }
    assert names == files_under(source, "receipt_cli")
    assert "receipt_cli/py.typed" in names


def test_sdist_builds_the_same_wheel(source: Path, wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=source)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        packed = {member.name.partition("/")[2] for member in archive if member.isfile()}
    for folder in PACKAGED:
        missing = files_under(source, folder) - packed
        made = {name for name in missing if name.startswith("receipt_cli/_compiled/") or name.endswith(".so")}
        assert missing - made == set()  # each build makes these
    (tmp_path / "again").mkdir()
    assert contents(build_wheel(sdist, tmp_path / "again")) == contents(wheel)


def test_installed_package_is_the_one_in_use(root: Path, installed: Path) -> None:
    python = installed / "venv" / "bin" / "python"
    where = "import receipt_cli, receipt_cli.definitions.resources as r; print(receipt_cli.__file__, r.data_root('grammars'))"
    package, grammars = run(python, "-c", where, cwd=installed).split()
    assert Path(package).is_relative_to(installed)
    assert Path(grammars).is_relative_to(installed)


@pytest.mark.parametrize("command", ["receipt", "receipt-cli", "python -m receipt_cli"])
def test_installed_command_knows_its_version(installed: Path, command: str) -> None:
    from receipt_cli import __version__

    script, *words = command.split()
    assert __version__ in run(installed / "venv" / "bin" / script, *words, "--version", cwd=installed)


def test_installed_command_finds_every_grammar(root: Path, installed: Path) -> None:
    listed = run(installed / "venv" / "bin" / "receipt", "grammar", "list", cwd=installed)
    ids = {path.parent.name for path in (root / "grammars").glob("*/v*.yaml")} - {"markers"}
    assert ids
    assert {name for name in ids if name not in listed} == set()


def test_an_installed_start_reads_no_yaml(root: Path, installed: Path) -> None:
    log = min((root / "fixtures" / "logs" / "nanogpt").glob("*.log"))
    blocked = "from receipt_cli.definitions import strict_yaml\nstrict_yaml.read_yaml = None\n"
    program = f"{blocked}from receipt_cli.cli.main import main\nmain()"
    python = installed / "venv" / "bin" / "python"
    receipt = run(python, "-c", program, "parse", log, "--json", cwd=installed)
    assert receipt == run(installed / "venv" / "bin" / "receipt", "parse", log, "--json", cwd=installed)
    assert '"schema_version": "receipt/1.' in receipt


def test_installed_package_has_the_python_api(root: Path, installed: Path) -> None:
    log = root / "fixtures" / "logs" / "nanochat" / "speedrun-2025-10.log"
    program = f"import receipt_cli; run = receipt_cli.read({str(log)!r}); print(run.metrics['loss'].last, run.receipt.run.name)"
    assert run(installed / "venv" / "bin" / "python", "-c", program, cwd=installed).split() == ["5.135423", "None"]
