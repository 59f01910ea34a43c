"""A shorter input that crashes at the same place: python -m tests.fuzz.shrink NAME FILE"""

import sys
from pathlib import Path

from tests.fuzz.harness import load, place_of


def shrink(name: str, data: bytes) -> bytes:
    """Return ``data`` without the pieces that the crash does not need."""
    target, _ = load(name)

    def crash(candidate: bytes) -> str:
        try:
            target(candidate)
        except Exception as error:
            return place_of(error)
        return ""

    want = crash(data)
    size = max(1, len(data) // 2)
    while want and size:
        at = 0
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if crash(shorter) == want:
                data = shorter
            else:
                at += size
        size //= 2
    return data


if __name__ == "__main__":
    path = Path(sys.argv[2])
    path.write_bytes(shrink(sys.argv[1], path.read_bytes()))
    print(path.read_bytes())
