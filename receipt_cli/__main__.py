"""``python -m receipt_cli``."""

from receipt_cli.cli.main import command

if __name__ == "__main__":
    command()
