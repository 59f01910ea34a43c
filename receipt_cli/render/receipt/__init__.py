"""Render the sections of a receipt."""
