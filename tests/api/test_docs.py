"""What the documentation of the API shows is what happens."""

import doctest
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import receipt_cli
from receipt_cli.api.run import ReadOptions
from tests.cli.conftest import ROOT

PAGE = ROOT / "docs" / "python-api.md"
NOTEBOOK = ROOT / "docs" / "receipt-in-a-notebook.ipynb"


def test_the_examples_of_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.REPORT_NDIFF)
    assert failed == 0 and tried > 25


def test_the_page_names_all_functions_and_options() -> None:
    text = PAGE.read_text("utf-8")
    options = {name for row in re.findall(r"^\| (`[a-z_`, ]+) \|", text, re.MULTILINE) for name in re.findall(r"\w+", row)}
    assert options == set(ReadOptions.__annotations__)
    assert [name for name in receipt_cli.__all__ if f"`{name}" not in text and name != "__version__"] == []


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.outputs for cell in cells] == [[]] * len(cells), "commit the notebook without outputs"
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    shown = [output for cell in cells for output in cell.outputs]
    assert {output.output_type for output in shown} <= {"execute_result", "display_data"}, shown
    kinds = [set(output.data) for output in shown]
    assert sum("image/png" in kind for kind in kinds) == 2
    pages = [output.data["text/html"] for output in shown if "text/html" in output.data]
    assert "<th>outcome</th>" in pages[0] and "finished" in pages[0]
    assert any("dataframe" in page for page in pages)
    assert "cuda_oom" in "".join(pages)
