"""Divide the wall time of a run among its steps and what happens between them."""
