"""Writes the reproduced study into a folder: tables, plots, the page, the figures file."""

from dataclasses import dataclass
from pathlib import Path

from phalanx.study.errors import StudyError
from phalanx.study.figures import CITATION, SHIPPED_FILE, render_figures
from phalanx.study.page import render_page
from phalanx.study.reproduce.plots import draw_plots
from phalanx.study.reproduce.study import Study, read_study
from phalanx.study.reproduce.tables import build_tables
from phalanx.study.table import Table

FIGURES_NAME = "figures.json"


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, and whether the figures are those that the product ships."""

    study: Study
    folder: Path
    files: int
    same_figures: bool


def reproduce(directory: Path, folder: Path, plots: bool = True) -> Written:
    """Read the authors' files in `directory` and write everything into `folder`."""
    study = read_study(directory)
    tables = build_tables(study)
    drawn = draw_plots(study) if plots else {}
    figures = render_figures(study.figures)
    files: dict[str, bytes] = {FIGURES_NAME: figures.encode()}
    files["tables.md"] = ("# The study's tables\n\n" + "\n".join(table.markdown() for table in tables)).encode()
    files |= {f"tables/{table.name}.csv": table.csv().encode() for table in tables}
    files |= {f"plots/{name}.{form}": data for name, forms in drawn.items() for form, data in forms.items()}
    pictures = {name: forms["svg"] for name, forms in drawn.items()}
    files["study.html"] = render_page("The study, reproduced", summarise(study), CITATION, tables, pictures).encode()
    try:
        _write(folder, files, tables)
    except OSError as error:
        raise StudyError(f"{error.filename or folder}: cannot be written ({error.strerror}).") from error
    shipped = SHIPPED_FILE.read_text(encoding="utf-8") if SHIPPED_FILE.is_file() else ""
    return Written(study, folder, len(files) + len(tables), shipped == figures)


def _write(folder: Path, files: dict[str, bytes], tables: list[Table]) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # A reader never sees half a file, whenever the program is ended.
        partial = path.with_name(path.name + ".partial")
        partial.write_bytes(data)
        partial.replace(path)
    for table in tables:
        table.write_parquet(folder / "tables" / f"{table.name}.parquet")


def summarise(study: Study) -> str:
    """The study in one sentence."""
    figures = study.figures
    return (
        f"{figures.issues:,} issues: {figures.faults} faults in {len(figures.symptoms)} symptoms and {figures.how_to_questions} how-to questions. "
        f"{figures.distributed_specific / figures.faults:.1%} of the faults are specific to distributed training; "
        f"{figures.configuration_share:.1%} were cured in the configuration; "
        f"{figures.mixed_symptoms} symptoms have faults of both kinds."
    )
