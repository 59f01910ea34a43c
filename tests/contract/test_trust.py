"""What the package may do is bounded: no code made at run time, no shell, no unsafe reader, no path that a log names."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "receipt_cli"
MODULES = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}

NEVER = {
    "eval", "exec", "compile", "__import__", "breakpoint", "input",
    "os.system", "os.popen", "os.execv", "os.execvp", "os.spawnv", "os.startfile",
    "subprocess.getoutput", "subprocess.getstatusoutput", "commands.getoutput", "pty.spawn",
    "marshal.loads", "marshal.load", "shelve.open", "dill.loads", "cloudpickle.loads", "joblib.load", "numpy.load", "np.load",
    "yaml.unsafe_load", "yaml.full_load", "yaml.load_all", "yaml.unsafe_load_all", "yaml.full_load_all",
    "xml.etree.ElementTree.parse", "ET.parse", "ET.fromstring", "ctypes.CDLL", "ctypes.cdll.LoadLibrary",
    "tempfile.mktemp", "urllib.request.urlopen", "requests.get", "requests.post", "http.client.HTTPSConnection",
}  # fmt: skip
"""What no module calls."""
ONLY: dict[str, set[str]] = {
    "pickle.loads": {"scan/workers.py", "follow/growth.py"},  # what this program's own processes hand one another
    "pickle.load": set(),
    "yaml.load": {"definitions/strict_yaml.py"},  # with a SafeLoader
    "importlib.import_module": {  # of names that the module itself holds
        "header/host.py",
        "wrap/sampling.py",
        "authoring/redos.py",
        "__init__.py",
        "emit/__init__.py",
    },
    "subprocess.Popen": {
        "header/program.py",
        "wrap/child.py",  # git and nvidia-smi; the command of `receipt run`
        "follow/hooks.py",  # the commands of --on-failure, --on-end and --on-stall
    },
    "os.execvpe": {"wrap/job.py"},  # the command of `receipt run`
    "os.execve": {"wrap/job.py"},  # the same, of a script that names no interpreter
    "subprocess.run": {
        "verification/attestation.py",  # ssh-keygen, for a signature that it verifies
        "wrap/sampling.py",  # nvidia-smi, asked by `receipt run --sample`, as a vector and for ten seconds
        "evidence/reading.py",  # scontrol, asked by `receipt run` inside a Slurm job, as a vector and for ten seconds
    },
    "subprocess.check_output": set(),
    "subprocess.check_call": set(),
    "subprocess.call": set(),
}
"""What few modules call, and which."""


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call by the dotted name that it is written with, imports from a module resolved."""
    names: dict[str, str] = {}
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
    for node in nodes:
        if isinstance(node, ast.Call):
            head, dot, rest = dotted_name(node.func).partition(".")
            yield f"{names.get(head, head)}{dot}{rest}", node


def dotted_name(function: ast.expr) -> str:
    """Return the names that a function is called by; empty where it is no name, such as what another call returns."""
    parts: list[str] = []
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    return ".".join([function.id, *reversed(parts)]) if isinstance(function, ast.Name) else ""


def forbidden(name: str, tree: ast.AST) -> Iterator[str]:
    """Yield what the module ``name`` calls and may not."""
    for dotted, call in calls(tree):
        place = f"{name}:{call.lineno}"
        if dotted in NEVER or (dotted in ONLY and name not in ONLY[dotted]):
            yield f"{place} calls {dotted}"
        shell = [word.value for word in call.keywords if word.arg == "shell"]
        if not all(isinstance(value, ast.Constant) and value.value is False for value in shell):
            yield f"{place} may start a shell"
        safe = any(word.arg == "Loader" and ast.unparse(word.value) == "_StrictLoader" for word in call.keywords)
        if dotted == "yaml.load" and not safe:
            yield f"{place} loads with another loader"


def test_no_module_makes_code_or_starts_a_shell() -> None:
    assert [wrong for name, path in MODULES.items() for wrong in forbidden(name, ast.parse(path.read_text("utf-8")))] == []


@pytest.mark.parametrize(
    ("code", "want"),
    [
        ("eval('1')", "calls eval"),
        ("import pickle\npickle.load(f)", "calls pickle.load"),
        ("f('x', shell=True)", "may start a shell"),
        ("f('x', shell=wanted)", "may start a shell"),
        ("import yaml\nyaml.load(x, Loader=L)", "calls yaml.load"),
    ],
)
def test_a_module_that_does_is_found(code: str, want: str) -> None:
    assert [wrong.partition(" ")[2] for wrong in forbidden("wrap/child.py", ast.parse(code))][:1] == [want]


def test_the_reader_of_definitions_is_a_safe_one() -> None:
    import yaml

    from receipt_cli.definitions.strict_yaml import _StrictLoader

    assert issubclass(_StrictLoader, yaml.SafeLoader | yaml.CSafeLoader)


HOOK = r"""
import json, os, sys

events = []
WATCHED = ("open", "os.", "shutil.", "subprocess.", "socket.", "exec", "ctypes.", "import", "pty.", "webbrowser.", "urllib.")
own = os.environ["EVENTS"]

def watch(event, given):
    if event.startswith(WATCHED) and event not in ("exec", "import", "os.putenv", "os.unsetenv"):
        events.append([event, [str(each) for each in given[:3]]])

sys.addaudithook(watch)

def tell():
    with open(own, "w") as file:
        json.dump(events, file)
"""
MAIN = r"""
import json, sys
import watching
from receipt_cli.cli.main import main

for line in json.load(sys.stdin):
    watching.events.append(["command", line])
    sys.argv = ["receipt", *line]
    try:
        main()
    except SystemExit as end:
        if end.code == 70:
            watching.tell()
            sys.exit(f"{line}: a bug")
watching.tell()
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a log full of paths, commands and addresses, and what they lead to."""
    bait = tmp_path / "bait"
    bait.mkdir()
    for name in ("config.json", "wandb-metadata.json", "events.log", "v1.yaml", "x.receipt.json"):
        (bait / name).write_text("{}")
    (bait / "sub").mkdir()
    lines = ["[transformers] ***** Running training *****"]
    for number in range(12):
        lines.append(f"{{'loss': {2.5 - number / 10}, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': {number / 10}}}")
        lines += [
            f"Loading checkpoint from {bait}/config.json", f"resume_from_checkpoint={bait}/sub", f"wandb: dir {bait}/",
            f"file://{bait}/events.log", f"include: {bait}/v1.yaml", f"grammar: {bait}/v1.yaml", f"@{bait}/config.json",
            f"$(touch {bait}/made-{number})", f"`touch {bait}/made-{number}`", f"| tee {bait}/made-{number}",
            f"output_dir={bait}/made-{number}", f"saving to {bait}/made-{number}.pt",
            "../../../../etc/passwd", "\\\\host\\share\\x",
            "http://127.0.0.1:9/x s3://bucket/x gs://bucket/x ftp://127.0.0.1/x",
            f"!!python/object/apply:os.system ['touch {bait}/made']",
            f"__import__('os').system('touch {bait}/made-{number}')", f"-o {bait}/made --output={bait}/made-2",
            f"{{'loss': 1.5, '{bait}/config.json': 0.5, '../../{number}': 1.5, 'learning_rate': 1e-05, 'epoch': {number / 10}}}",
        ]  # fmt: skip
    lines += ["Traceback (most recent call last):", f'  File "{bait}/config.json", line 1', f"OSError: {bait}/config.json"]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    grammar = (ROOT / "grammars" / "nanogpt" / "v1.yaml").read_text("utf-8")
    (tmp_path / "own.yaml").write_text(grammar.replace("grammar: nanogpt", f"grammar: nanogpt  # {bait}/v1.yaml", 1))
    return tmp_path


def watched(folder: Path, lines: list[list[str]]) -> list[tuple[str, list[str]]]:
    """Run commands in a process of its own in ``folder``; return what it asked of the system."""
    (folder / "hook").mkdir()
    (folder / "hook" / "watching.py").write_text(HOOK)
    env = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "hook"), str(ROOT)]), "EVENTS": str(folder / "events.json"),
        "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"),
    }  # fmt: skip
    (folder / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-B", "-c", MAIN], input=json.dumps(lines), env=env, cwd=folder, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [(event, given) for event, given in json.loads((folder / "events.json").read_text())]


def test_no_path_of_a_log_is_opened_and_nothing_is_started(hostile: Path) -> None:
    bait, log = hostile / "bait", str(hostile / "run.log")
    before = sorted(bait.rglob("*"))
    lines = [
        ["parse", log, "-o", "out/a.json", "--html", "out/run.html"],
        ["parse", log, "--json", "--grammar", "own.yaml"],
        ["show", "out/a.json"], ["check", log], ["validate", "out/a.json"], ["verify", "out/a.json", log],
        ["compare", "out/a.json", log], ["plot", log], ["ci", log, "--summary", "out/s.md", "--sarif", "out/s.sarif"],
        ["grammar", "explain", log], ["grammar", "learn", log, "-o", "out/draft.yaml"], ["grammar", "lint", "own.yaml"],
        ["grammar", "test", "own.yaml", log], ["export", log, "--to", "csv"], ["export", log, "--to", "wandb", "-o", "out/wandb"],
        ["export", log, "--to", "tensorboard", "-o", "out/tb"], ["export", log, "--to", "in-toto"],
        ["rederive", log, "--store", "out/store", "--workers", "1"], ["store", "add", "out/store", "out/a.json"],
        ["store", "ls", "out/store"], ["history", "out/store"], ["report", "out/store", "-o", "out/report.html"],
        ["import", log], ["migrate", "out/a.json"],
    ]  # fmt: skip
    (hostile / "out").mkdir()
    events = watched(hostile, lines)
    assert sorted(bait.rglob("*")) == before
    assert sum(event == "command" for event, _ in events) == len(lines)
    asked = [(event, given) for event, given in events if event != "command"]
    assert not [each for each in asked if str(bait) in " ".join(each[1])]
    starts = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "pty.", "ctypes.")
    started = [each for each in asked if each[0].startswith(starts)]
    assert all(each == ("ctypes.dlopen", ["None"]) for each in started), started  # numpy looks at the interpreter itself
    network = [each for each in asked if each[0].startswith(("urllib.", "webbrowser.", "socket.getaddr", "socket.gethost"))]
    network += [each for each in asked if each[0].startswith("socket.") and each[1][1:] and each[1][1].startswith("(")]
    assert not network  # a socket whose address is a path is no network: it is how processes here talk
    allowed = tuple(str(hostile / name) for name in ("out", "tmp", "events.json"))  # and nothing in the user's home
    for event, given in asked:
        writes = event == "open" and set(given[1]) & set("wax+") and given[0] not in ("/dev/null", os.devnull)
        changes = event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")
        if (writes or changes) and not given[0].isdigit():
            path = os.path.normpath(hostile / given[0])
            assert path.startswith(allowed), (event, given)


def test_what_opens_a_path_of_a_log_would_be_found(hostile: Path) -> None:
    events = watched(hostile, [["parse", str(hostile / "bait" / "config.json")]])
    assert [given for event, given in events if event == "open" and "bait" in given[0]]
