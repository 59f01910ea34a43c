"""Judge a run in a CI job by checks and gates, and write what the CI system shows.

In: a receipt or product, a gates file, baselines. Out: a verdict; page, annotations, outputs, JUnit and SARIF.
Start with ``verdict`` (the ruling), ``delivery`` (the outputs).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "Baseline": "baseline",
    "hold_against": "baseline",
    "Targets": "delivery",
    "deliver": "delivery",
    "DEFAULT": "gates",
    "Gates": "gates",
    "read_gates": "gates_file",
    "Places": "log_locations",
    "render_page": "page",
    "rule": "verdict",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
