"""The log of an unknown trainer → the grammar that reads it, mined from its own lines. No module here reads or writes files."""
