"""What a failure's message has in common with those of other runs."""

import pytest

from receipt_cli.store.flatten import MAX_SIGNATURE, signature


@pytest.mark.parametrize(
    ("message", "want"),
    [
        ("Tried to allocate 706.00 MiB (GPU 3)", "r: Tried to allocate # MiB (GPU #)"),
        ("*** JOB 71244 ON node001 CANCELLED AT 2021-06-02T10:20:12 ***", "r: *** JOB # ON <host> CANCELLED AT <time> ***"),
        ("expected float16 but got bfloat16", "r: expected float16 but got bfloat16"),
        ("no file '/data/run7/x.bin' at 10.0.0.7:29500", "r: no file '<path>' at <address>"),
        ("", "r"),
        ("x" * 500, f"r: {'x' * 500}"[:MAX_SIGNATURE]),
    ],
)
def test_what_varies_from_run_to_run_is_left_out(message: str, want: str) -> None:
    assert signature("r", None, message) == want


def test_the_type_of_the_exception_appears_once() -> None:
    assert signature("traceback", "KeyError", "'position_ids'") == "traceback: KeyError: 'position_ids'"
    assert signature("traceback", "KeyError", "KeyError: 3") == "traceback: KeyError: #"
