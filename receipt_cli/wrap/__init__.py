"""Run a command for ``receipt run`` unchanged, keep its output, and record its end.

In: a command and file names. Out: its log, exit status, wall time and peak memory.
Start with ``job`` (the run), then ``forwarder`` (the process that copies output), ``tee`` and ``signals``; ``orphan`` is for
runs whose wrapper was killed.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "job": "Ended NotStarted check_command run_job",
    "orphan": "Note find_orphan",
    "output_streams": "hold_standard_streams",
    "paths": "Existing Files check_files default_files is_device open_log",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
