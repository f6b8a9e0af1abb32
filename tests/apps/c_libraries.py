"""melflow.h by ctypes: the libraries given have to give the same rows and fingerprints for every preset.

c_libraries.py SHARED ALONE     compares libmelflow.so with the front end alone, as a shared library
c_libraries.py --write NAME     writes NAME.wav, and its samples as NAME.raw: a second of int16 at 16 kHz
c_libraries.py --same A B       compares the numbers in two texts, as float32"""
import array
import ctypes
import os
import random
import re
import struct
import sys
import wave

OK, UNSUPPORTED, NEEDS_WHOLE, NO_ROOM = 0, 3, 4, 6
FINISH_ONLY = 1


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        whole, handle = ctypes.c_int64, ctypes.c_void_p
        for name, result, arguments in (
                ("error", ctypes.c_char_p, ()), ("warning", ctypes.c_char_p, ()), ("version", ctypes.c_char_p, ()),
                ("front_from_preset", int, (ctypes.c_char_p, int, handle)),
                ("front_from_json", int, (ctypes.c_char_p, ctypes.c_size_t, int, handle)),
                ("front_from_yaml", int, (ctypes.c_char_p, ctypes.c_size_t, int, handle)),
                ("front_destroy", None, (handle,)), ("front_columns", int, (handle,)), ("front_sample_rate", int, (handle,)),
                ("front_row_seconds", ctypes.c_double, (handle,)), ("front_fingerprint", ctypes.c_char_p, (handle,)),
                ("front_delay", whole, (handle,)), ("front_rows", whole, (handle, whole)),
                ("compute", int, (handle, handle, whole, handle, whole, handle)),
                ("compute_int16", int, (handle, handle, whole, handle, whole, handle)),
                ("compute_file", int, (handle, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_double, handle, whole, handle)),
                ("stream_create", int, (handle, whole, ctypes.c_uint, handle)), ("stream_destroy", None, (handle,)),
                ("stream_push", int, (handle, handle, whole)), ("stream_push_int16", int, (handle, handle, whole)),
                ("stream_finish", int, (handle,)), ("stream_waiting", whole, (handle,)),
                ("stream_pull", int, (handle, handle, whole, handle)), ("stream_reset", int, (handle,))):
            function = getattr(self.c, "melflow_" + name)
            function.restype = ctypes.c_int if result is int else result
            function.argtypes = [ctypes.c_int if one is int else one for one in arguments]
            setattr(self, name, function)

    def check(self, status):
        if status != OK:
            raise RuntimeError(f"{status}: {self.error().decode()}")


class Front:
    def __init__(self, library, kind, text, rate=0):
        self.library, self.handle = library, ctypes.c_void_p()
        words = (text.encode(),) if kind == "preset" else (text.encode(), len(text.encode()))
        library.check(getattr(library, "front_from_" + kind)(*words, rate, ctypes.byref(self.handle)))
        self.columns = library.front_columns(self.handle)
        self.rate = library.front_sample_rate(self.handle)
        self.fingerprint = library.front_fingerprint(self.handle).decode()
        self.delay = library.front_delay(self.handle)

    def __del__(self):
        self.library.front_destroy(self.handle)

    def _rows(self, compute):
        made = ctypes.c_int64()
        status = compute(None, 0, ctypes.byref(made))
        if status not in (OK, NO_ROOM):
            self.library.check(status)
        rows = array.array("f", bytes(4 * made.value * self.columns))
        self.library.check(compute(rows.buffer_info()[0], made.value, ctypes.byref(made)))
        return rows.tobytes()

    def rows(self, samples):
        call = self.library.compute_int16 if samples.typecode == "h" else self.library.compute
        return self._rows(lambda *to: call(self.handle, samples.buffer_info()[0], len(samples), *to))

    def rows_of_file(self, data, most_seconds=0):
        return self._rows(lambda *to: self.library.compute_file(self.handle, data, len(data), most_seconds, *to))

    def stream(self, samples, cuts, flags=0):
        """The rows of pieces that end at `cuts`; None where they need the whole recording."""
        c, stream = self.library, ctypes.c_void_p()
        status = c.stream_create(self.handle, 4000, flags, ctypes.byref(stream))
        if status == NEEDS_WHOLE and not flags:
            return None
        c.check(status)
        out, made, at = b"", ctypes.c_int64(), 0
        push = c.stream_push_int16 if samples.typecode == "h" else c.stream_push
        for end in [*cuts, len(samples), None]:
            c.check(c.stream_finish(stream) if end is None else
                    push(stream, samples.buffer_info()[0] + at * samples.itemsize, end - at))
            rows = array.array("f", bytes(4 * c.stream_waiting(stream) * self.columns))
            c.check(c.stream_pull(stream, rows.buffer_info()[0], c.stream_waiting(stream), ctypes.byref(made)))
            out += rows.tobytes()
            at = end
        c.stream_destroy(stream)
        return out


def noise(count, seed, kind="f"):
    by = random.Random(seed)
    values = (by.randrange(-20000, 20000) for _ in range(count))
    return array.array("h", values) if kind == "h" else array.array("f", (value / 32768 for value in values))


def presets():
    """The names in the table of presets, which is C++ text."""
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../stages/front_ends.cpp")
    with open(table, encoding="utf-8") as file:
        return re.findall(r'^    \{"(\w+)",', file.read(), re.M)


def compare(shared, alone):
    names = presets()
    assert len(names) > 80, names
    equal = refused = 0
    for name in names:
        full = Front(shared, "preset", name)
        try:
            small = Front(alone, "preset", name)
        except RuntimeError as error:
            assert str(error).startswith(f"{UNSUPPORTED}: "), (name, error)
            refused += 1
            continue
        assert (small.fingerprint, small.columns, small.delay) == (full.fingerprint, full.columns, full.delay), name
        samples = noise(full.rate + 321, 1, "h")
        rows = full.rows(samples)
        assert rows and rows == small.rows(samples), name
        cuts = sorted(random.Random(2).sample(range(len(samples)), 20))
        pieces = small.stream(samples, cuts)
        flags = FINISH_ONLY if pieces is None else 0
        assert (pieces is None) == (full.delay < 0), name
        assert small.stream(samples, cuts, flags) == rows and full.stream(samples, cuts, flags) == rows, name
        equal += 1
    print(f"{equal} presets are equal in both libraries, {refused} are in libmelflow.so alone")
    assert equal > 60 and equal + refused == len(names)


def write(name):
    samples = noise(16000, 3, "h")
    with wave.open(name + ".wav", "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    with open(name + ".raw", "wb") as file:
        file.write(samples.tobytes())


def main():
    if sys.argv[1] == "--write":
        return write(sys.argv[2])
    if sys.argv[1] == "--same":
        texts = [open(name, encoding="utf-8").read().split() for name in sys.argv[2:]]
        numbers = [[struct.pack("f", float(one)) for one in text] for text in texts]
        return 0 if numbers[0] and numbers[0] == numbers[1] else 1
    return compare(Library(sys.argv[1]), Library(sys.argv[2]))


if __name__ == "__main__":
    sys.exit(main())
