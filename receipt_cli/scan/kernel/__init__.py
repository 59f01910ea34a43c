"""The accelerator of the scan: a compiled kernel that reads the records of known layouts into columns.

In: normalised whole records (bytes) and the layouts that were learned of their kind. Out: the rows of a segment's body.
``reader`` drives the kernel, ``program`` turns layouts into what it executes; its source is ``native/kernel.c``.

Law: the body is the one that the patterns give record by record, to the last bit. Without the compiled file everything
works, more slowly. ``scan.engine`` alone imports this package, and ``scan.presence`` to ask for it.
"""
