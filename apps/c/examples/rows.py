"""The rows of noise by melflow.h from Python, without the package: rows.py LIBRARY PRESET."""
import array
import ctypes
import sys

c = ctypes.CDLL(sys.argv[1])
c.melflow_error.restype = ctypes.c_char_p
c.melflow_front_rows.restype = ctypes.c_int64
c.melflow_front_rows.argtypes = [ctypes.c_void_p, ctypes.c_int64]
c.melflow_front_columns.argtypes = [ctypes.c_void_p]
c.melflow_compute.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64,
                              ctypes.POINTER(ctypes.c_int64)]


def check(status):
    if status:
        raise SystemExit(c.melflow_error().decode())


front = ctypes.c_void_p()
check(c.melflow_front_from_preset(sys.argv[2].encode(), 0, ctypes.byref(front)))
seed, samples = 1, array.array("f")
for _ in range(16000):
    seed = seed * 1103515245 + 12345 & 0x7FFFFFFF
    samples.append(seed / 2**30 - 1)
room, columns, made = c.melflow_front_rows(front, len(samples)), c.melflow_front_columns(front), ctypes.c_int64()
rows = array.array("f", bytes(4 * room * columns))
check(c.melflow_compute(front, samples.buffer_info()[0], len(samples), rows.buffer_info()[0], room, ctypes.byref(made)))
for t in range(made.value):
    print(*("%.9g" % value for value in rows[t * columns:(t + 1) * columns]))
