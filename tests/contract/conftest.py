"""The command line, which contracts are held against."""

from tests.cli.conftest import Invoke, invoke

__all__ = ["Invoke", "invoke"]
