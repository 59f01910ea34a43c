"""The manual page of ``receipt`` in roff, from the declarations that help is made of."""

from receipt_cli import __version__
from receipt_cli.cli.app import ABOUT, HELP, Command, option_row
from receipt_cli.cli.commands import COMMANDS, GROUPS, summaries
from receipt_cli.errors import ExitCode


def escape(text: str) -> str:
    """Return ``text`` as roff prints it: backslashes and hyphens as they are, ASCII alone, no line read as a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in escaped)
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in escaped.split("\n"))


def entry(term: str, text: str) -> str:
    """Return a term and, indented below it, what it means."""
    return f".TP\n.B {escape(term)}\n{escape(text)}\n"


def command_section(name: str) -> str:
    """Return the section of a command: its usage, its help, its arguments and options, its example."""
    command = Command(name).load()
    arguments = [(each.metavar, each.help) for each in command.arguments]
    options = [option_row(each) for each in command.options]
    words = (each.metavar if each.required else f"[{each.metavar}]" for each in command.arguments)
    usage = " ".join(["receipt", name, "[OPTIONS]", *words])
    paragraphs = "\n.PP\n".join(escape(paragraph) for paragraph in command.about.split("\n\n"))
    entries = "".join(entry(*row) for row in (*arguments, *options))
    shown = f".PP\nExample:\n.PP\n.nf\n.RS\n{escape(command.example)}\n.RE\n.fi\n"
    return f'.SS "{escape(usage)}"\n{paragraphs}\n{entries}{shown}'


def manual() -> str:
    """Return the page."""
    first = ABOUT[0].lower() + " ".join(ABOUT[1:].split()).removesuffix(".")
    groups = "".join(entry(f"receipt {name}", about) for name, about in summaries().items() if name in GROUPS)
    codes = "".join(entry(str(code.value), code.meaning) for code in ExitCode)
    return (
        f'.TH RECEIPT 1 "" "receipt {__version__}" "User Commands"\n.ad l\n.nh\n'
        f".SH NAME\nreceipt \\- {escape(first)}\n"
        ".SH SYNOPSIS\n.B receipt\n.I COMMAND\n[OPTIONS] [ARGS...]\n"
        f".SH OPTIONS\n{entry('--version', 'Print the version and exit.')}{entry(*HELP)}"
        f".SH COMMANDS\n{groups}{''.join(map(command_section, COMMANDS))}.SH EXIT STATUS\n{codes}"
    )
