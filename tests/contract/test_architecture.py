"""The import table: which room of the package may know which other, and who owns each third-party package."""

import ast
import re
import subprocess
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "receipt_cli"

# One line a module: the modules of ours that it may import, each of which stands in a line above.
TABLE: dict[str, str] = {
    "errors": "",
    "units": "",
    "model": "",
    "literals": "",
    "magnitude": "",
    "distinct": "",
    "statistics": "magnitude",
    "records": "",
    "room": "errors",
    "cells": "room",
    "columns": "cells",
    "resources": "errors",
    "definition_cache": "",
    "gate": "definition_cache",
    "looks": "gate",
    "yaml_text": "errors",
    "definitions": "definition_cache yaml_text",
    "masking": "",
    "masking.lazy": "",
    "masking.forms": "masking.lazy",
    "masking.stated": "masking.lazy",
    "masking.places": "masking.lazy",
    "masking.blocks": "masking.lazy",
    "masking.wrapped": "masking.forms masking.lazy masking.stated",
    "masking.mask": "masking.blocks masking.forms masking.lazy masking.places masking.stated masking.wrapped",
    "redact": "masking.mask model records",
    "envelope": "columns records",
    "decompress": "",
    "ahead": "",
    "pipe": "",
    "source": "ahead decompress errors model pipe",
    "schemas": "definitions errors resources",
    "registry": "definitions errors resources units",
    "blindness": "",
    "grammar": "blindness",
    "grammar_field": "definitions errors grammar registry units",
    "grammar_file": "definitions errors grammar grammar_field registry",
    "grammar_bundle": "definition_cache definitions grammar grammar_field grammar_file resources",
    "markers": "definitions errors resources",
    "marker_lint": "errors markers",
    "catalog": "definitions errors grammar grammar_bundle grammar_file resources",
    "match": "envelope grammar literals units",
    "listed": "",
    "stretch": "columns listed looks model records",
    "layout": "blindness envelope grammar markers match units",
    "examine": "columns envelope grammar layout listed markers match model stretch units",
    "decimals": "units",
    "block": "records",
    "mixed": "block decimals units",
    "prefixes": "decimals envelope layout match",
    "recognise": "layout",
    "templates": "columns decimals examine layout match model prefixes recognise",
    "together": "block columns decimals distinct examine layout mixed prefixes templates",
    "order": "cells columns templates",
    "harvest": "columns examine listed model order stretch templates",
    "bulk": "block envelope examine gate harvest layout mixed model recognise records stretch templates together",
    "pace": "records",
    "scan": "bulk columns envelope examine gate grammar layout looks markers model pace records stretch",
    "parallel": "errors grammar markers scan source stretch",
    "runs": "cells columns distinct",
    "frame": "columns grammar magnitude room runs",
    "bars": "columns distinct frame grammar",
    "copies": "columns frame grammar",
    "regular": "columns distinct frame grammar runs",
    "attached": "cells columns frame grammar regular",
    "timeline": "attached bars columns copies grammar match model regular runs scan stretch",
    "ranks": "columns copies frame runs timeline",
    "epochs": "columns frame timeline",
    "numbering": "bars distinct frame regular timeline",
    "launches": "columns markers stretch timeline",
    "lanes": "errors source timeline",
    "gather": "columns lanes model parallel scan source stretch timeline",
    "inputs": "decompress errors",
    "phases": "grammar timeline",
    "consistency": "columns grammar magnitude phases scan statistics stretch",
    "ordinals": "distinct listed magnitude",
    "detect": "columns consistency grammar ordinals scan stretch",
    "joined": "",
    "figures": "joined room runs timeline",
    "rates": "distinct figures runs timeline",
    "peaks": "definitions errors resources",
    "flops": "peaks",
    "recomputed": "consistency figures flops peaks rates statistics timeline",
    "flags": "",
    "oddities": "consistency figures flags flops magnitude peaks recomputed statistics timeline",
    "spikes": "figures magnitude timeline",
    "courses": "figures statistics timeline",
    "compare": "",
    "compare.precision": "",
    "bottleneck": "compare.precision courses figures statistics",
    "memory_story": "courses figures ranks units",
    "goodput": "",
    "steady": "figures phases runs statistics timeline",
    "summary": (
        "bottleneck consistency figures flags memory_story oddities phases recomputed registry spikes statistics "
        "steady timeline"
    ),
    "rootcause": "columns stretch",
    "failure": "columns figures markers model phases rootcause statistics stretch",
    "diagnosis": "bottleneck failure memory_story ranks summary",
    "checks": "failure phases summary",
    "learn": "",
    "learn.vocabulary": "definitions errors registry",
    "learn.tokens": "envelope",
    "learn.forms": "columns envelope layout learn.tokens",
    "learn.mining": "layout learn.forms learn.tokens records",
    "learn.naming": "learn.mining learn.tokens learn.vocabulary",
    "learn.counting": "learn.mining learn.naming learn.tokens learn.vocabulary",
    "learn.choosing": "learn.counting learn.mining learn.naming learn.tokens learn.vocabulary",
    "learn.patterns": "learn.mining learn.naming learn.tokens",
    "learn.rules": "grammar learn.choosing learn.counting learn.naming learn.patterns learn.tokens learn.vocabulary",
    "learn.blocks": "grammar learn.choosing learn.counting learn.naming learn.patterns learn.rules learn.vocabulary",
    "learn.progress": "grammar learn.choosing learn.patterns learn.rules",
    "learn.learned": "learn.blocks learn.choosing learn.counting learn.mining learn.progress learn.rules learn.vocabulary",
    "learn.draft": "",
    "fallback": (
        "catalog detect epochs errors gather grammar grammar_file learn.learned learn.vocabulary markers model "
        "numbering registry scan source stretch timeline"
    ),
    "walltime": "",
    "walltime.stamps": "envelope timeline",
    "walltime.tries": "figures phases runs statistics timeline",
    "walltime.tally": "goodput",
    "walltime.marks": "phases timeline walltime.tally walltime.tries",
    "walltime.steptime": "statistics timeline walltime.tries",
    "walltime.work": "phases statistics summary timeline walltime.marks walltime.steptime walltime.tally walltime.tries",
    "walltime.account": (
        "goodput launches model phases summary timeline walltime.stamps walltime.steptime walltime.tally "
        "walltime.work"
    ),
    "bounded": "checks model phases ranks",
    "derive": (
        "bounded catalog checks consistency detect diagnosis epochs errors failure fallback gather goodput grammar "
        "launches looks markers model numbering phases ranks redact registry scan source stretch summary timeline "
        "walltime.account walltime.stamps"
    ),
    "receipt": "derive failure goodput model peaks ranks redact spikes statistics summary",
    "matrix": "catalog grammar registry",
    "attack": "",
    "hostile": "attack grammar match records",
    "lint": "attack definitions errors grammar grammar_file hostile learn.vocabulary match model registry",
    "proof": "catalog derive grammar_file lint marker_lint model resources source",
    "explain": "catalog derive envelope grammar looks match model records redact source",
    "propose": (
        "derive errors explain fallback grammar grammar_file learn.draft learn.learned learn.rules learn.vocabulary "
        "lint records redact source"
    ),
    "invariants": "",
    "invariants.rule": "",
    "difference": "invariants.rule",
    "invariants.text": "invariants.rule",
    "invariants.figures": "invariants.rule",
    "invariants.statistics": "invariants.figures invariants.rule registry",
    "invariants.oddities": "invariants.rule",
    "invariants.header": "invariants.rule",
    "invariants.origin": "invariants.rule",
    "invariants.diagnosis": "invariants.figures invariants.rule",
    "invariants.redactions": "invariants.rule masking.mask",
    "invariants.goodput": "invariants.rule",
    "invariants.receipt": (
        "invariants.diagnosis invariants.goodput invariants.header invariants.oddities invariants.origin "
        "invariants.redactions invariants.rule invariants.statistics invariants.text model"
    ),
    "invariants.evaluation": "invariants.figures invariants.header invariants.rule",
    "invariants.ablation": "invariants.figures invariants.header invariants.rule",
    "invariants.gpu_profile": "invariants.figures invariants.header invariants.rule invariants.text",
    "shape": "",
    "validate": (
        "errors invariants.ablation invariants.evaluation invariants.gpu_profile invariants.header "
        "invariants.receipt invariants.rule schemas shape"
    ),
    "schema_fields": "",
    "schema_diff": "schema_fields",
    "migrate": "errors schemas",
    "write": "errors",
    "migrate_file": "difference errors migrate receipt validate write",
    "header": "",
    "header.values": "",
    "header.facts": "header.values",
    "header.program": "",
    "header.document": "header.facts header.values",
    "header.environment": "errors header.document header.facts header.values",
    "header.header_file": "errors header.document header.facts header.values",
    "header.git": "header.facts header.program",
    "header.host": "header.facts header.values",
    "header.accelerators": "header.document header.facts header.program",
    "header.from_log": "header.facts",
    "header.collect": (
        "header.accelerators header.document header.environment header.facts header.git header.header_file "
        "header.host"
    ),
    "produce": (
        "derive errors figures goodput header.collect header.from_log header.header_file header.host header.values "
        "inputs lanes receipt redact source validate"
    ),
    "recorded": "catalog derive detect goodput grammar",
    "foreign": "",
    "foreign.json_text": "",
    "foreign.text": "errors source",
    "foreign.names": "registry units",
    "foreign.taking": "foreign.json_text foreign.names model redact registry units",
    "foreign.found": "columns foreign.taking foreign.text grammar header.facts header.values timeline",
    "foreign.stating": "foreign.found foreign.taking registry statistics steady summary",
    "foreign.conclude": (
        "checks consistency derive detect failure foreign.found foreign.stating gather markers model phases redact "
        "registry stretch summary"
    ),
    "foreign.hf_trainer_state": "foreign.found foreign.json_text foreign.names foreign.taking",
    "foreign.forgather_logs": "foreign.found foreign.json_text foreign.names foreign.taking units",
    "foreign.cppmega_mlx": "foreign.found foreign.json_text foreign.names foreign.taking",
    "foreign.cppmega": "foreign.found foreign.json_text foreign.names foreign.taking redact",
    "foreign.megacpp": "foreign.found foreign.json_text foreign.names foreign.taking units",
    "foreign.wandb_summary": (
        "errors foreign.found foreign.json_text foreign.names foreign.taking foreign.text header.values yaml_text"
    ),
    "foreign.nanochat_report": "foreign.found header.values registry units",
    "walltime.stated": "errors foreign.nanochat_report foreign.text foreign.wandb_summary goodput",
    "foreign.formats": (
        "errors foreign.cppmega foreign.cppmega_mlx foreign.forgather_logs foreign.found foreign.hf_trainer_state "
        "foreign.json_text foreign.megacpp foreign.nanochat_report foreign.text foreign.wandb_summary"
    ),
    "foreign.importing": (
        "derive errors foreign.conclude foreign.formats foreign.found foreign.text gather header.document "
        "header.values model produce receipt redact validate"
    ),
    "flight": "",
    "flight.wire": "",
    "flight.noted": "model redact",
    "flight.lines": "decompress",
    "flight.batch": "flight.wire",
    "flight.named": "flight.batch flight.noted redact",
    "flight.timing": "flight.batch",
    "flight.spans": "cells",
    "flight.kernels": "flight.batch flight.named flight.spans flight.timing",
    "flight.copies": "flight.batch flight.wire",
    "flight.scopes": "flight.batch flight.named flight.timing",
    "flight.sampled": "cells flight.batch flight.wire statistics",
    "flight.inventory": "flight.batch flight.sampled",
    "flight.files": "errors flight.batch flight.noted",
    "flight.session": (
        "errors flight.batch flight.copies flight.files flight.inventory flight.kernels flight.lines flight.named "
        "flight.noted flight.sampled flight.scopes flight.wire"
    ),
    "flight.moments": "flight.noted flight.session",
    "flight.document": (
        "flight.copies flight.moments flight.named flight.noted flight.sampled flight.session flight.spans "
        "flight.timing flight.wire header.document header.facts"
    ),
    "flight.nsys": (
        "errors flight.batch flight.copies flight.document flight.kernels flight.lines flight.named flight.noted "
        "flight.session flight.timing header.document"
    ),
    "flight.importing": (
        "errors flight.document flight.files flight.lines flight.noted flight.nsys flight.session flight.wire "
        "header.values produce validate"
    ),
    "known_fields": "schemas",
    "verify": (
        "derive difference errors foreign.importing grammar inputs known_fields lanes produce receipt recorded "
        "source validate"
    ),
    "render": "",
    "render.scale": "",
    "render.fields": "",
    "render.spark": "",
    "render.style": "",
    "render.text": "",
    "csv_cell": "",
    "render.page": "render.style render.text",
    "render.progress": "render.style render.text",
    "render.table": "render.page render.style render.text",
    "render.identity": "render.fields render.page render.scale",
    "render.oddities": "render.fields render.page render.scale",
    "render.metrics": "render.fields render.oddities render.page render.scale render.spark render.table",
    "render.outcome": "render.fields render.page render.scale render.style render.text",
    "render.phases": "render.fields render.page render.scale render.table",
    "render.goodput": "render.fields render.page render.scale",
    "render.bottleneck": "render.fields render.page",
    "render.memory": "render.fields render.page render.scale render.style",
    "render.redactions": "masking.mask render.page render.scale",
    "render.receipt": (
        "render.bottleneck render.goodput render.identity render.memory render.metrics render.outcome render.page "
        "render.phases render.redactions render.style"
    ),
    "render.contrast": "render.fields render.metrics render.scale render.style",
    "render.comparison": "render.contrast render.page render.scale render.style render.table",
    "render.reproducibility": "render.contrast render.metrics render.page render.scale render.style render.table",
    "render.markdown": "render.text",
    "render.comparison_markdown": "render.contrast render.markdown",
    "render.profile": "render.fields render.metrics render.page render.scale render.table",
    "render.document": (
        "render.fields render.identity render.metrics render.page render.profile render.receipt render.scale "
        "render.style render.table"
    ),
    "render.findings": "render.page render.scale render.style render.text",
    "render.differences": "render.page render.scale render.style render.table render.text",
    "render.batch": "render.differences render.page render.scale render.style render.table",
    "render.verification": "render.differences render.page render.style",
    "render.schema": "render.page render.scale render.style render.text",
    "render.explain": "render.fields render.page render.scale render.style render.table",
    "render.learned": "render.fields render.page render.scale render.style render.table",
    "store": "",
    "store.files": "errors receipt write",
    "store.known": "",
    "batch": "",
    "batch.memory": "",
    "batch.fingerprint": "catalog markers model peaks registry",
    "batch.nouns": "difference errors",
    "batch.remote": "batch.nouns errors inputs redact",
    "batch.walk": "batch.nouns batch.remote errors inputs",
    "batch.carry": (
        "derive errors goodput header.collect header.from_log header.header_file inputs receipt redact store.files "
        "validate"
    ),
    "batch.work": (
        "batch.carry batch.fingerprint batch.nouns batch.remote batch.walk derive difference errors inputs produce "
        "receipt source store.files validate"
    ),
    "batch.pool": "batch.memory batch.nouns errors",
    "batch.ray_engine": "batch.nouns errors",
    "batch.rederive": "batch.fingerprint batch.nouns batch.work errors store.files store.known",
    "batch.summary": "batch.nouns",
    "store.reading": "errors redact store.files validate",
    "store.view": "",
    "store.rows": "checks errors registry store.reading store.view",
    "store.database": "errors write",
    "store.series_files": "errors store.database",
    "store.index": "errors schemas store.database store.files store.rows store.view",
    "store.query": "csv_cell store.database store.view",
    "store.stats": "store.database store.query",
    "store.export": "errors store.database store.view write",
    "series": "columns derive redact runs store.database timeline",
    "render.answer": "render.style render.table",
    "render.panel": "render.page render.scale render.spark render.style render.table",
    "cli": "",
    "cli.output": "errors masking.mask render.progress render.style render.text",
    "cli.options": "",
    "follow": "",
    "follow.stop": "",
    "follow.process": "",
    "follow.tail": "errors pipe source",
    "follow.growth": "decompress derive errors gather source stretch",
    "follow.so_far": "derive receipt summary",
    "follow.watch": "follow.growth follow.so_far",
    "follow.following": "derive follow.growth follow.process follow.stop follow.tail follow.watch",
    "render.live": (
        "follow.so_far render.fields render.metrics render.outcome render.page render.scale render.spark "
        "render.style render.text"
    ),
    "render.screen": "render.text",
    "cli.following": (
        "cli.output derive errors follow.following follow.so_far follow.watch produce render.live render.progress "
        "render.screen"
    ),
    "cli.plain": "",
    "cli.show": "cli.options cli.output errors redact render.document validate",
    "given": "errors parallel produce redact source validate",
    "compare.student": "",
    "compare.intervals": "compare.student",
    "compare.policy": "definitions errors",
    "compare.comparable": "compare.policy difference invariants.rule",
    "compare.metrics": "compare.intervals compare.precision registry",
    "compare.curves": "compare.intervals compare.precision",
    "compare.comparison": "compare.comparable compare.curves compare.intervals compare.metrics compare.policy registry",
    "compare.reproducibility": "compare.comparable compare.policy compare.precision",
    "compare.sides": "compare.comparable compare.reproducibility figures given source store.series_files",
    "compare.load": "compare.comparison compare.curves given produce registry source",
    "ci": "",
    "ci.gates": "",
    "ci.gates_file": "ci.gates definitions errors invariants.rule registry units",
    "ci.baseline": "compare.comparable compare.comparison compare.metrics compare.policy registry",
    "ci.rulings": "checks ci.baseline ci.gates invariants.rule render.contrast render.scale",
    "ci.places": "",
    "ci.findings": "ci.places ci.rulings",
    "ci.annotations": "ci.findings render.text",
    "ci.outputs": "ci.rulings",
    "ci.junit": "ci.rulings render.text",
    "ci.sarif": "ci.findings render.text",
    "ci.job_summary": (
        "ci.findings ci.rulings render.comparison_markdown render.contrast render.markdown render.metrics "
        "render.scale render.text"
    ),
    "ci.page": "ci.rulings render.contrast render.page render.scale render.style render.table",
    "ci.deliver": (
        "ci.annotations ci.findings ci.job_summary ci.junit ci.outputs ci.places ci.rulings ci.sarif errors receipt "
        "write"
    ),
    "cli.checking": "checks cli.output errors given",
    "cli.check": "cli.checking cli.options",
    "cli.verify": "catalog cli.options cli.output errors parallel render.verification verify",
    "cli.migrating": "cli.output errors migrate_file write",
    "cli.migrate": "cli.migrating cli.options",
    "cli.validating": "cli.output errors model render.findings validate",
    "cli.validate": "cli.options cli.validating",
    "cli.header": "cli.output produce receipt write",
    "cli.importing": (
        "cli.output errors flight.importing flight.nsys flight.wire foreign.importing receipt render.document "
        "render.receipt write"
    ),
    "cli.import_": "cli.importing cli.options",
    "cli.grammar": (
        "catalog cli.options cli.output errors explain fallback matrix produce proof propose render.explain "
        "render.findings render.learned render.table write"
    ),
    "cli.schema": "cli.options cli.output render.schema render.table schema_diff schema_fields schemas",
    "history": "",
    "history.changes": "",
    "history.lanes": "checks registry",
    "history.attribution": "compare.comparable compare.policy difference history.lanes",
    "history.history": "compare.policy history.attribution history.changes history.lanes registry",
    "render.history": "render.contrast render.metrics render.page render.scale render.spark render.style render.table",
    "cli.history": (
        "cli.options cli.output compare.policy errors history.history registry render.history store.files "
        "store.reading"
    ),
    "export": "",
    "export.names": "",
    "export.protobuf": "",
    "export.curves": "figures produce redact registry",
    "export.run": "errors export.curves produce redact registry",
    "export.units": "registry",
    "export.openmetrics": "checks export.run export.units",
    "export.otlp": "checks export.run export.units",
    "export.in_toto": "export.run receipt",
    "export.bmf": "export.run",
    "export.tensorboard": "export.curves export.protobuf export.run",
    "export.wandb_run": "checks export.protobuf export.run",
    "export.tables": "csv_cell export.curves export.run store.database",
    "export.mlflow_store": "errors export.run write",
    "export.formats": (
        "errors export.bmf export.in_toto export.mlflow_store export.names export.openmetrics export.otlp export.run "
        "export.tables export.tensorboard export.wandb_run produce series write"
    ),
    "cli.exporting": "cli.output errors export.formats export.names export.run given produce",
    "cli.export": "cli.exporting export.names",
    "cli.reproducing": (
        "cli.output compare.policy compare.reproducibility compare.sides errors render.reproducibility "
        "store.series_files"
    ),
    "cli.compare": (
        "cli.options cli.output cli.reproducing compare.comparison compare.load compare.policy errors registry "
        "render.comparison render.comparison_markdown"
    ),
    "cli.asking": (
        "cli.output errors render.answer render.panel store.database store.export store.index store.query "
        "store.stats"
    ),
    "cli.rederiving": (
        "batch.nouns batch.pool batch.ray_engine batch.rederive batch.remote batch.summary batch.walk cli.output "
        "errors receipt render.batch render.progress"
    ),
    "cli.rederive": "cli.options cli.rederiving",
    "cli.storing": "checks cli.output errors receipt redact render.batch store.files validate",
    "cli.store": "cli.asking cli.options cli.storing",
    "cli.judging": (
        "ci.annotations ci.baseline ci.deliver ci.gates ci.gates_file ci.page ci.places ci.rulings cli.output "
        "compare.comparison compare.load compare.policy errors given produce registry schemas"
    ),
    "cli.ci": "cli.judging cli.options",
    "render.plot": "render.metrics render.page render.scale render.style render.text",
    "report": "",
    "report.packing": "redact",
    "report.core": "checks history.lanes registry report.packing store.view",
    "report.detail": "compare.comparable render.contrast report.packing",
    "report.drift": "render.scale report.packing",
    "report.vanished": "report.drift",
    "report.curves": "produce",
    "report.stored_curves": "report.curves store.series_files",
    "report.data": (
        "compare.policy history.history history.lanes registry render.contrast render.metrics render.scale "
        "report.core report.detail report.drift report.packing report.vanished store.files"
    ),
    "report.page": "report.packing",
    "report.plotted": "errors produce render.plot",
    "cli.reporting": (
        "cli.output compare.policy produce registry report.curves report.data report.page report.stored_curves "
        "store.files store.reading write"
    ),
    "cli.report": "cli.reporting",
    "cli.plot": "cli.options cli.output given render.plot report.plotted",
    "cli.parsing": (
        "cli.following cli.output cli.reporting errors goodput parallel produce receipt render.receipt series "
        "store.database walltime.stated write"
    ),
    "cli.parse": "cli.options cli.parsing",
    "running": "",
    "running.files": "batch.carry errors write",
    "running.outlets": "pipe",
    "running.tee": "running.outlets",
    "running.relay": "running.outlets",
    "running.memory": "",
    "running.interpreter": "header.host header.program",
    "running.job": "errors running.memory running.outlets running.relay running.tee",
    "cli.running": (
        "checks cli.output derive errors goodput produce receipt render.scale running.files running.interpreter "
        "running.job running.outlets write"
    ),
    "cli.run": "cli.options cli.running",
    "emit.names": "",
    "emit.document": "header.document write",
    "emit.memory": "",
    "emit.conformity": "emit.document invariants.ablation invariants.evaluation resources shape",
    "emit.goodput_tracker": "",
    "emit.temporal_performance": "emit.conformity emit.document emit.memory emit.names",
    "emit.ablation": "emit.conformity emit.document",
    "emit.step_printer": "emit.document emit.names",
    "emit.push": "",
    "emit.otel": "",
    "emit.profiling": "emit.document",
    "emit": "emit.ablation emit.conformity emit.goodput_tracker emit.step_printer emit.temporal_performance",
    "cli.app": (
        "cli.ci cli.plot cli.report cli.check cli.compare cli.export cli.history cli.grammar cli.header cli.import_ "
        "cli.migrate cli.parse cli.run cli.schema cli.show cli.validate cli.verify cli.rederive cli.store"
    ),
    "cli.main": "cli.app cli.checking cli.output cli.parsing cli.plain errors",
    "__init__": "",
    "__main__": "cli.main",
}

# One line a package: the modules that may import it, at the top of the file or inside a function.
OWNERS: dict[str, tuple[str, ...]] = {
    "ahocorasick_rs": ("gate",),
    "duckdb": ("store.database",),
    "fsspec": ("batch.remote",),
    "git": ("header.git",),
    "hyperscan": ("gate",),
    "jsonschema": ("validate",),
    "numpy": (
        "attached", "bars", "block", "bulk", "cells", "columns", "compare.*", "consistency", "copies", "courses",
        "decimals", "distinct", "export.curves", "figures", "flight.*", "frame", "harvest", "history.*", "joined",
        "listed", "mixed", "numbering", "oddities", "order", "ordinals", "prefixes", "rates", "recognise", "records",
        "regular", "report.curves", "room", "runs", "series", "spikes", "statistics", "steady", "templates", "together",
        "walltime.stamps", "walltime.tries",
    ),
    "mlflow": ("export.mlflow_store",),
    "opentelemetry": ("emit.otel",),
    "psutil": ("header.host", "running.memory"),
    "pynvml": ("header.accelerators",),
    "ray": ("batch.ray_engine",),
    "regex": ("grammar", "grammar_field", "grammar_file", "learn.tokens", "lint", "marker_lint", "markers", "match"),
    "rich": ("render.*",),
    "sqlalchemy": ("export.mlflow_store",),
    "typer": ("cli.*",),
    "yaml": ("yaml_text",),
    "zlib_ng": ("decompress",),
    "zstandard": ("decompress",),
}

# Slow to load, and of no use to whoever only derives.
NOT_FOR_DERIVE = {"git", "hyperscan", "jsonschema", "numpy", "psutil", "pynvml", "rich", "typer"}

COMPLETE = "__main__"
"""Once this module exists, a line of the table without a file is an error; until then it is a plan."""


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported_names(tree: ast.AST) -> tuple[list[tuple[str, int]], list[str]]:
    """Return every ``(dotted name, line)`` that ``tree`` imports anywhere, and what has a wrong form."""
    names: list[tuple[str, int]] = []
    wrong: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(level=level) if level:
                wrong.append(f"line {node.lineno}: relative import")
            case ast.ImportFrom(module=str(module)):
                names += [(f"{module}.{alias.name}", node.lineno) for alias in node.names]
            case ast.Import():
                names += [(alias.name, node.lineno) for alias in node.names]
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                args=[first, *_],
            ):
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    names.append((first.value, node.lineno))
                else:
                    wrong.append(f"line {node.lineno}: import of a computed name")
    return names, wrong


def resolve(rest: str, table: Mapping[str, str]) -> str:
    """Return the module that ``receipt_cli.<rest>`` is or is in: the longest name that is known."""
    parts = rest.split(".")
    for length in range(len(parts), 0, -1):
        candidate = ".".join(parts[:length])
        if candidate in table or candidate in FILES:
            return candidate
    return (
        "__init__" if len(parts) == 1 else parts[0]
    )  # a name of the façade, or a module that does not exist


def examine(
    module: str, source: str, table: Mapping[str, str] = TABLE, owners: Mapping[str, tuple[str, ...]] = OWNERS
) -> tuple[set[str], list[str]]:
    """Return the modules of ours that ``source`` imports and what it violates."""
    names, wrong = imported_names(ast.parse(source))
    ours: set[str] = set()
    if module not in table:
        wrong.append("unlisted module: give it a line in TABLE")
    allowed = set(table.get(module, "").split())
    for name, line in names:
        top, _, rest = name.partition(".")
        if top == "receipt_cli":
            if rest == "__version__":
                continue
            target = resolve(rest, table) if rest else "__init__"
            ours.add(target)
            if module in table and target not in allowed:
                wrong.append(f"line {line}: imports {target}, which its line in TABLE does not list")
        elif top not in sys.stdlib_module_names and not any(
            fnmatchcase(module, o) for o in owners.get(top, ())
        ):
            wrong.append(
                f"line {line}: stray third party {top}: OWNERS gives it to {owners.get(top, 'nobody')}"
            )
    return ours, list(dict.fromkeys(wrong))  # several names of one statement are one violation


def upward(table: Mapping[str, str]) -> list[str]:
    """Return the entries of ``table`` that name a module not in a line above."""
    above: set[str] = set()
    wrong: list[str] = []
    for module, imports in table.items():
        wrong += [f"{module}: {name} is not in a line above" for name in imports.split() if name not in above]
        above.add(module)
    return wrong


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return one cycle of imports, or an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_there_are_modules() -> None:
    assert {"errors", "units"} <= set(FILES)


@pytest.mark.parametrize("module", FILES)
def test_imports_follow_the_table(module: str) -> None:
    _, wrong = examine(module, FILES[module].read_text("utf-8"))
    assert not wrong, f"{FILES[module].name}: " + "; ".join(wrong)


def test_the_table_runs_one_way() -> None:
    assert upward(TABLE) == []


def test_imports_have_no_cycle() -> None:
    assert (
        cycle({module: examine(module, path.read_text("utf-8"))[0] for module, path in FILES.items()}) == []
    )


def test_every_line_of_the_table_is_a_module() -> None:
    planned = sorted(set(TABLE) - set(FILES))
    assert not planned or COMPLETE not in FILES, f"lines without a module: {planned}"


def test_every_dependency_has_an_owner() -> None:
    listed = {pattern for owners in OWNERS.values() for pattern in owners}
    assert {o for o in listed if not any(fnmatchcase(module, o) for module in TABLE)} == set()


def test_deriving_loads_no_terminal_git_or_schema_package() -> None:
    names = list(TABLE)
    pure = [f"receipt_cli.{m}" for m in names[: names.index("derive") + 1] if m in FILES]
    program = f"import sys, {', '.join(pure)}; print(*sorted({NOT_FOR_DERIVE!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


SMALL = {
    "errors": "",
    "model": "errors",
    "header": "",
    "header.git": "errors",
    "cli.main": "model header.git",
}


@pytest.mark.parametrize(
    ("module", "source", "want"),
    [
        pytest.param("surprise", "import json", "unlisted module", id="unlisted"),
        pytest.param("errors", "from receipt_cli.model import Line", "imports model", id="upward"),
        pytest.param(
            "errors", "from receipt_cli import model", "imports model", id="upward-from-the-package"
        ),
        pytest.param("errors", "import receipt_cli.cli.main as m", "imports cli.main", id="upward-dotted"),
        pytest.param(
            "model", "from receipt_cli.header import git", "imports header.git", id="upward-in-subpackage"
        ),
        pytest.param(
            "model", "from receipt_cli.header.git import facts", "imports header.git", id="upward-name"
        ),
        pytest.param("errors", "from receipt_cli import derive_all", "imports __init__", id="façade"),
        pytest.param("errors", "import receipt_cli", "imports __init__", id="bare-package"),
        pytest.param("model", "from receipt_cli.nowhere import x", "imports nowhere", id="unknown-module"),
        pytest.param("model", "def f():\n    from receipt_cli.header import git", "line 2", id="lazy"),
        pytest.param(
            "model",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from receipt_cli.cli.main import app",
            "imports cli.main",
            id="only-for-types",
        ),
        pytest.param("model", "import rich.table", "stray third party rich", id="not-the-owner"),
        pytest.param(
            "errors", "def f():\n    import typer", "stray third party typer", id="lazy-third-party"
        ),
        pytest.param("model", "import pandas", "nobody", id="not-a-dependency"),
        pytest.param("cli.main", "import click", "stray third party click", id="bundled-by-a-dependency"),
        pytest.param(
            "model",
            "import importlib\nimportlib.import_module('rich')",
            "stray third party rich",
            id="by-name",
        ),
        pytest.param("model", "__import__(name)", "computed name", id="computed-name"),
        pytest.param("model", "from .errors import ReceiptError", "relative import", id="relative"),
        pytest.param("model", "from . import errors", "relative import", id="relative-package"),
    ],
)
def test_a_violation_is_found(module: str, source: str, want: str) -> None:
    _, wrong = examine(module, source, SMALL)
    assert len(wrong) == 1
    assert want in wrong[0]


@pytest.mark.parametrize(
    ("module", "source", "ours"),
    [
        ("model", "import json\nfrom receipt_cli.errors import ReceiptError", {"errors"}),
        ("model", "from receipt_cli import __version__, errors", {"errors"}),
        ("header.git", "def f():\n    import git\n    from receipt_cli import errors", {"errors"}),
        ("cli.main", "import typer\nfrom receipt_cli.header import git", {"header.git"}),
    ],
)
def test_what_the_table_allows_passes(module: str, source: str, ours: set[str]) -> None:
    assert examine(module, source, SMALL) == (ours, [])


def test_an_upward_line_is_found() -> None:
    assert upward({"errors": "model", "model": ""}) == ["errors: model is not in a line above"]
    assert upward({"errors": "errors"}) == ["errors: errors is not in a line above"]


def test_a_cycle_is_found() -> None:
    assert set(cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}
    assert cycle({"a": {"b"}, "b": {"c"}, "c": set()}) == []


POSSESSIVE_GROUP = re.compile(r"\)(?:[?*+]|\{[\d,]+\})\+|\(\?>")


def test_the_standard_re_gets_no_possessive_groups() -> None:
    """CPython before 3.11.5 leaves such a group half matched (gh-106052): other bytes on another Python."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("re.") and call.args:
                texts = [str(n.value) for n in ast.walk(call.args[0]) if isinstance(n, ast.Constant)]
                found += [f"{path.name}:{call.lineno}" for text in texts if POSSESSIVE_GROUP.search(text)]
    assert found == []
