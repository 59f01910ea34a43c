"""Judge a run in a CI job by checks and gates, and write what the CI system shows.

In: a receipt or product, a gates file, baselines. Out: a verdict; page, annotations, outputs, JUnit and SARIF.
Start with ``verdict`` (the ruling), ``delivery`` (the outputs).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "baseline": "Baseline hold_against",
    "delivery": "Targets deliver",
    "gates": "DEFAULT Gates",
    "gates_file": "read_gates",
    "log_locations": "Places",
    "page": "render_page",
    "verdict": "Verdict rule",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
