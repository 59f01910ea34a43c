"""Read a scheduler's or platform's record of a job: exit code, end, times, nodes, memory.

In: its JSON or text, from a file or, inside a Slurm job, from ``scontrol``. Out: the entries of ``evidence`` of a receipt.
Start with ``reading`` (recognising the form of a text), then ``model`` (the job).
"""
