"""The pages of the site from the repository's Markdown, and a check of its links that needs Python alone.

In:  pages.py FOLDER PROGRAM   writes the pages there; the folder is made anew. PROGRAM: melflow, whose --help is the page of commands
     pages.py --check          checks links and their anchors in every Markdown file and notebook
Out: a line for each link that leads nowhere; exit status 0 where there is none.

Links are those of the files as they lie in the repository. In the site docs/*.md and the first page are at the top, decisions and READMEs of
rooms in folders, and what else is linked is a page with the source.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md", "CODE_OF_CONDUCT.md": "conduct.md",
          "perf/README.md": "figures.md", "perf/results/gpus.md": "gpus.md", "README.md": "index.md", "docs/decisions": "decisions/index.md"}
AS_THEY_ARE = (".png", ".svg", ".jsonl")
LANGUAGES = {".h": "cpp", ".hpp": "cpp", ".cpp": "cpp", ".c": "c", ".py": "python", ".rs": "rust", ".sh": "bash", ".yaml": "yaml"}
NATIVE_SOURCES = ("apps/c/melflow.h", "apps/c/melflow.hpp")
FENCE = re.compile(r"^ *(`{3,})[^\n]*\n.*?^ *\1 *$", re.S | re.M)
LINK = re.compile(r"(!?)\]\(([^)\s]+)\)")  # also in code of one line, where none of these pages has any
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.M)


def place(path):
    """Where a file of the repository is in the site."""
    if path in PLACES:
        return PLACES[path]
    folder, name = os.path.split(path)
    if name == "README.md":
        return f"rooms/{folder.replace('/', '-')}.md"
    if path.endswith((".md", *AS_THEY_ARE)) and folder in ("docs", "docs/site", "docs/decisions"):
        return re.sub("^docs/(site/)?", "", path)
    return f"source/{path}" + ("" if path.endswith(AS_THEY_ARE) else ".md")


def without_code(text):
    """`text` with spaces in place of fenced code, so that places stay the same."""
    return FENCE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


@functools.lru_cache(maxsize=None)
def text_of(path):
    """A file's Markdown; of a notebook and of a source the page that stands for it."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    if path.endswith(".ipynb"):
        cells = [("".join(cell["source"]), cell["cell_type"]) for cell in json.loads(text)["cells"]]
        return "\n\n".join(source if kind == "markdown" else f"```python\n{source}\n```" for source, kind in cells) + "\n"
    language = LANGUAGES.get(Path(path).suffix, "text")
    return f"# {Path(path).name}\n\n`{path}`\n\n`````{language}\n{text}`````\n"


def slug(heading):
    """The anchor of a heading, as forges and the site make it."""
    heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")


def title(path):
    return re.search(r"^# (.*)", text_of(path), re.M)[1]


@functools.lru_cache(maxsize=None)
def anchors(path):
    text = without_code(text_of(path))
    return {slug(found[1]) for found in HEADING.finditer(text)} | set(re.findall(r'(?:id|name)="([^"]+)"', text))


def links(path):
    """Of each link within the repository: place in the text, target as written, file that it names, anchor."""
    for found in LINK.finditer(without_code(text_of(path))):
        target, _, anchor = found[2].partition("#")
        if re.match(r"[a-z]+:", found[2]):
            continue
        yield found.start(2), found[2], os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path, anchor


def problems(paths):
    for path in paths:
        for at, written, target, anchor in links(path):
            line = text_of(path).count("\n", 0, at) + 1
            if target.startswith("..") or not (ROOT / target).exists():
                yield f"{path}:{line}: {written}: there is no such file"
            elif anchor and target.endswith((".md", ".ipynb")) and anchor not in anchors(target):
                yield f"{path}:{line}: {written}: {target} has no heading with this anchor"


def page(path):
    """The Markdown of a file with its links as they are in the site."""
    text, here = text_of(path), os.path.dirname(place(path))
    for at, written, target, anchor in reversed(list(links(path))):
        if target == path and written.startswith("#"):
            continue
        if target == "README.md":
            anchor = ""  # the site has a first page of its own
        new = os.path.relpath(place(target), here or ".") + (f"#{anchor}" if anchor else "")
        text = text[:at] + new + text[at + len(written):]
        name = os.path.basename(target)
        if name.endswith(".md") and text[:at].endswith(f"[{name}]("):  # the page's title reads better than the file's name
            text = text[:at - len(name) - 2] + title(target) + text[at - 2:]
    if path == "docs/stages.md":  # in the texts of options
        text = re.sub(r"\bdocs/([a-z-]+)\.md", lambda found: f"[{title(found[0])}]({found[1]}.md)", text)
    return indented(text)


def indented(text):
    """`text` with four spaces before what belongs to an entry of a list, as Python-Markdown wants it; forges take two."""
    out, is_list, fence = [], False, ""
    for line in text.split("\n"):
        if fence:
            fence = "" if line.rstrip() == fence else fence
        elif line and not line.startswith(" "):
            is_list = bool(re.match(r"([-*]|[0-9]+[.]) ", line))
            fence = (re.match("`{3,}", line) or [""])[0]
            if is_list and out and out[-1].strip() == "```":
                out.append("")
        out.append("  " + line if is_list and line.startswith("  ") else line)
    return "\n".join(out)


def decisions():
    names = sorted(path.name for path in (ROOT / "docs/decisions").glob("*.md"))
    return "# Decisions\n\nWhat readers of the code would ask about, with the measurement that decided it.\n\n" + "\n".join(
        f"- [{title(f'docs/decisions/{name}')}]({name})" for name in names) + "\n"


def wrapped(text):
    """Help with lines of at most 92 columns; what an option means goes on below its begin."""
    out = []
    for line in text.split("\n"):
        indent = re.match(r" *(?:\S+(?: \S+)* {2,})?", line)
        out += textwrap.wrap(line, 92, subsequent_indent=" " * min(len(indent[0]), 40), break_long_words=False,
                             break_on_hyphens=False) or [""]
    return "\n".join(out)


def commands(program):
    """--help of a program, and of each of its verbs."""
    def help_of(*verb):
        return subprocess.run([program, *verb, "--help"], check=True, capture_output=True, text=True).stdout.rstrip()

    of_all = help_of()
    parts = [f"```text\n{wrapped(of_all)}\n```\n"]
    for verb in re.findall("^  ([a-z][a-z-]*)  +[A-Z]", of_all, re.M):
        parts.append(f"## melflow {verb}\n\n```text\n{wrapped(help_of(verb))}\n```\n")
    return "\n".join(parts)


def pages():
    """Markdown files and notebooks of the repository, without what builds leave in it."""
    out = []
    for folder, folders, names in os.walk(ROOT):
        if folder == str(ROOT):
            folders[:] = [name for name in folders if name not in (".git", "build", "dist", "melflow-demo")]
        out += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith((".md", ".ipynb"))]
    return sorted(out)


def write(folder, program):
    shutil.rmtree(folder, ignore_errors=True)
    wanted = [path for path in pages() if path.startswith("docs/") or path in PLACES and path != "README.md"]
    wanted += NATIVE_SOURCES
    done = set()
    while wanted:
        path = wanted.pop()
        if path in done or path in ("README.md", "docs/decisions"):
            continue
        done.add(path)
        to = Path(folder, place(path))
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(AS_THEY_ARE):
            shutil.copyfile(ROOT / path, to)
            continue
        is_found_last = place(path).startswith(("conduct", "decisions/", "rooms/", "source/", "changelog", "contributing", "figures", "gpus"))
        to.write_text(("---\nsearch: {boost: 0.2}\n---\n\n" if is_found_last else "") + page(path), encoding="utf-8")
        wanted += [target for _, _, target, _ in links(path)]
    Path(folder, "decisions/index.md").write_text(decisions(), encoding="utf-8")
    if os.access(program, os.X_OK):
        with open(Path(folder, "commands.md"), "a", encoding="utf-8") as page_of_commands:
            page_of_commands.write("\n" + commands(program))
    shutil.copytree(ROOT / "docs/site/assets", Path(folder, "assets"))


def main():
    if sys.argv[1:] != ["--check"] and len(sys.argv) != 3:
        sys.exit(__doc__)
    found = list(problems(pages()))
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    if sys.argv[1] != "--check":
        write(sys.argv[1], sys.argv[2])
    sys.exit(bool(found))


main()
