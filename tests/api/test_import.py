"""What ``import receipt_cli`` loads, and what its names are."""

import inspect
import subprocess
import sys

import pytest

import receipt_cli
from receipt_cli import errors

NAMES = sorted(set(receipt_cli.__all__) - {"__version__"})


def python(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split()


def test_the_import_loads_no_other_module() -> None:
    assert [name for name in python("import sys, receipt_cli; print(*sys.modules)") if "receipt" in name] == ["receipt_cli"]


def test_a_name_loads_what_it_needs_and_no_more() -> None:
    heavy = {"pandas", "pyarrow", "matplotlib", "duckdb", "jsonschema", "typer", "rich"}
    names = "receipt_cli.read, receipt_cli.load, receipt_cli.Store, receipt_cli.verify, receipt_cli.ReceiptError"
    assert heavy & set(python(f"import sys, receipt_cli; {names}; print(*sys.modules)")) == set()


def test_every_name_is_there_and_described() -> None:
    assert set(NAMES) == {*receipt_cli.__all__} - {"__version__"} | {name for name in vars(errors) if name.endswith("Error")}
    assert set(dir(receipt_cli)) == set(receipt_cli.__all__)
    for name in NAMES:
        found = getattr(receipt_cli, name)
        assert inspect.getdoc(found), name
        assert found.__name__ == name
        if inspect.isclass(found) and issubclass(found, Exception):
            assert issubclass(found, receipt_cli.ReceiptError)
    namespace: dict[str, object] = {}
    exec("from receipt_cli import *", namespace)
    assert set(NAMES) <= set(namespace)


def test_no_module_hides_a_name() -> None:
    """A module below the package becomes an attribute of it when it is imported, and would hide the name."""
    program = (
        "import pkgutil, receipt_cli, sys\n"
        "found = [m.name for m in pkgutil.walk_packages(receipt_cli.__path__, 'receipt_cli.') if '__main__' not in m.name]\n"
        "for name in found:\n"
        "    try: __import__(name)\n"
        "    except ImportError: pass\n"  # an extra that is not installed
        "import types\n"
        "print(len(found), *(n for n in receipt_cli.__all__ if isinstance(getattr(receipt_cli, n), types.ModuleType)))\n"
    )
    count, *hidden = python(program)
    assert int(count) > 200 and hidden == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'reed'"):
        receipt_cli.reed  # type: ignore[attr-defined]  # noqa: B018
    from receipt_cli.api import fields

    assert fields.Summary is receipt_cli.View
    with pytest.raises(AttributeError):
        fields._nothing  # type: ignore[attr-defined]  # noqa: B018
