"""Find the definitions of a site; load nothing if there are none."""

from __future__ import annotations

from receipt_cli.definitions.search_path import find_folders
from receipt_cli.grammar.site import NO_SITE, Site


def find_site(beside: str | None = None) -> Site:
    """Return the definitions of the search path for the log ``beside``. Raises ``DataError`` for a broken definition."""
    found = find_folders(beside)
    if not found.folders and not found.notes:
        return NO_SITE
    from receipt_cli.authoring.site_files import load_site

    return load_site(found.folders, found.notes)
