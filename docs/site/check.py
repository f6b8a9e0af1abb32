"""Checks the built site: links, anchors, that nothing is loaded from elsewhere, every Python name, and Markdown that was not understood.

In:  check.py FOLDER
Out: a line for each problem; exit status 0 where there is none.
"""

import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("audio", "src"), ("video", "src"), ("link", "href")}
SEEN_MARKDOWN = re.compile(r"\]\([^)\s]*\)|(?:^|\n)[-*] |(?:^|\n)\|.*\||(?<!\w)\*\*\w|^#+ |```")


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded, self.markdown, self.inside = set(), [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        for name in ("href", "src"):
            if values.get(name) is None:
                continue
            if (tag, name) in LOADED and values.get("rel") not in ("canonical", "next", "prev"):
                self.loaded.append(values[name])
            self.links.append(values[name])
        if tag in ("pre", "code", "script", "style"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        if not self.inside and SEEN_MARKDOWN.search(data):
            self.markdown.append(" ".join(data.split())[:60])


def pages_of(folder):
    for path in sorted(folder.rglob("*.html")):
        if "cpp" not in path.relative_to(folder).parts:  # Doxygen's own
            yield path, Page(path.read_text(encoding="utf-8"))


def problems(folder):
    pages = dict(pages_of(folder))
    for path, page in pages.items():
        shown = path.relative_to(folder)
        for link in page.loaded:
            if re.match("(https?:)?//", link):
                yield f"{shown}: loads {link}"
        for text in page.markdown:
            yield f"{shown}: is Markdown still: {text}"
        for link in sorted(set(page.links)):
            if re.match("[a-z]+:|//", link) or shown.name == "404.html":
                continue
            target, _, anchor = link.partition("#")
            to = Path(os.path.normpath(path.parent / unquote(target))) if target else path
            if not to.is_file() or folder not in to.parents:
                yield f"{shown}: {link}: there is no such file"
            elif anchor and to in pages and unquote(anchor) not in pages[to].ids and not anchor.startswith("__"):
                yield f"{shown}: {link}: there is no such anchor"
    for style in folder.rglob("*.css"):
        for address in re.findall(r"(?:url\(|@import )[\"']?(https?:[^\"')]*)", style.read_text(encoding="utf-8")):
            yield f"{style.relative_to(folder)}: loads {address}"
    names = re.search(r"__all__ = \[(.*?)\]", (ROOT / "apps/python/melflow/__init__.py").read_text(encoding="utf-8"), re.S)[1]
    text = (folder / "reference.html").read_text(encoding="utf-8")
    for name in re.findall(r'"(\w+)"', names):
        if not name.startswith("__") and not re.search(rf">\s*melflow\.{name}\s*<", text):
            yield f"reference.html: has no melflow.{name}; docs/site/reference.md lists them"


def main():
    if len(sys.argv) != 2 or not Path(sys.argv[1], "index.html").is_file():
        sys.exit(__doc__)
    found = list(problems(Path(sys.argv[1]).resolve()))
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    sys.exit(bool(found))


main()
