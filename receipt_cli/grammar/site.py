"""The definitions of a site: its grammars, failure markers and metric aliases, in addition to the shipped ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from receipt_cli.definitions.failure_markers import Catalogue, load_catalogue
from receipt_cli.definitions.metrics import Registry, load_registry
from receipt_cli.grammar.catalog import definition, get_grammar, ref_parts
from receipt_cli.grammar.model import Grammar


@dataclass(frozen=True)
class Site:
    """A site's definitions; ``own_catalogue`` and ``own_registry`` add to the shipped ones, or are None.

    ``sources`` and ``texts`` map ``id@vN`` of each grammar to its file and to its text.
    """

    grammars: tuple[Grammar, ...] = ()
    own_catalogue: Catalogue | None = None
    own_registry: Registry | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def catalogue(self) -> Catalogue:
        """The shipped failure markers, then the site's."""
        return self.own_catalogue or load_catalogue()

    @property
    def registry(self) -> Registry:
        """The metrics with all aliases."""
        return self.own_registry or load_registry()

    def find(self, name: str) -> Grammar:
        """Return the grammar ``name`` of the site, else the shipped one. Raises as ``get_grammar`` does."""
        return self._own(name) or get_grammar(name, list(self.sources))

    def definition(self, name: str) -> bytes:
        """Return the text of the grammar ``name``. Raises as ``find`` does."""
        own = self._own(name)
        return self.texts[own.ref] if own is not None else definition(name, list(self.sources))

    def _own(self, name: str) -> Grammar | None:
        wanted = ref_parts(name)
        own = [g for g in self.grammars if wanted is not None and g.id == wanted[0] and wanted[1] in (None, g.version)]
        return max(own, key=lambda g: g.version, default=None)


NO_SITE = Site()
"""Only the shipped definitions."""
