"""Convert recorded GPU events to a ``gpu_profile`` document.

In: a GPU Flight session, or tables of ``nsys stats``. Out: busy time, kernels, copies, scopes, samples, known losses.
Start with ``importing``, then ``session`` (GPU Flight) and ``nsys`` (tables).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "format": "GPUFL_FORMAT",
    "importing": "import_report import_session is_recording is_report",
    "nsys": "NSYS_FORMAT",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
