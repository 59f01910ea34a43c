"""The command line, which the API is held against."""

from tests.cli.conftest import Invoke, invoke

__all__ = ["Invoke", "invoke"]
