"""Recorded streams of GPU events in: the session of a profiler → a ``gpu_profile`` document that says where the time went."""
