"""Import recorded GPU events: the session of a profiler → a ``gpu_profile`` document of where the time went.

In: the folder or the files of a GPU Flight session, or tables of ``nsys stats``. Out: a valid document. ``session`` reads the
records in bounded memory, ``document`` turns them into figures.
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
