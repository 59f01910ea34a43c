"""Run a command for ``receipt run`` unchanged, keep its output, and record its end.

In: a command and file names. Out: its log, exit status, wall time and peak memory.
Start with ``job`` (the run), then ``forwarder`` (the process that copies output), ``tee`` and ``signals``.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "set_interpreter": "interpreter",
    "Ended": "job",
    "NotStarted": "job",
    "check_command": "job",
    "run_job": "job",
    "hold_standard_streams": "output_streams",
    "Existing": "paths",
    "Files": "paths",
    "check_files": "paths",
    "default_files": "paths",
    "is_device": "paths",
    "open_log": "paths",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
