"""The stages as methods of graphs and nodes. Type checkers read stage_methods.pyi, which the build makes (stubs.py)."""

from __future__ import annotations

import functools
import inspect
import json
from typing import Any, Callable, Dict, List, Optional

from . import _melflow
from .stage_tables import arguments_of, documentation, is_source, stage_tables


@functools.lru_cache(maxsize=1)
def _tables(count: int) -> Dict[str, Any]:
    return stage_tables(_melflow.schema())


def stages() -> Dict[str, Any]:
    """The tables of all stages, also of those of plug-ins that have been loaded."""
    return _tables(_melflow.stage_count())


def top_level() -> List[str]:
    """The keys of a pipeline beside its nodes and tests."""
    return [key for key in json.loads(_melflow.schema())["properties"] if key not in ("graph", "tests")]


def stage_advice(name: str) -> str:
    """The end of a message about a stage that is not there: its name here, or all that there are."""
    return _melflow.stage_advice(name) or f"; there are {', '.join(stages())}"


def _method(stage: str, add: Callable[..., Any], takes_source: bool) -> Callable[..., Any]:
    table = stages()[stage]

    def method(source: Any = None, *, name: Optional[str] = None, **options: Any) -> Any:
        return add(stage, source, name=name, **options)

    kind = inspect.Parameter
    parameters = [kind("source", kind.POSITIONAL_OR_KEYWORD, default=None)] if takes_source else []
    parameters += [kind(argument, kind.KEYWORD_ONLY, default=None) for argument in ["name", *arguments_of(table)]]
    method.__name__ = method.__qualname__ = stage
    method.__doc__ = documentation(table)
    method.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return method


def _no_stage(name: str, what: str) -> AttributeError:
    return AttributeError(f"a {what} has no {name!r}, and no stage has this name{stage_advice(name)}")


class GraphStages:
    """Every stage as a method: graph.mel(source, n_mels=80)."""

    def __getattr__(self, stage: str) -> Callable[..., Any]:
        if stage.startswith("_") or stage not in stages():
            raise _no_stage(stage, "graph")
        return _method(stage, self.add, not is_source(stages()[stage]))  # type: ignore[attr-defined]

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *stages()]


class NodeStages:
    """Every stage but sources as a method: node.mel(n_mels=80)."""

    def __getattr__(self, stage: str) -> Callable[..., Any]:
        if stage.startswith("_") or stage not in stages() or is_source(stages()[stage]):
            raise _no_stage(stage, "node")
        add = self.graph.add  # type: ignore[attr-defined]
        return _method(stage, lambda of, _, **options: add(of, self, **options), False)

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *(stage for stage, table in stages().items() if not is_source(table))]
