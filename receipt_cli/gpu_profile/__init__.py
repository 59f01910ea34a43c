"""Convert recorded GPU events to a ``gpu_profile`` document.

In: a GPU Flight session, or tables of ``nsys stats``. Out: busy time, kernels, copies, scopes, samples, and known losses.
Start with ``importing``, then ``session`` (GPU Flight) and ``nsys`` (tables).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "GPUFL_FORMAT": "format",
    "import_report": "importing",
    "import_session": "importing",
    "is_recording": "importing",
    "is_report": "importing",
    "NSYS_FORMAT": "nsys",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
