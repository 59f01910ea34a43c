"""Read what a scheduler or a platform records of a job: exit code, end, times, nodes, memory.

In: its JSON or text, from a file or, inside a Slurm job, from ``scontrol``. Out: the entries of ``evidence`` of a receipt.
Start with ``reading`` (which form a text has), then ``model`` (what is kept of a job).
"""
