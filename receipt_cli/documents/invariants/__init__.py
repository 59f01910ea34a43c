"""What no schema can say about a document: the rules between its fields, each with a name of its own.

A rule is stated only if it holds for every document that this project has ever written.
"""
