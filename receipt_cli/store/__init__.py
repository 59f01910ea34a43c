"""Receipts on disk, and questions to them."""
