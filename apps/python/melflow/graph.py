"""Pipelines as objects: each stage is a function of nodes."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _melflow, arguments, calls, program
from ._melflow import ConfigError
from .program import Report
from .stage_methods import GraphStages, NodeStages, stage_advice, stages, top_level
from .stage_tables import arguments_of, flow_yaml, is_source

Source = Union["Node", str, Sequence[Union["Node", str]]]  # where a node's items come from


def _sources(options: Mapping[str, Any]) -> List[Tuple[str, str]]:
    """The nodes, and their outputs, that a node takes items from."""
    names = options.get("from") or []
    pairs = [str(name).partition(".") for name in (names if isinstance(names, list) else [names])]
    return [(node, output) for node, _, output in pairs]


class Node(NodeStages):
    """A node of a Graph. Every stage is a method, which adds a node that takes this one's output: node.mel(n_mels=80);
    node["left"] is one of several outputs; `node | graph.mel(n_mels=80)` connects nodes that are there."""

    def __init__(self, graph: "Graph", name: str, output: str = "") -> None:
        self.graph, self.name, self.output = graph, name, output

    @property
    def options(self) -> Dict[str, Any]:
        """stage, from and options, as in YAML; changes count."""
        return self.graph.nodes[self.name]

    def __getitem__(self, output: str) -> "Node":
        return Node(self.graph, self.name, arguments.text("output", output))

    def __str__(self) -> str:
        return f"{self.name}.{self.output}" if self.output else self.name

    def __repr__(self) -> str:
        return f"<{self}: {flow_yaml(self.options)}>"

    def map(self, function: "Callable[..., Any] | str", **options: Any) -> "Node":
        """Graph.map of this node."""
        return self.graph.map(self, function, **options)

    def __or__(self, next: "Node") -> "Node":
        return _connected(self, next)

    def __ror__(self, before: Sequence["Node"]) -> "Node":
        return _connected(before, self)


def _advice(stage: str, option: str, value: Any, known: Iterable[str]) -> str:
    """The end of a message about an option that a stage (or, for "", a pipeline) does not have: its name here, or all that
    there are."""
    try:
        given = arguments.text_of(value)
    except TypeError:
        given = "VALUE"
    return _melflow.option_advice(stage, option, given) or f"; there are {', '.join(known)}"


def _connected(before: Source, node: Any) -> Node:
    if not isinstance(node, Node):
        return NotImplemented
    if node.options.get("from"):
        raise ValueError(f"{node.name} has a node before it already: {flow_yaml(node.options['from'])}")
    options = node.options
    rest = {key: value for key, value in options.items() if key != "stage"}
    stage = options["stage"]
    options.clear()
    options.update({"stage": stage, "from": node.graph._names(before), **rest})
    return node


class Graph(GraphStages):
    """A pipeline as an object, equivalent to a YAML file. Wherever a pipeline is expected, a Graph may be given.

        g = melflow.Graph(workers=4)
        g.file_list(root="clips").disk_read().decode().mel(preset="whisper").hdf5_write(path="mel.h5")
        g.run()

    Every stage is a method, with its options as arguments: g.mel(source, n_mels=80), where source is a node, its name, or a
    list of them. name: that of the node; not given: that of the stage. Options are as in YAML: "10ms", True, Path, NumPy's
    numbers. None is YAML's null: the default, also where a preset sets another value (top_db=None: nothing is clipped).

    settings: the other keys of a pipeline: workers, memory={"host": "2GiB"}, max_failures, expect, plugins.
    nodes: their settings by name; changes count.
    """

    _is_melflow_graph = True

    def __init__(self, **settings: Any) -> None:
        for name in settings:
            if name not in top_level():
                raise TypeError(f"a pipeline has no key {name!r}{_advice('', name, settings[name], top_level())}")
        self.settings: Dict[str, Any] = {"version": 1, **arguments.plain(settings)}
        self.nodes: Dict[str, Dict[str, Any]] = {}

    @classmethod
    def of(cls, pipeline: "Graph | arguments.Pipeline") -> "Graph":
        """The graph of a pipeline: a path, the name of a shipped pipeline, a text, a dict or a Graph, which is copied. Variables
        stay as they are. Raises ConfigError."""
        if isinstance(pipeline, Graph):
            pipeline = pipeline.to_dict()
        name, text = arguments.pipeline(pipeline)
        root = json.loads(_melflow.parse(name, text))
        if not isinstance(root, dict) or not isinstance(root.get("graph"), dict):
            raise ConfigError(f"{name}: a pipeline is a map with the keys 'version' and 'graph'")
        graph = cls()
        graph.nodes = {node: dict(options or {}) for node, options in root.pop("graph").items()}
        graph.settings = root
        return graph

    def add(self, stage: str, source: Optional[Source] = None, *, name: Optional[str] = None, **options: Any) -> Node:
        """Adds a node of a stage by its name."""
        table = stages().get(arguments.text("stage", stage))
        if table is None:
            raise ConfigError(f"there is no stage {stage!r}{stage_advice(stage)}")
        if is_source(table) and source is not None:
            raise TypeError(f"{stage} is a source and comes after no node; give its options by their names")
        settings: Dict[str, Any] = {"stage": stage}
        if source is not None:
            settings["from"] = self._names(source)
        known = arguments_of(table)
        for argument, value in options.items():
            if argument not in known:
                raise TypeError(f"{stage} has no option {argument!r}{_advice(stage, argument, value, known)}")
            settings[known[argument]] = arguments.plain(value)
        if name is None:
            name = stage
            for n in range(2, len(self.nodes) + 3):
                if name not in self.nodes:
                    break
                name = f"{stage}_{n}"
        elif arguments.text("name", name) in self.nodes:
            raise ValueError(f"there is a node {name!r} already")
        self.nodes[name] = settings
        return Node(self, name)

    def map(self, source: Source, function: "Callable[..., Any] | str", *, name: Optional[str] = None, **options: Any) -> Node:
        """Adds a node that calls a function with each recording (the stage python): g.map(node, louder, gain=2.0) calls
        louder(samples, rate, gain=2.0).

        function: a function or class, or its name MODULE:NAME or FILE.py:NAME. options: those of the stage python (takes, gives,
        columns, processes, ...); others are arguments of the function. A function that cannot be imported, as one of a notebook,
        is known in this process only."""
        table = stages()["python"]["properties"]
        call = function if isinstance(function, str) else calls.name_of(function)
        own = {key: value for key, value in options.items() if key in table}
        given = {key: value for key, value in options.items() if key not in table}
        if given:
            own["arguments"] = {**own.get("arguments", {}), **given}
        return self.add("python", source, name=name, call=call, **own)

    def items(self, corpus: "Any | Callable[..., Any] | str", *, name: Optional[str] = None, **options: Any) -> Node:
        """Adds a source of recordings that Python gives: the stage file_list with `call`.

        corpus: an iterable of dicts, a sequence of them, a dict of names and dicts, or a function that gives one of these, or its
        name MODULE:NAME or FILE.py:NAME. The keys of an item are described in melflow.items. Items that an iterable gives only once are
        kept in a temporary file where its audio is not a path or a function. options: those of file_list (labels, columns,
        splits, ...); others are arguments of the function."""
        table = stages()["file_list"]["properties"]
        if isinstance(corpus, str):
            call = corpus
        elif callable(corpus):
            call = calls.name_of(corpus)
        else:
            call = calls.known_object(corpus)
        own = {key: value for key, value in options.items() if key in table}
        given = {key: value for key, value in options.items() if key not in table}
        if given:
            own["arguments"] = {**own.get("arguments", {}), **given}
        return self.add("file_list", name=name, call=call, **own)

    def _names(self, source: Source) -> Any:
        if isinstance(source, (list, tuple)):
            return [self._names(one) for one in source]
        if isinstance(source, Node) and source.graph is not self:
            raise ValueError(f"{source} is a node of another graph")
        if not isinstance(source, (Node, str)):
            raise TypeError(f"a source is a node, its name, or a list of them, not {arguments.shown(source)}")
        return str(source)

    def check_sources(self) -> None:
        """Raises ConfigError if a node that needs an input has none."""
        lone = [f"{name}: comes after no node; write node.{stage}(...) or g.{stage}(node, ...), or connect it: node | g[{name!r}]"
                for name, options in self.nodes.items()
                if (stage := options.get("stage")) in stages() and not is_source(stages()[stage]) and "from" not in options]
        if lone:
            raise ConfigError("\n".join(lone))

    def __getitem__(self, name: str) -> Node:
        if name not in self.nodes:
            raise KeyError(f"there is no node {name!r}; the nodes are {', '.join(self.nodes)}")
        return Node(self, name)

    def __iter__(self) -> Iterator[Node]:
        return (Node(self, name) for name in self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<Graph of {', '.join(self.nodes) or 'no nodes'}>"

    def to_dict(self) -> Dict[str, Any]:
        """The pipeline as a dict, as it would be read from YAML."""
        return {**arguments.plain(self.settings), "graph": arguments.plain(self.nodes)}

    def to_yaml(self, path: "os.PathLike[str] | str | None" = None) -> str:
        """The pipeline as YAML, which is also written to `path`."""
        whole = self.to_dict()
        nodes = whole.pop("graph")
        tests = whole.pop("tests", None)
        lines = [f"{key}: {flow_yaml(value)}" for key, value in whole.items()]
        lines += ["graph:", *(f"  {name}: {flow_yaml(options)}" for name, options in nodes.items())]
        if tests is not None:
            lines.append(f"tests: {flow_yaml(tests)}")
        text = "\n".join(lines) + "\n"
        if path is not None:
            with open(arguments.path("path", path), "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
        return text

    def _repr_html_(self) -> str:
        order: List[str] = []

        def visit(name: str, path: Tuple[str, ...] = ()) -> None:
            if name in self.nodes and name not in order and name not in path:
                for before, _ in _sources(self.nodes[name]):
                    visit(before, (*path, name))
                order.append(name)

        for name in self.nodes:
            visit(name)
        stages, functions = [], {}
        for name in order:
            options = {k: v for k, v in self.nodes[name].items() if k not in ("stage", "from")}
            if "call" in options:  # of a function that only this process knows, as it is called in the code
                options["call"] = calls.shown_name(str(options["call"]))
                functions[name] = {"call": options["call"]}
            stages.append({"name": name, "stage": str(self.nodes[name].get("stage", name)),
                           "options": [f"{k}: {flow_yaml(v)}" for k, v in options.items()][:3]})
        edges = [{"from": before, "to": name, "label": output} for name in order
                 for before, output in _sources(self.nodes[name]) if before in order[:order.index(name)]]
        return program.framed(_melflow.html_report(json.dumps({"stages": stages, "edges": edges, "config": {"graph": functions}})), "20em")  # until it is drawn

    # ---- what can be done with a pipeline

    def validate(self, **options: Any) -> Dict[str, Any]:
        """melflow.validate of this graph, with its options."""
        return program.validate(self, **options)

    def run(self, **options: Any) -> Report:
        """melflow.run of this graph, with its options."""
        return program.run(self, **options)

    def update(self, **options: Any) -> Report:
        """melflow.update of this graph, with its options."""
        return program.update(self, **options)

    def explain(self, **options: Any) -> Dict[str, Any]:
        """melflow.explain of this graph, with its options."""
        return program.explain(self, **options)
