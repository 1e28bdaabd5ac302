"""A table of results, and how it is written: Markdown, CSV, Parquet."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns; `shares` are the columns whose numbers are printed as per cent."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    shares: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: {len(row)} cells under {len(self.columns)} columns: {row}")

    def shown(self) -> list[list[str]]:
        """The cells as text for people."""
        return [
            [_show(cell, column in self.shares) for cell, column in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]

    def markdown(self) -> str:
        """The table in Markdown, with its title and note."""
        lines = [f"## {self.title}", ""]
        lines += [self.note, ""] if self.note else []
        lines += [
            _line(self.columns),
            _line(["---:" if self._is_number(index) else "---" for index in range(len(self.columns))]),
        ]
        lines += [_line(row) for row in self.shown()]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """The table for spreadsheets and programs: numbers in full."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()

    def write_parquet(self, path: Path) -> None:
        """The table with typed columns."""
        import polars

        data = {column: [row[index] for row in self.rows] for index, column in enumerate(self.columns)}
        polars.DataFrame(data, strict=False).write_parquet(path, compression="zstd")

    def _is_number(self, index: int) -> bool:
        cells = [row[index] for row in self.rows if row[index] is not None]
        return bool(cells) and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells)


def _show(cell: Cell, share: bool) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.1%}" if share else f"{cell:.3f}"
    return str(cell)


def _line(cells: Sequence[str]) -> str:
    # A bar or a line break inside a cell would end the cell or the row.
    escaped = (cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"
