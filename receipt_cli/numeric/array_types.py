"""Types of numpy arrays for annotations, without loading numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"
Mask: TypeAlias = "NDArray[np.bool_]"
