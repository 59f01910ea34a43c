"""A receipt in a CI job: gates, and what the job's page, its annotations, test reports and outputs say of them."""

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
