"""The rules between the fields of a document, which no schema can express; each has a name.

A rule is added only if every document that this project has ever written keeps it.
"""
