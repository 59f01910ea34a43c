"""Two runs and more: whether they are comparable, and then what differs."""
