"""Which files each rank saves and loads, and which of them load weights into a model."""

from __future__ import annotations

import os
from typing import Any

from .lines import line
from .observer import Observer, wrap


def hook(observer: Observer) -> None:
    """See `torch.save`, `torch.load` and `load_state_dict`."""
    import torch

    def make(really: Any) -> Any:
        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
            with observer.guard:
                path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else str(getattr(f, "name", ""))
                observer.write("save", path=str(path), line=line())
            return really(obj, f, *args, **kwargs)

        return save

    def load_of(really: Any) -> Any:
        def load(f: Any, *args: Any, **kwargs: Any) -> Any:
            with observer.guard:
                path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else str(getattr(f, "name", ""))
                observer.write("load", path=str(path), line=line())
            return really(f, *args, **kwargs)

        return load

    def state_of(really: Any) -> Any:
        def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
            with observer.guard:
                observer.write("loaded", cls=type(self).__name__, line=line())
            return really(self, *args, **kwargs)

        return load_state_dict

    wrap(torch.nn.Module, "load_state_dict", state_of)
    wrap(torch, "save", make)
    wrap(torch, "load", load_of)
    torch.serialization.save = torch.save
    torch.serialization.load = torch.load
