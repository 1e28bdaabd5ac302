"""How the raters' sheets spell what the final sheet spells otherwise; added to the folding table of `labels`.

The raters worked before the taxonomy was final. They wrote PENDING where no category fitted, used names that were
merged later, and one of them left a column out, so that every later label stands one column to the left.
"""

from dataclasses import dataclass

from phalanx.study.labels import (
    FIX_LABELS,
    LEAVES,
    STAGE_PREFIXES,
    UnknownLabelError,
    fold_fixes,
    fold_symptom,
    normalise,
)

FAULT, HOW_TO, UNRATED, PENDING = "fault", "how-to question", "", "pending"

TYPE_SPELLINGS = {"fault": FAULT, "how-to question": HOW_TO, "how-to topic": HOW_TO}
INNER_SPELLINGS = {"program failures": "program failure", "unexpected behaviour": "unexpected performance"}
LEAF_SPELLINGS = {
    "checkpoint nonfunctioning": "checkpoint unfunctioning",
    "installation/build failure": "installation & build failure",
    "pening": PENDING,
    "tensosr mismatch": "tensor mismatch",
    "unexpected result": "unexpected intermediate result",
}
TOPIC_SPELLINGS = {"communitive operator": "communication operator"}


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """A spelling that could be read otherwise: where it stands, what was chosen, what else was possible."""

    where: str
    spelling: str
    chosen: str
    alternative: str


AMBIGUOUS_SPELLINGS = (
    Ambiguous(
        "raters, leaf",
        "unexpected result",
        "perf.unexpected-intermediate-result",
        "a category of its own, merged later",
    ),
    Ambiguous(
        "raters, leaf", "pending", "a label of its own: both raters found no category", "left out of the agreement"
    ),
    Ambiguous("raters, type", "how-to topic", HOW_TO, "a heading copied by mistake, not a rating"),
    Ambiguous("raters, type", "(empty, with a stage)", FAULT, "not rated"),
    Ambiguous("how-to sub-topic", "communitive operator", "communication operator", "commutative operator"),
    Ambiguous(
        "raters, columns", "leaf in the column of the inner category", "moved one column to the right", "a wrong leaf"
    ),
)


@dataclass(frozen=True, slots=True)
class Rating:
    """One rater's labels for one issue. `written_*` are as spelled, but for case, spaces, `&` and plurals."""

    kind: str
    symptom: str
    fix: str
    specific: str
    topic: str
    written_symptom: str
    written_fix: str
    shifted: bool = False
    unknown: str = ""  # a leaf that the folding table does not hold; it counts as a label of its own


def fold_rating(
    kind: object, topic: object, specific: object, stage: object, inner: object, leaf: object, fix: object
) -> Rating:
    """Fold the cells of one row of a rater's sheet."""
    cells = [normalise(None if cell is None else str(cell)) for cell in (stage, inner, leaf, fix)]
    folded_kind = TYPE_SPELLINGS.get(normalise(None if kind is None else str(kind)), FAULT if cells[0] else UNRATED)
    if folded_kind != FAULT:
        name = folded_kind or UNRATED
        return Rating(name, name, name, "", normalise(None if topic is None else str(topic)), "", "")
    straight, shifted = _put_straight(cells)
    symptom, unknown = _fold_symptom(*straight[:3])
    return Rating(
        kind=FAULT,
        symptom=symptom,
        fix=_fold_fix(straight[3]),
        specific="" if specific is None else str(specific),
        topic="",
        written_symptom=_as_written(cells[2]),
        written_fix=_as_written(cells[3]),
        shifted=shifted,
        unknown=unknown,
    )


def _put_straight(cells: list[str]) -> tuple[list[str], bool]:
    """Undo the missing column: only training has inner categories, so elsewhere that cell holds the leaf."""
    stage, inner, leaf, fix = cells
    inner = INNER_SPELLINGS.get(inner, inner)
    if (stage, "") not in STAGE_PREFIXES or not inner:
        return [stage, inner, leaf, fix], False
    if inner == leaf:
        return [stage, "", leaf, fix], False
    return [stage, "", inner, fix or leaf], True


def _fold_symptom(stage: str, inner: str, leaf: str) -> tuple[str, str]:
    leaf = LEAF_SPELLINGS.get(leaf, leaf)
    prefix = STAGE_PREFIXES.get((stage, inner))
    if leaf in ("", PENDING) or prefix is None:
        return (f"{prefix}.{PENDING}" if prefix else PENDING), ""
    try:
        return fold_symptom(stage, inner, leaf), ""
    except UnknownLabelError:
        return f"{prefix}: {leaf}", leaf


def _fold_fix(fix: str) -> str:
    if fix in ("", PENDING):
        return PENDING
    folded = fold_fixes(fix)[0]
    # What the final list gathers as "other" are different changes: two raters agree only if they name the same one.
    return folded if folded != "other" else f"other: {fix}"


def _as_written(cell: str) -> str:
    return cell.replace("&", "and").removesuffix("s")


def fold_topic(cell: str | None) -> str:
    """A how-to topic or sub-topic in one spelling."""
    name = normalise(cell)
    return TOPIC_SPELLINGS.get(name, name)


def known_spellings() -> list[tuple[str, str, str]]:
    """The whole folding table: (what, spelling, id)."""
    rows = [("type", spelling, kind) for spelling, kind in TYPE_SPELLINGS.items()]
    rows += [("inner category", spelling, name) for spelling, name in INNER_SPELLINGS.items()]
    rows += [
        (f"symptom, {prefix}", leaf, f"{prefix}.{name}")
        for prefix, leaves in LEAVES.items()
        for leaf, name in leaves.items()
    ]
    rows += [("symptom, raters only", spelling, leaf) for spelling, leaf in LEAF_SPELLINGS.items()]
    rows += [("fix pattern", label, pattern) for label, pattern in FIX_LABELS.items()]
    return rows + [("how-to sub-topic", spelling, name) for spelling, name in TOPIC_SPELLINGS.items()]
