"""Styles, pages, tables and progress bars of a terminal."""
