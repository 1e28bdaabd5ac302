"""The four stages of a training job's life, as the study names them."""

from enum import StrEnum


class Stage(StrEnum):
    """A stage; the value is the study's own wording, which reports print."""

    BUILD = "package build & import"
    COMM = "communication setup"
    PREP = "data and model preparation"
    TRAIN = "training & evaluation"

    @property
    def key(self) -> str:
        """The short name that rules use (`build`, `comm`, `prep`, `train`)."""
        return self.name.lower()

    @classmethod
    def of_symptom(cls, symptom: str) -> "Stage":
        """The stage a symptom id belongs to: `fail.*` and `perf.*` are both training."""
        prefix = symptom.split(".", 1)[0]
        return {"build": cls.BUILD, "comm": cls.COMM, "prep": cls.PREP}.get(prefix, cls.TRAIN)
