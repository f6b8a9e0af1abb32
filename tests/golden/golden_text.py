"""JSON text of the golden files: one line for each row, so that a difference can be read."""

import hashlib
import json
import pathlib


def number(value, digits):
    """A JSON number with so many significant digits."""
    text = f"{value:.{digits}g}"
    assert text not in ("nan", "inf", "-inf"), value
    return "0" if text == "-0" else text


def numbers(values, digits):
    return "[" + ",".join(number(v, digits) for v in values) + "]"


def line(fields):
    """One object on one line; values that are already JSON text come as bytes."""
    parts = []
    for key, value in fields.items():
        text = value.decode() if isinstance(value, bytes) else json.dumps(value)
        parts.append(f"{json.dumps(key)}:{text}")
    return "{" + ",".join(parts) + "}"


def block(fields, key, rows, indent):
    """One object: its fields on one line, then the rows under key, one a line."""
    head = line(fields)[:-1]
    if not rows:
        return f'{indent}{head},"{key}":[]}}'
    body = ",\n".join(f"{indent}  {row}" for row in rows)
    return f'{indent}{head},"{key}":[\n{body}]}}'


def document(sections):
    """sections: key -> text of an object, or list of texts, one or more lines each."""
    parts = []
    for key, value in sections.items():
        text = value if isinstance(value, str) else "[\n" + ",\n".join(value) + "\n]"
        parts.append(f"{json.dumps(key)}: {text}")
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    json.loads(text)
    return text


def write(name, content):
    """The file of that name beside this one, of texts of a list, or of sections as in document()."""
    text = document(content) if isinstance(content, dict) else "[\n" + ",\n".join(content) + "\n]\n"
    pathlib.Path(__file__).with_name(name).write_text(text)
    print(f"{name}: {len(text)} bytes")


def recording(audio, package, path):
    """What a golden says of a recording that fetch_audio.sh has put into the folder, its samples, and their rate [Hz]."""
    import soundfile
    file = audio / package / path
    samples, rate = soundfile.read(file, dtype="float32")
    assert samples.ndim == 1
    return line(dict(package=package, path=path, sample_rate=rate, samples=len(samples),
                     sha256=hashlib.sha256(file.read_bytes()).hexdigest())), samples, rate
