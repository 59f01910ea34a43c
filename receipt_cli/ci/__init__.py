"""Judge a run in a CI job by checks and gates, and write the outputs for the CI system.

In: a receipt or product, a gates file, baselines. Out: a verdict; page, annotations, outputs, JUnit and SARIF.
Start with ``verdict`` (the ruling), ``page`` (the outputs).
"""
