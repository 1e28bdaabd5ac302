"""The study's plots: SVG for print, PNG for slides, the same bytes for the same figures."""

from collections import Counter
from collections.abc import Callable
from io import BytesIO
from typing import Any

from phalanx.study.errors import need
from phalanx.study.labels import FIX_PATTERNS, OTHER, STAGES, SYMPTOMS
from phalanx.study.reproduce.rounds import FOLDED
from phalanx.study.reproduce.study import Study
from phalanx.study.reproduce.tables import FRAMEWORKS

# Colours that are told apart by people who are colour-blind, and in grey.
_COLOURS = {"specific": "#0072b2", "ordinary": "#e69f00", "line": "#555555"}
_FRAMEWORK_COLOURS = dict(zip(FRAMEWORKS, ("#0072b2", "#d55e00", "#009e73", "#cc79a7"), strict=True))
_STYLE = {
    "font.size": 8,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "svg.hashsalt": "phalanx",
    "svg.fonttype": "path",
    "savefig.dpi": 200,
}


def draw_plots(study: Study) -> dict[str, dict[str, bytes]]:
    """Every plot by name, each as {"svg": …, "png": …}."""
    matplotlib = need("matplotlib", "drawing plots")
    # A Figure without pyplot: no window system is looked for, and nothing global is kept.
    figure_class = need("matplotlib.figure", "drawing plots").Figure
    plots: dict[str, Callable[[Any, Study], None]] = {
        "symptoms": _symptoms,
        "stages": _stages,
        "fixes-by-symptom": _heat_map,
        "agreement": _agreement,
        "how-to-topics": _topics,
    }
    drawn = {}
    with matplotlib.rc_context(_STYLE):
        for name, draw in plots.items():
            figure = figure_class(layout="constrained")
            draw(figure, study)
            drawn[name] = {"svg": _save(figure, "svg", {"Date": None}), "png": _save(figure, "png", {"Software": None})}
    return drawn


def _save(figure: Any, form: str, metadata: dict[str, None]) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format=form, metadata=metadata)
    return buffer.getvalue()


def _symptoms(figure: Any, study: Study) -> None:
    figure.set_size_inches(7.0, 6.0)
    axes = figure.add_subplot()
    rows = list(study.figures.symptoms.items())[::-1]
    names = [name for name, _ in rows]
    specific = [row.distributed_specific for _, row in rows]
    ordinary = [row.faults - row.distributed_specific for _, row in rows]
    axes.barh(names, specific, color=_COLOURS["specific"], label="specific to distributed training")
    axes.barh(
        names, ordinary, left=specific, color=_COLOURS["ordinary"], label="ordinary", hatch="///", edgecolor="white"
    )
    for place, (_, row) in enumerate(rows):
        axes.text(row.faults + 0.8, place, str(row.faults), va="center", fontsize=7)
    axes.set_xlabel("faults")
    axes.margins(y=0.01)
    # bars hold the axis to their end: the longest one's number needs room
    axes.set_xlim(0, 1.08 * max(row.faults for _, row in rows))
    axes.legend(frameon=False, loc="lower right")


def _stages(figure: Any, study: Study) -> None:
    figure.set_size_inches(7.0, 2.4)
    axes = figure.add_subplot()
    stages = list(reversed(dict.fromkeys(STAGES.values())))
    counts = Counter((STAGES[fault.symptom.partition(".")[0]], fault.framework) for fault in study.faults)
    left = [0] * len(stages)
    for framework in FRAMEWORKS:
        widths = [counts[stage, framework] for stage in stages]
        axes.barh(stages, widths, left=left, color=_FRAMEWORK_COLOURS[framework], label=framework, edgecolor="white")
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_xlabel("faults")
    axes.legend(frameon=False, ncols=len(FRAMEWORKS), loc="upper right")


def _heat_map(figure: Any, study: Study) -> None:
    figure.set_size_inches(9.0, 7.5)
    axes = figure.add_subplot()
    patterns = [name for name in FIX_PATTERNS if name != OTHER and study.figures.fixes[name].count] + [OTHER]
    grid = []
    for symptom in SYMPTOMS:
        row = study.figures.symptoms[symptom]
        grid.append([row.fixes.get(pattern, 0) / row.faults if row.faults else 0.0 for pattern in patterns])
    image = axes.imshow(grid, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(patterns)), patterns, rotation=60, ha="right")
    axes.set_yticks(range(len(SYMPTOMS)), SYMPTOMS)
    for y, symptom in enumerate(SYMPTOMS):
        for x, pattern in enumerate(patterns):
            count = study.figures.symptoms[symptom].fixes.get(pattern, 0)
            if count:
                axes.text(
                    x,
                    y,
                    str(count),
                    ha="center",
                    va="center",
                    fontsize=6,
                    color="white" if grid[y][x] > 0.5 else "black",
                )
    figure.colorbar(image, ax=axes, label="share of the symptom's faults", shrink=0.6)


def _agreement(figure: Any, study: Study) -> None:
    figure.set_size_inches(7.0, 2.8)
    panels = figure.subplots(1, 3, sharey=True)
    for axes, question in zip(panels, ("type", "symptom", "fix pattern"), strict=True):
        found = [one for one in study.agreements if one.question == question and one.reading == FOLDED]
        names = ["all" if one.round is None else str(one.round) for one in found]
        values = [one.agreement.kappa for one in found]
        below = [one.agreement.kappa - one.agreement.low for one in found]
        above = [one.agreement.high - one.agreement.kappa for one in found]
        axes.errorbar(
            names, values, yerr=[below, above], fmt="o", color=_COLOURS["specific"], ecolor=_COLOURS["line"], capsize=3
        )
        axes.set_title(question)
        axes.set_xlabel("round")
        axes.grid(axis="y", alpha=0.3)
    panels[0].set_ylabel("Cohen's kappa, 95 %")
    panels[0].set_ylim(0.4, 1.03)


def _topics(figure: Any, study: Study) -> None:
    figure.set_size_inches(7.0, 3.0)
    axes = figure.add_subplot()
    ranked = Counter(question.topic for question in study.questions).most_common()
    counts = Counter((question.topic, question.framework) for question in study.questions)
    topics = [topic for topic, _ in reversed(ranked)]
    left = [0] * len(topics)
    for framework in FRAMEWORKS:
        widths = [counts[topic, framework] for topic in topics]
        axes.barh(topics, widths, left=left, color=_FRAMEWORK_COLOURS[framework], label=framework, edgecolor="white")
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_xlabel("how-to questions")
    axes.legend(frameon=False, loc="lower right")
