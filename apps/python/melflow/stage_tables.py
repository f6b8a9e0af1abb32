"""The names of stages and options in Python, from the JSON Schema of configurations. Needs nothing else of the package:
the stubs are written before that is built."""

from __future__ import annotations

import json
import keyword
import re
from typing import Any, Dict, List, Mapping

_PLAIN = re.compile(r"[A-Za-z_./][\w./+-]*(?: [\w./+-]+)*")
_WORDS = re.compile(r"(?i)(?:true|false|yes|no|on|off|null|none|y|n|\.nan|[-+]?\.inf|~)")


def flow_yaml(value: Any) -> str:
    """A value in the flow style of YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow_yaml(k)}: {flow_yaml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow_yaml, value)) + "]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and not _WORDS.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def stage_tables(schema: str) -> Dict[str, Any]:
    """For each stage its `description` and the `properties` of its nodes, with those that all nodes have last."""
    known = {name: table for name, table in json.loads(schema)["$defs"].items()
             if "stage" in table.get("properties", {}) and name != "node"}
    common = set.intersection(*(set(table["properties"]) for table in known.values()))
    for table in known.values():
        table["properties"] = dict(sorted(table["properties"].items(), key=lambda option: option[0] in common))
    return known


def is_source(table: Mapping[str, Any]) -> bool:
    return "from" not in table["properties"]


def arguments_of(table: Mapping[str, Any]) -> Dict[str, str]:
    """A stage's options by the names of their arguments: else_ for the option else, which is a keyword of Python."""
    return {option + "_" if keyword.iskeyword(option) else option: option
            for option in table["properties"] if option not in ("stage", "from")}


def documentation(table: Mapping[str, Any]) -> str:
    lines: List[str] = [table["description"], ""]
    for argument, option in arguments_of(table).items():
        about = table["properties"][option]
        default = about.get("default")
        lines.append(f"{argument}: {about['description']}"
                     + ("" if default in (None, "", [], {}) else f" (default {flow_yaml(default)})"))
    return "\n".join(lines)
