"""The Python API: what the commands do, as typed functions and classes; ``receipt_cli`` itself exports every name of it.

In: paths and URLs of logs and documents. Out: ``Run``, ``Receipt``, ``Store`` and the results of verify, compare, migrate and
validate. Every error is a ``ReceiptError``.
Start with ``run`` (a log), ``receipt`` (a document), ``commands`` (verify, compare, migrate, validate).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "compare": "commands",
    "migrate": "commands",
    "validate": "commands",
    "verify": "commands",
    "Receipt": "receipt",
    "load": "receipt",
    "Comparison": "results",
    "Finding": "results",
    "Metric": "results",
    "Migration": "results",
    "Verification": "results",
    "ReadOptions": "run",
    "Record": "run",
    "Run": "run",
    "read": "run",
    "read_all": "run",
    "Store": "store",
    "View": "view",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
