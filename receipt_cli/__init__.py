"""receipt: a training log in, a small, typed, schema-versioned record out.

>>> import receipt_cli
>>> run = receipt_cli.read("train.log")  # doctest: +SKIP

``docs/python-api.md`` shows the rest. Each name below is loaded on its first use, not on import of this package.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "1.0.0rc2.dev0"

__all__ = [
    "Comparison",
    "DataError",
    "Finding",
    "GrammarChoiceError",
    "InputError",
    "Metric",
    "Migration",
    "OutputError",
    "ReadOptions",
    "Receipt",
    "ReceiptError",
    "Record",
    "Run",
    "Store",
    "UnavailableError",
    "UsageError",
    "Verification",
    "View",
    "__version__",
    "attest",
    "check_attestation",
    "compare",
    "load",
    "migrate",
    "read",
    "read_all",
    "validate",
    "verify",
]

if TYPE_CHECKING:
    from receipt_cli.api.commands import attest, check_attestation, compare, migrate, validate, verify
    from receipt_cli.api.receipt import Receipt, load
    from receipt_cli.api.results import Comparison, Finding, Metric, Migration, Verification
    from receipt_cli.api.run import ReadOptions, Record, Run, read, read_all
    from receipt_cli.api.store import Store
    from receipt_cli.api.view import View
    from receipt_cli.errors import (
        DataError,
        GrammarChoiceError,
        InputError,
        OutputError,
        ReceiptError,
        UnavailableError,
        UsageError,
    )

_MODULES = {
    "api.commands": "attest check_attestation compare migrate validate verify",
    "api.receipt": "Receipt load",
    "api.results": "Comparison Finding Metric Migration Verification",
    "api.run": "ReadOptions Record Run read read_all",
    "api.store": "Store",
    "api.view": "View",
    "errors": "DataError GrammarChoiceError InputError OutputError ReceiptError UnavailableError UsageError",
}

if not TYPE_CHECKING:  # type checkers refuse all names but those above

    def __getattr__(name):
        for module, names in _MODULES.items():
            if name in names.split():
                return getattr(import_module(f"{__name__}.{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
