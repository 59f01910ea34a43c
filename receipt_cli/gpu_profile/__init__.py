"""Convert recorded GPU events to a ``gpu_profile`` document.

In: a GPU Flight session, or tables of ``nsys stats``. Out: busy time, kernels, copies, scopes, samples, known losses.
Start with ``importing``, then ``session`` (GPU Flight) and ``nsys`` (tables).
"""
