"""The events that a library passes to its callback, and the order in which it does: stand-ins of the library keep to it."""

import functools
from pathlib import Path

ORDER = {
    "hugging_face": r"on_train_begin( (on_step_end )+on_log( on_log on_evaluate)?( on_save)?)+ on_log on_train_end",
    "lightning": (
        r"(on_validation_start on_validation_end )?on_train_start"
        r"( on_train_batch_start( on_before_optimizer_step)? on_train_batch_end( on_save_checkpoint)?"
        r"( on_validation_start on_validation_end)?)+ on_train_end"
    ),
    "accelerate": r"store_init_configuration( log)+ finish",
    "keras": (
        r"on_train_begin( on_epoch_begin( on_train_batch_begin on_train_batch_end)+( on_test_begin on_test_end)?)+ on_train_end"
    ),
    "torch": r"(step )+eval checkpoint( step)+ eval checkpoint end",
}
"""Events by name, as one text; the same expression is held against the real library and against the stand-in."""


def recorded(callback, arguments):
    """Return ``callback``; with a path in ``arguments`` each call of one of its public methods is written there, a line each."""
    if not arguments:
        return callback
    file = Path(arguments[0])
    file.write_text("")
    for name, method in list(vars(type(callback)).items()):
        if callable(method) and not name.startswith("_"):
            setattr(callback, name, _noting(getattr(callback, name), name, file))
    return callback


def _noting(method, name, file):
    @functools.wraps(method)
    def called(*given, **named):
        with file.open("a") as out:
            out.write(f"{name}\n")
        return method(*given, **named)

    return called
