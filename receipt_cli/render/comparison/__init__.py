"""Render comparison and reproducibility documents."""
