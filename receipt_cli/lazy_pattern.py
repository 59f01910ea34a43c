"""Patterns that are compiled at their first use, of a hundred a small log needs a third; most of them the build compiled.

``hatch_build.py`` keeps in ``receipt_cli/_compiled`` what ``re`` and ``regex`` make of the patterns that ship: to make it
anew is a fifth of a cold start. It counts for the minor version of Python, or the release of ``regex``, that made it; others
compile.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # typing's constant
if TYPE_CHECKING:
    from typing import Any

    import regex

    compile_later = re.compile
    compile_regex = regex.compile
    regex_later = regex.compile

    def find_stored(engine: str, source: str | bytes, flags: int = 0) -> list[Any] | None:
        """Return what the build made of a pattern, or None."""

    def import_regex_later() -> None:
        """Let ``import regex`` load nothing until a name of it is used."""
else:
    import sys
    from _thread import RLock
    from os.path import dirname, join
    from zlib import crc32

    FOLDER = join(dirname(__file__), "_compiled")
    STORES = {"re": f"re-{sys.implementation.cache_tag}.jsonl", "regex": "regex.jsonl", "digits": "digits.jsonl"}
    """The file of each engine's patterns, and of what ``grammar.digit_sensitivity`` finds in them."""
    _METHODS = ("search", "match", "fullmatch", "sub", "finditer", "findall", "split")

    class Later:
        """Becomes a pattern with the first question: its methods are then those of the pattern."""

        def __init__(self, make, source, flags):
            self.given = (make, source, flags)

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            make, *given = self.given
            pattern = make(*given)
            vars(self).update({method: getattr(pattern, method) for method in _METHODS})
            return getattr(pattern, name)

    def compile_later(source, flags=0):
        """Return the pattern of ``source``; what is wrong with it is raised at its first use."""
        return Later(_compile_re, source, int(flags))

    def regex_later(source):
        """Return the pattern of ``source`` as ``regex`` reads it; what is wrong with it is raised at its first use."""
        return Later(compile_regex, source, 0)

    def _compile_re(source, flags):
        stored = find_stored("re", source, flags)
        if stored is None:
            return re.compile(source, flags)
        import _sre

        all_flags, code, *rest, names = stored
        return _sre.compile(source, all_flags, numbers(code), *rest, tuple(names))

    def compile_regex(source, flags=0):
        """Return the compiled pattern of ``source`` as ``regex`` reads it. Raises ``regex.error``."""
        stored = find_stored("regex", source, flags)
        if stored is None:
            import regex

            return regex.compile(source, flags)
        import regex._regex  # the engine alone

        all_flags, code, groups, offset, chars, *rest = stored
        names = {number: name for name, number in groups.items()}
        engine = sys.modules["regex._regex"]
        pattern = engine.compile(source, all_flags, numbers(code), groups, names, {}, [], offset, tuple(chars), *rest)
        if type(pattern) not in _pickled:
            _pickled.append(type(pattern))
            import copyreg

            copyreg.dispatch_table.setdefault(type(pattern), lambda pattern: (compile_regex, (pattern.pattern,)))
        return pattern

    _pickled = []
    """The type of ``regex``'s patterns, as soon as pickle knows what to keep of them."""
    _opened = {}

    def find_stored(engine, source, flags=0):
        """Return what the build made of a pattern, or None: what the engine's ``compile`` takes of it, but for the source."""
        if engine not in _opened:
            _opened[engine] = _open(engine)
        places, content = _opened[engine]
        place = places.get(key_of(source, flags))
        if place is None:
            return None
        from json import loads

        start = len(content) - place
        kind, known, given, *stored = loads(content[start : content.find(b"\n", start)])
        return stored if (kind, known, given) == (type(source).__name__, _text(source), flags) else None

    def numbers(text):
        """Return the numbers of 32 bits that ``text`` has in base64."""
        from binascii import a2b_base64

        return memoryview(a2b_base64(text)).cast("I").tolist()

    def key_of(source, flags):
        """Return the number by which a pattern is found."""
        return crc32(_text(source).encode("utf-8", "surrogatepass"), flags)

    def _text(source):
        return source if isinstance(source, str) else source.decode("latin-1")

    def _open(engine):
        """Return where each pattern of an engine's file begins, counted from the end, by its key; and the content."""
        from json import loads
        from mmap import ACCESS_READ, mmap

        try:
            with open(join(FOLDER, STORES[engine]), "rb") as file:
                content = mmap(file.fileno(), 0, access=ACCESS_READ)
            release, length, keys, places = loads(content.readline())
            if release == [sys.byteorder, *release_of(engine)] and content.tell() + length == len(content):
                return dict(zip(numbers(keys), numbers(places), strict=True)), content
        except (OSError, ValueError, TypeError):  # not built, or cut off
            pass
        return {}, b""

    def release_of(engine):
        """Return what tells a release of an engine from others, which may compile otherwise. Raises ``OSError``."""
        if engine == "re":
            import _sre

            return [*sys.version_info[:2], _sre.MAGIC, _sre.CODESIZE]
        paths = [join(dirname(__file__), "grammar", "digit_sensitivity.py")]
        if engine == "regex":
            import os

            import regex

            (folder,) = regex.__path__
            paths = [join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".py")]
        digest = 0
        for path in paths:
            with open(path, "rb") as file:
                digest = crc32(file.read(), digest)
        return [digest]

    def import_regex_later():
        """Let ``import regex`` load nothing until a name of it is used: all but its engine takes a tenth of a cold start."""
        if "regex" in sys.modules:
            return
        spec = next((spec for finder in sys.meta_path if (spec := finder.find_spec("regex", None))), None)
        if spec is not None and spec.submodule_search_locations is not None:
            sys.modules["regex"] = _Package(spec)

    _lock = RLock()

    class _Package(type(sys)):
        """A package of which nothing has run yet."""

        def __init__(self, spec):
            super().__init__(spec.name)
            self.__spec__, self.__package__, self.__path__ = spec, spec.name, spec.submodule_search_locations
            self.__loader__, self.__file__ = spec.loader, spec.origin

        def __getattr__(self, name):
            with _lock:
                if self.__spec__.loader_state is None:
                    self.__spec__.loader_state = "begun"
                    self.__spec__.loader.exec_module(self)
            if name not in vars(self):
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
            return vars(self)[name]
