"""Convert other systems' records of a run to receipts that state their origin.

In: a document such as ``trainer_state.json``. Out: a receipt; records pass through the functions for logs.
Start with ``importing`` (the entry point and the list of formats), then the module of a format.
"""
