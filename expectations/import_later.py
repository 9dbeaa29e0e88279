"""Modules that another one imports but does not use: they are loaded when somebody first asks them for a name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


@contextmanager
def put_off(*names: str) -> Iterator[None]:
    """Whoever imports one of these meanwhile gets a placeholder that turns to the real module when it is used."""
    placeholders = {name: Placeholder(name) for name in names if name not in sys.modules}
    sys.modules.update(placeholders)
    try:
        yield
    finally:
        for placeholder in placeholders.values():
            placeholder.step_aside()


class Placeholder(ModuleType):
    def __getattr__(self, attribute: str) -> Any:
        self.step_aside()
        return getattr(import_module(self.__name__), attribute)

    def step_aside(self) -> None:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
