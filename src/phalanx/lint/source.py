"""Reads a Python file or a notebook as text that `ast` can parse, and keeps the line numbers that people see."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from dataclasses import dataclass
from pathlib import Path

_ASSIGNED = re.compile(r"^(\s*[\w, ]+ = )[!%].*$")  # `files = !ls`, `took = %timeit -o f()`
LARGEST = 20_000_000  # bytes; a larger file is data or generated code
_OLD = ("Missing parentheses in call to 'print'", "leading zeros in decimal", "multiple exception types must be")


class UnreadableError(Exception):
    """A file that cannot be analysed; the message says why and what it needs."""

    def __init__(self, why: str, needs: str) -> None:
        super().__init__(why)
        self.why, self.needs = why, needs


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one file. `cells` gives the first line of each code cell of a notebook."""

    path: Path
    text: str
    cells: tuple[int, ...] = ()
    skipped: tuple[str, ...] = ()  # cells that do not parse, and why

    @property
    def lines(self) -> list[str]:
        """The lines as people number them, from index 0."""
        return self.text.split("\n")

    @property
    def is_notebook(self) -> bool:
        """Whether lines are those of code cells put together."""
        return self.path.suffix == ".ipynb"

    def parse(self) -> ast.Module:
        """The syntax tree, or UnreadableError with a sentence for the user."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.text)
        except SyntaxError as error:
            message = str(error.msg or "invalid syntax")
            place = f"line {error.lineno}" if error.lineno else "it"
            if message.startswith(_OLD):
                raise UnreadableError(f"{place} is Python 2: {message}", "Python 3 source") from error
            raise UnreadableError(f"{place} does not parse: {message}", "a file without syntax errors") from error
        except ValueError as error:
            raise UnreadableError(str(error), "a text file") from error
        except (RecursionError, MemoryError) as error:
            raise UnreadableError(
                "expressions are nested too deeply", "source that Python itself can compile"
            ) from error


def read_source(path: Path) -> Source:
    """Read a `.py` or `.ipynb` file."""
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise UnreadableError(f"it has {size / 1e6:.0f} MB", f"a file below {LARGEST // 1_000_000} MB")
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableError(error.strerror or "it cannot be read", "a readable file") from error
    if path.suffix == ".ipynb":
        return _read_notebook(path, data)
    return Source(path, _decode(data))


def _decode(data: bytes) -> str:
    if b"\0" in data:
        raise UnreadableError("it holds null bytes", "a text file")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise UnreadableError("its encoding is not what it declares", "UTF-8, or a coding comment") from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _read_notebook(path: Path, data: bytes) -> Source:
    try:
        found = json.loads(data.decode("utf-8", "replace"))
        cells = found["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell.get("cell_type") == "code"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableError("it is no notebook of format 4", "valid JSON with a list of cells") from error
    lines: list[str] = []
    starts: list[int] = []
    skipped: list[str] = []
    for number, text in enumerate(texts, 1):
        starts.append(len(lines) + 1)
        kept = _without_magics(text.split("\n"))
        why = _failure("\n".join(kept))
        skipped += [f"code cell {number} does not parse: {why}"] if why else []
        lines.extend(["pass"] * len(kept) if why else kept)
    return Source(path, "\n".join(lines) + "\n", tuple(starts), tuple(skipped))


def _failure(text: str) -> str:
    """Why Python refuses a cell; one that is broken, or unfinished, must not cost the others."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return f"{error.msg} (its line {error.lineno})"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__
    return ""


def _without_magics(lines: list[str]) -> list[str]:
    """Lines that only IPython understands become `pass`, so that line numbers and blocks stay."""
    if lines and lines[0].startswith("%%") and not lines[0].startswith(("%%time", "%%capture", "%%prun")):
        return ["pass"] * len(lines)  # the cell is another language, or a file that it writes
    kept: list[str] = []
    indent: str | None = None  # of a magic line that goes on: `!pip install a \\`
    for line in lines:
        inner = line.lstrip()
        is_magic = indent is not None or inner.startswith(("%", "!", "?")) or inner.endswith("?")
        before = indent if indent is not None else line[: len(line) - len(inner)]
        kept.append(before + "pass" if is_magic else _ASSIGNED.sub(r"\1None", line))
        indent = before if is_magic and inner.endswith("\\") else None
    return kept
