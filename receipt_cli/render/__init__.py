"""Format documents, findings and tables as text for the terminal and as Markdown.

In: documents and typed results. Out: strings; nothing is printed. Rich lays them out.
Start with ``card`` (the card of a receipt), ``receipt`` (the card and all below it).
"""
