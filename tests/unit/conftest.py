"""A log as text in, its receipt out, as fixtures."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.tools import logs

Receipt = Callable[..., dict[str, Any]]


@pytest.fixture
def receipt_of() -> Receipt:
    return logs.receipt_of


@pytest.fixture
def toy_receipt() -> Receipt:
    return logs.toy_receipt
