"""The accelerator of the scan: a compiled kernel that reads records of known layouts into columns.

In: normalised whole records (bytes) and the layouts learned from them. Out: the rows of a segment's body. ``reader`` drives the
kernel, ``program`` compiles layouts for it; its source is ``native/kernel.c``.

Law: the body equals the one the patterns give record by record, bit for bit. Without the compiled file everything works, but
more slowly. Only ``scan.engine`` and ``scan.presence`` import this package.
"""
