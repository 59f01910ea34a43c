"""``np`` is numpy, loaded at the first use of one of its names: small logs need none."""

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
