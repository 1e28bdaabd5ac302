"""`phalanx study train` and `phalanx study classify`: labels for new issues."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from phalanx.cli.study.ending import told_errors

_TRAIN = "Example: phalanx study train labels.csv --output model.npz"
_CLASSIFY = "Example: phalanx study classify collection/ --model model.npz --output labels.parquet"


def register(app: typer.Typer) -> None:
    """Add both commands."""
    app.command(epilog=_TRAIN)(train)
    app.command(epilog=_CLASSIFY)(classify)


def train(
    labelled: Annotated[
        Path,
        typer.Argument(
            help="Labelled texts: .csv, .jsonl or .parquet with text (or title, body), type, symptom, fix, distributed.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model's file.")] = Path("model.npz"),
) -> None:
    """Train the text model from your labelled data, and say honestly how good it is."""
    from phalanx.study.classify.labelled import read_labelled
    from phalanx.study.classify.train import train as fit

    console = Console()
    with told_errors():
        texts, problems = read_labelled(labelled)
        for reason, times in problems.most_common():
            typer.echo(f"  {times} × {reason}", err=True)
        model, evaluations = fit(texts, {"texts": len(texts)})
        model.save(output)
    table = Table(
        "target",
        "texts",
        "classes",
        "accuracy",
        "majority",
        "macro F1",
        "kappa (95 %)",
        "raters",
        "miscal.",
        box=None,
        padding=(0, 2, 0, 0),
    )
    for one in evaluations:
        raters = "" if one.raters is None else f"{one.raters:.2f}"
        kappa = f"{one.kappa:.2f} ({one.low:.2f}–{one.high:.2f})"
        table.add_row(
            one.target,
            str(one.texts),
            str(one.classes),
            f"{one.accuracy:.1%}",
            f"{one.majority:.1%}",
            f"{one.macro_f1:.2f}",
            kappa,
            raters,
            f"{one.miscalibration:.3f}",
        )
    console.print("The text model, on texts it had not seen (5-fold cross-validation):")
    console.print(table)
    for one in evaluations:
        if one.accuracy <= one.majority:
            console.print(
                f"For {one.target} it is no better than always saying the most frequent label: do not rely on it."
            )
    typer.echo(f"wrote {output}", err=True)


def classify(
    issues: Annotated[
        Path,
        typer.Argument(
            help="A collection, or a .csv, .jsonl or .parquet file with text, or title and body.", show_default=False
        ),
    ],
    model: Annotated[Path, typer.Option("--model", "-m", help="A model of `phalanx study train`.")] = Path("model.npz"),
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write: .parquet, .csv or .jsonl.")] = Path(
        "classified.parquet"
    ),
) -> None:
    """Label new issues with the trained text model: type, symptom, stage, fix pattern, specific to distributed training or not.

    Of issues that have labels already, says how many of them the model gets right.
    """
    from phalanx.study.classify.apply import classify_all, score
    from phalanx.study.classify.labelled import read_table, text_of
    from phalanx.study.classify.model import load_model
    from phalanx.study.classify.write import count_labels, write_labels

    with told_errors():
        rows = read_table(issues)
        found = list(classify_all((text_of(row) for row in rows), load_model(model)))
        write_labels(output, rows, [asdict(one) for one in found])
    for line in count_labels(found):
        typer.echo(line)
    for target, (right, given) in score(rows, found).items():
        typer.echo(f"{target}: {right} of {given} given labels right ({right / given:.1%})")
    typer.echo(f"wrote {output}", err=True)
