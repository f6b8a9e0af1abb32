"""What Python's csv module (strict, RFC 4180) reads of random tables: csv_cases.json, for csv_test.cpp.

python3 csv_cases.py > csv_cases.json
"""

import csv
import io
import json
import random

HEADER = "a,b,c"
PIECES = ['"', '""', ",", "x", " ", "é", "\t", "|", '","', "word", ""]


def cell(draw):
    text = "".join(draw.choice(PIECES + ["\n", "\r\n"]) for _ in range(draw.randrange(5)))
    kind = draw.randrange(8)
    if kind < 4:
        return '"' + text.replace('"', '""') + '"'
    if kind < 7:
        return "".join(c for c in text if c not in ',"\n\r')
    return text  # whatever the result


def rows(text):
    out = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), strict=True):
            if row not in ([], [""]):
                out.append(row)
    except csv.Error:
        out.append("error")
    return out


def main():
    draw = random.Random(3)
    cases = []
    for _ in range(100):
        lines = [HEADER]
        for _ in range(draw.randrange(1, 5)):
            count = 3 if draw.random() < 0.9 else draw.randrange(1, 5)
            lines.append(",".join(cell(draw) for _ in range(count)))
        end = draw.choice(["\n", "\r\n"])
        text = end.join(lines) + draw.choice([end, ""])
        cases.append({"text": text, "rows": rows(text)[1:]})
    body = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    print("[\n" + body + "\n]")


main()
