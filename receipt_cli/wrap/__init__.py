"""Run a command for ``receipt run``: unchanged for the user, with its output logged and its end recorded.

In: the command and the descriptor of its log. Out: ``Ended``: exit code, wall time, peak memory, and out-of-memory kills.
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
    "open_log": "paths",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
