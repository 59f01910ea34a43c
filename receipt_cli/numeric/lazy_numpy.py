"""``np`` is numpy, which is loaded with the first name of it that is used: small logs use none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
else:
    from types import ModuleType

    class _Later(ModuleType):
        def __getattr__(self, name):
            import numpy

            found = getattr(numpy, name)
            setattr(self, name, found)
            return found

    np = _Later("numpy")

__all__ = ["np"]
