"""The Python API: the commands as typed functions and classes; ``receipt_cli`` itself exports every name.

In: paths and URLs of logs and documents. Out: ``Run``, ``Receipt``, ``Store`` and the results of verify, compare, migrate and
validate. Every error is a ``ReceiptError``.
Start with ``run`` (a log), ``receipt`` (a document), ``commands`` (verify, compare, migrate, validate).
"""
