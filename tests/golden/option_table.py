"""The options of the mel stage with their defaults, as the program has them.

In:  docs/stages.md, which `melflow stages --markdown` prints from the table of the options; a test
     fails when it is stale.
Out: DEFAULTS {option: default}, None where it is not set; resolve(options), which makes values of those.

    option_table.py < CASES   prints [DEFAULTS, resolve(case), ...] of JSON [case, ...]

That is how mel_options_test.cpp holds both to the program's own defaults.
"""

import json
import pathlib
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/stages.md"


def documented_defaults():
    chapter = PAGE.read_text(encoding="utf-8").split("\n## mel\n")[1].split("\n## ")[0]
    rows = [line.split("|") for line in chapter.splitlines() if line.startswith("| `")]
    return {row[1].strip(" `"): json.loads(row[3].strip(" `") or ('""' if row[2].strip() == "text" else "null")) for row in rows}


DEFAULTS = documented_defaults()


def resolve(options):
    """All options: those of `options`, defaults instead of the others, and what follows from them."""
    unknown = set(options) - set(DEFAULTS)
    assert not unknown, unknown
    o = dict(DEFAULTS, **options)
    if o["filter_rate"] is None:
        o["filter_rate"] = o["sample_rate"]
    rate = o["filter_rate"]
    if o["win_length"] is None:
        o["win_length"] = o["n_fft"]
    if o["hop"] is None:
        o["hop"] = max(1, o["win_length"] // 2)
    if o["pad"] is None and o["snip_edges"] is not False:
        frame = o["win_length"] if o["align"] == "left" else o["n_fft"]
        o["pad"] = frame // 2 if o["center"] else 0
    if o["gauss_std"] is None:
        o["gauss_std"] = o["win_length"] / 8
    tops = dict(fmax=rate // 2 if o["bin_hz"] == "torchaudio" else rate / 2, vtln_high=rate / 2)
    for edge, top in tops.items():
        o[edge] = o[edge] or 0.0
        if o[edge] <= 0:
            o[edge] += top
    return o


if __name__ == "__main__":
    print(json.dumps([DEFAULTS] + [resolve(case) for case in json.load(sys.stdin)]))
