"""``python -m receipt_cli``."""

from receipt_cli.cli.main import main

if __name__ == "__main__":
    main()
