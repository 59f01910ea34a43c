"""pygrok with one pattern of twelve fields on every line of a Megatron-LM log."""

from __future__ import annotations

import sys

from pygrok import Grok

NUMBER = "[-+.0-9A-Za-z]+"
PATTERN = (
    r"iteration +%{INT:step}/ *%{INT:planned} \| consumed samples: +%{INT:samples}"
    r" \| elapsed time per iteration \(ms\): %{N:time}"
    r" \| throughput per GPU \(TFLOP/s/GPU\): %{N:flops} \| learning rate: %{N:rate} \| global batch size: +%{INT:batch}"
    r" \| lm loss: %{N:loss} \| loss scale: %{N:scale} \| grad norm: %{N:norm} \| number of skipped iterations: +%{INT:skipped}"
    r" \| number of nan iterations: +%{INT:nan} \|"
)


def main() -> None:
    """Read the log that the command line names and print how many lines matched."""
    grok = Grok(PATTERN, custom_patterns={"N": NUMBER})
    columns: dict[str, list[float]] = {}
    with open(sys.argv[1], encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found = grok.match(line)
            if found is not None:
                for name, text in found.items():
                    columns.setdefault(name, []).append(float(text))
    print("records", len(columns["step"]))


main()
