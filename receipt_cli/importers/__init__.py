"""Convert other systems' records of a run to receipts that name their origin.

In: a document such as ``trainer_state.json``. Out: a receipt; records pass through the functions for logs.
Start with ``importing`` (the door), ``formats`` (the list), then the module of a format.
"""
