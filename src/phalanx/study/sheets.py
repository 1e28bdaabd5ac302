"""Reads the authors' workbooks: rows of a sheet, with every way in which a file can be wrong said clearly."""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from phalanx.study.errors import StudyError, need

# Sheets are parsed row by row: damage inside one shows only while its rows are read.
DAMAGE = (OSError, ParseError, zipfile.BadZipFile)


def open_workbook(path: Path) -> Any:
    """Open a workbook for reading; close it when done."""
    if not path.is_file():
        raise StudyError(f"{path}: no such file. Give the folder that holds the authors' {path.name}.")
    openpyxl = need("openpyxl", "reading the sheet")
    try:
        return openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (OSError, KeyError, ValueError, ParseError, zipfile.BadZipFile) as error:
        raise StudyError(f"{path}: not a readable Excel workbook ({error}).") from error


def read_rows(
    workbook: Any, sheet: str, columns: Sequence[str], file: str = "final-categories.xlsx"
) -> Iterator[tuple[Any, ...]]:
    """The rows below the header that hold anything, cut to the columns, which must be there in this order."""
    for _, row in read_numbered_rows(workbook, sheet, columns, file):
        yield row


def read_numbered_rows(
    workbook: Any, sheet: str, columns: Sequence[str], file: str
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The same, each with its number in the sheet; a header may say " Final" after its name."""
    if sheet not in workbook.sheetnames:
        raise StudyError(f"{file}: no sheet {sheet!r}; found {', '.join(workbook.sheetnames)}.")
    rows = workbook[sheet].iter_rows(values_only=True)
    header = tuple(_title(cell) for cell in tuple(next(rows, ()))[: len(columns)])
    if header != tuple(columns):
        raise StudyError(f"{file}, sheet {sheet!r}: expected the columns {tuple(columns)}, found {header}.")
    for number, row in enumerate(rows, start=2):
        # Spreadsheets keep formatted but empty rows between and after the others.
        if any(cell is not None and str(cell).strip() for cell in row[: len(columns)]):
            yield number, tuple(row)[: len(columns)]


def _title(cell: Any) -> Any:
    return cell.strip().removesuffix(" Final") if isinstance(cell, str) else cell
