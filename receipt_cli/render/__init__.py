"""Format documents, findings and tables as text for the terminal and as Markdown.

In: documents and typed results. Out: strings; nothing is printed. The layout is our own code: a terminal library takes longer to
import than a summary takes to render.
Start with ``terminal.page`` (lines and tables), ``receipt.summary`` (the summary of a receipt).
"""
