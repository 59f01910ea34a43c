"""The definitions of a site: grammars, failure markers and metric aliases beside those that ship."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from receipt_cli.definitions.failure_markers import Catalogue, load_catalogue
from receipt_cli.definitions.metrics import Registry, load_registry
from receipt_cli.grammar.catalog import definition, get_grammar, ref_parts
from receipt_cli.grammar.model import Grammar


@dataclass(frozen=True)
class Site:
    """Definitions that do not ship; ``catalogue`` and ``registry`` are None where those that ship are meant.

    ``sources`` maps ``id@vN`` of each grammar to its file.
    """

    grammars: tuple[Grammar, ...] = ()
    own_catalogue: Catalogue | None = None
    own_registry: Registry | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def catalogue(self) -> Catalogue:
        """The failure markers, those of the site last."""
        return self.own_catalogue or load_catalogue()

    @property
    def registry(self) -> Registry:
        """The metrics with all aliases."""
        return self.own_registry or load_registry()

    def find(self, name: str) -> Grammar:
        """Return the grammar that ``name`` means, of the site or one that ships. Raises as ``get_grammar``."""
        return self._own(name) or get_grammar(name, list(self.sources))

    def definition(self, name: str) -> bytes:
        """Return the text of the grammar that ``name`` means. Raises as ``find``."""
        own = self._own(name)
        return self.texts[own.ref] if own is not None else definition(name, list(self.sources))

    def _own(self, name: str) -> Grammar | None:
        wanted = ref_parts(name)
        own = [g for g in self.grammars if wanted is not None and g.id == wanted[0] and wanted[1] in (None, g.version)]
        return max(own, key=lambda g: g.version, default=None)


NO_SITE = Site()
"""Nothing but what ships."""
