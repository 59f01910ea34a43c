"""receipt: a training log in, a small, typed, schema-versioned record out.

>>> import receipt_cli
>>> run = receipt_cli.read("train.log")  # doctest: +SKIP

``docs/python-api.md`` shows the rest. Importing this package loads none of it: each name below is loaded when it is first used.
"""

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

TYPE_CHECKING = False  # typing's constant: to import typing takes as long as all else here
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
else:

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from receipt_cli import api, errors

        return getattr(api if name in dir(api) else errors, name)

    def __dir__():
        return __all__
