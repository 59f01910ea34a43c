"""Import recorded GPU events: the session of a profiler → a ``gpu_profile`` document of where the time went."""

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
