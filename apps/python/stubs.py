"""Writes melflow/stage_methods.pyi, the types of the methods that stages are, for editors and type checkers.

In:  stubs.py FILE [EMULATOR [ARGUMENT...]] PROGRAM    PROGRAM: melflow. Out: FILE.
"""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "melflow"))
import stage_tables  # noqa: E402

HEAD = '''from os import PathLike
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, TypedDict, Union

from .graph import Node, Source

def stages() -> Dict[str, Any]: ...
def top_level() -> List[str]: ...
'''
KINDS = {"integer": ["int"], "number": ["float"], "boolean": ["bool"], "string": ["str", "PathLike[str]"], "null": [],
         "object": ["Mapping[str, Any]"], "any": ["Any"]}


def kinds_of(about):
    """The types of a value by its schema, without repetition; None is always allowed."""
    if "anyOf" in about:
        found = [kind for one in about["anyOf"] for kind in kinds_of(one)]
        is_choice = any("enum" in one and "null" not in one["enum"] for one in about["anyOf"])
        return list(dict.fromkeys(kind for kind in found if not (is_choice and kind == "str")))
    if "$ref" in about:
        return ["str"]  # a variable
    if "enum" in about:
        return [f"Literal[{', '.join(repr(one) for one in about['enum'] if one not in (None, 'null'))}]"]
    if about.get("type") == "array":
        return [f"Sequence[{union(kinds_of(about['items']))}]"]
    names = about.get("type", "any")
    return [kind for name in (names if isinstance(names, list) else [names]) for kind in KINDS[name]]


def union(kinds):
    return kinds[0] if len(kinds) == 1 else f"Union[{', '.join(kinds)}]"


def method(stage, table, of_node):
    first = "self" if of_node or stage_tables.is_source(table) else "self, source: Optional[Source] = ..."
    options = "".join(f", {argument}: Optional[{union(kinds_of(table['properties'][option]))}] = ..."
                      for argument, option in stage_tables.arguments_of(table).items())
    text = stage_tables.documentation(table).replace("\\", "\\\\").replace('"""', "'''")
    return f'    def {stage}({first}, *, name: Optional[str] = ...{options}) -> Node:\n        """{text}\n        """\n'


def mel_options(table):
    """The options of the stage mel that melflow.features takes, beside its own arguments."""
    lines = "".join(f"    {argument}: Optional[{union(kinds_of(table['properties'][option]))}]\n"
                    for argument, option in stage_tables.arguments_of(table).items() if option != "sample_rate")
    return "\nclass MelOptions(TypedDict, total=False):\n" + lines


def main():
    out, *program = sys.argv[1:]
    schema = subprocess.run([*program, "stages", "--json-schema"], check=True, capture_output=True, text=True).stdout
    tables = stage_tables.stage_tables(schema)
    text = HEAD + mel_options(tables["mel"]) + "\nclass GraphStages:\n"
    text += "".join(method(stage, table, False) for stage, table in tables.items())
    text += "\nclass NodeStages:\n"
    text += "".join(method(stage, table, True) for stage, table in tables.items() if not stage_tables.is_source(table))
    Path(out).write_text(text, encoding="utf-8")


main()
