"""What no schema can say about a document: the rules between its fields, each with a name of its own.

A rule is stated only if it holds for every document that this project has ever written.
"""

from receipt_cli.rooms import doors

__getattr__, __dir__ = doors(
    __name__, {kind: f"{kind.upper()}_RULES" for kind in ("receipt", "header", "evaluation", "ablation", "gpu_profile")}
)
