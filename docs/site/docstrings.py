"""Docstrings of the package as Markdown: "name: text" at the beginning of a line is an entry of a list there."""

import re

import griffe

ENTRY = re.compile(r"(?P<names>[A-Za-z_]\w*(?:, [A-Za-z_]\w*)*)(?P<rest>: .*|:$)")


def entries(text, known):
    """`text` with each line "sample_rate: [Hz]" of a known name, and the lines behind it that continue it, as an entry of a list."""
    out, is_entry = [], False
    for line in text.split("\n"):
        found = ENTRY.match(line)
        if found and known.issuperset(found["names"].split(", ")):
            if out and out[-1].strip() and not is_entry:
                out.append("")
            names = ", ".join(f"`{name}`" for name in found["names"].split(", "))
            out.append(f"- {names}{found['rest']}")
            is_entry = True
        elif is_entry and line.strip():
            out.append("    " + line.strip())
        else:
            out.append(line)
            is_entry = False
    return "\n".join(out)


def names_in(obj):
    """The names of a function's arguments; of a class those of its constructor, and its attributes."""
    if obj.is_class:
        return set(obj.members) | (names_in(obj.members["__init__"]) if "__init__" in obj.members else set())
    return {parameter.name for parameter in obj.parameters} if obj.is_function else set()


class Docstrings(griffe.Extension):
    def on_package(self, *, pkg, **_):
        seen = [pkg]
        for obj in seen:
            seen += [one for one in obj.members.values() if not one.is_alias]
            if obj.docstring:
                text = entries(obj.docstring.value, names_in(obj))
                obj.docstring.value = re.sub(r"\bdocs/([a-z-]+)\.md", r"[its page](\1.md)", text)
