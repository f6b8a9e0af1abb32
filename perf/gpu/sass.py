"""Counts what the fused kernel's machine code does for a window, without a device.

The kernel is compiled for sm_90 as the program's build does, disassembled, and its code is run here: one block of four
warps, lane by lane, with the argument and tables that mel_kernels.cu makes for the settings of the two-stage job
(kernel_launch.cpp). Its rows have to be those of a transform in double precision, or the exit status is 1.

A window in the middle is counted: the difference between a run of three frames a warp and one of two.

  instructions  warp instructions that are issued, those that a predicate turns off included
  wavefronts    cycles for which an access keeps the load/store unit's data stage busy, from its addresses. Shared memory:
                the most words in one of 32 banks, for 8 bytes a lane half a warp at a time, for 16 a quarter; lanes that
                read the same word count once. A shuffle: 1. Global memory: lines of 128 bytes. What a cache misses and
                how long anything waits is not seen.

Needs nvcc, nvdisasm (in CUDA's toolkit, and in the Python package nvidia-cuda-nvdisasm) and a C++20 compiler.
"""

import argparse
import collections
import math
import operator
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

LANES = range(32)
MASK = 0xFFFFFFFF
SHARED = 0x400  # where a block's dynamic shared memory begins; the system uses the addresses before
PARAMETERS = 0x210  # offset in the constant bank, from compute capability 9.0 on
SIZES = (256, 400, 512, 1024, 2048)
OPERANDS = ("float32", "float16", "bfloat16")  # in the order of NumberType


def to_float(bits):
    return struct.unpack("<f", struct.pack("<I", bits & MASK))[0]


def to_bits(value):
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return 0xFF800000 if value < 0 else 0x7F800000


def to_half(value):
    return struct.unpack("<H", struct.pack("<e", value))[0]


def to_bfloat(value):
    bits = to_bits(value)
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def signed(value, bits=32):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def lookup(table, a, b, c):
    """Bit by bit: the bit of the table that the three bits are the number of."""
    value = 0
    for i in range(8):
        if table >> i & 1:
            value |= (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
    return value & MASK


def permute(a, how, b):
    data, value = (a | b << 32).to_bytes(8, "little"), 0
    for i in range(4):
        nibble = how >> 4 * i & 15
        byte = data[nibble & 7]
        value |= ((0xFF if byte & 0x80 else 0) if nibble & 8 else byte) << 8 * i
    return value


class Instruction:
    def __init__(self, address, text, phase):
        self.address, self.text, self.phase = address, text, phase
        guard, self.name, rest = re.fullmatch(r"@?(!?U?P[0-9T]+)?\s*(\S+)\s*(.*)", text).groups()
        self.guard = guard or "PT"
        self.kind, *self.flags = self.name.split(".")
        self.operands = [o.strip().replace(".reuse", "") for o in re.split(r",(?![^\[]*\])", rest)] if rest else []


def parse(text):
    """Of `nvdisasm -c -gi`, by kernel: instructions, and the index of the instruction behind each label."""
    kernels, places, sources, is_open = {}, [], {}, False
    for line in text.splitlines():
        if found := re.match(r"\.text\.(\S+):", line):
            code, labels = kernels[found[1]] = [], {}
        elif found := re.match(r"(\.L_x_\d+|\$\S+):", line):
            labels[found[1]] = len(code)
        elif found := re.match(r'\s*//## File "([^"]*)", line (\d+)', line):
            places = places + [found.groups()] if is_open else [found.groups()]
            is_open = True
        elif found := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", line):
            code.append(Instruction(int(found[1], 16), found[2], phase_of(places, sources)))
            is_open = False
    return kernels


def phase_of(places, sources):
    """The function of fused_phases.h that the kernel's own line, the last of an inlined chain, calls."""
    if not places or not places[-1][0].endswith("fused_kernel.cuh"):
        return "other"
    name, line = places[-1]
    if name not in sources:
        with open(name) as file:
            sources[name] = file.read().splitlines()
    found = re.search(r"F::(\w+)\(", sources[name][int(line) - 1])
    return found[1] if found else "loop"


class Launch:
    """What kernel_launch.cpp wrote: a line a field, bytes in hexadecimal."""

    def __init__(self, text):
        self.memory = []
        for line in text.splitlines():
            key, *values = line.split()
            if key == "memory":
                self.memory.append((int(values[0]), bytes.fromhex(values[1])))
            else:
                setattr(self, key, bytes.fromhex(values[0]) if key in ("argument", "expected") else int(values[0]))


class Warp:
    def __init__(self, index):
        self.index = index
        self.places = [0] * 32  # the index of each lane's next instruction; None: the lane has ended
        self.values = collections.defaultdict(lambda: [0] * 32)  # by register or predicate, then by lane
        self.waits = False


class Machine:
    """One block that works on `frames` frames."""

    def __init__(self, kernel, launch, frames):
        self.code, self.labels = kernel
        self.segments = [(address, bytearray(data)) for address, data in launch.memory]
        self.shared = bytearray(b"\xff" * launch.shared)
        constants = bytearray(PARAMETERS) + launch.argument + bytes(64)
        struct.pack_into("<6I", constants, 0, launch.threads, 1, 1, 1, 1, 1)
        self.constants = bytes(constants)
        self.store(launch.count_at, struct.pack("<I", frames))
        self.issued, self.wavefronts = collections.Counter(), collections.Counter()
        self.steps = [None] * len(self.code)
        self.warps = [Warp(i) for i in range(launch.threads // 32)]

    def run(self):
        while any(p is not None for w in self.warps for p in w.places):
            for warp in self.warps:
                while not warp.waits and any(p is not None for p in warp.places):
                    self.step(warp)
            for warp in self.warps:
                warp.waits = False
        return self

    def step(self, warp):
        # Executes the lanes that are furthest behind, so that lanes which took different branches meet again.
        place = min(p for p in warp.places if p is not None)
        here = [lane for lane in LANES if warp.places[lane] == place]
        i = self.code[place]
        if self.steps[place] is None:
            self.steps[place] = self.predicate(i.guard), self.compile(i)
        guard, act = self.steps[place]
        self.issued[i.address] += 1
        for lane in here:
            warp.places[lane] = place + 1
        lanes = [lane for lane in here if guard(warp, lane)]
        if lanes:
            act(warp, lanes)

    # ---- memory

    def find(self, address, size):
        for start, data in self.segments:
            if start <= address and address + size <= start + len(data):
                return data, address - start
        raise ValueError(f"an access to global memory where nothing is: {address:#x}")

    def store(self, address, value):
        data, at = self.find(address, len(value))
        data[at : at + len(value)] = value

    # ---- operands: functions (warp, lane)

    def reader(self, text, is_float=False, in_place_of_minus=None):
        if text[0] in "-~!" and not re.match(r"-(0x|\d|INF|QNAN)", text):
            of = self.reader(text[1:], is_float)
            if is_float:
                return lambda w, k: of(w, k) ^ 0x80000000
            if text[0] == "~" or in_place_of_minus == "~":
                return lambda w, k: of(w, k) ^ MASK
            return lambda w, k: (of(w, k) ^ MASK) + 1  # also right for the carry of -0
        if text[0] == "|":
            of = self.reader(text[1:-1], is_float)
            return lambda w, k: of(w, k) & 0x7FFFFFFF
        if re.fullmatch(r"U?RZ(\.\w+)?|SRZ", text):
            return lambda w, k: 0
        if found := re.fullmatch(r"(U?R\d+)(?:\.(\w+))?", text):
            name, part = found.groups()
            shift = {None: 0, "64": 0, "U32": 0, "H0": 0, "H0_H0": 0, "H1": 16, "H1_H1": 16,
                     **{f"B{n}": 8 * n for n in LANES[:4]}}[part]
            return lambda w, k: w.values[name][k] >> shift
        if text.startswith("c["):
            at = self.address(text)
            return lambda w, k: struct.unpack_from("<I", self.constants, at(w, k))[0]
        if re.fullmatch(r"-?0x[0-9a-f]+", text):
            value = int(text, 16) & MASK
        else:
            value = float(re.sub(r"[QS]NAN", "nan", text))
            value = to_bits(value) if is_float else int(value) & MASK
        return lambda w, k: value

    @staticmethod
    def predicate(text):
        name, wanted = text.lstrip("!"), text[0] != "!"
        if name in ("PT", "UPT"):
            return lambda w, k: wanted
        return lambda w, k: bool(w.values[name][k]) == wanted

    def address(self, text):
        """The sum of what is in the last brackets: [R2+0x400], desc[UR10][R4.64+-0x400], c[0x0][R2]."""
        parts = []
        for term in re.findall(r"\[([^\]]*)\]", text)[-1].split("+"):
            if found := re.fullmatch(r"(R\d+)\.X(\d+)", term):
                parts.append(lambda w, k, n=found[1], f=int(found[2]): w.values[n][k] * f)
            elif term.startswith("-0x"):
                parts.append(lambda w, k, value=int(term, 16): value)
            else:
                parts.append(self.wide(term[:-3]) if term.endswith(".64") else self.reader(term))
        return lambda w, k: sum(part(w, k) for part in parts)

    @staticmethod
    def next_of(name, by=1):
        return re.sub(r"\d+", lambda n: str(int(n[0]) + by), name)

    def wide(self, text):
        if text.startswith("c["):
            at = self.address(text)
            return lambda w, k: struct.unpack_from("<Q", self.constants, at(w, k))[0]
        low = self.reader(text)
        high = self.reader(self.next_of(text)) if re.fullmatch(r"U?R\d+", text) else lambda w, k: 0
        return lambda w, k: low(w, k) | high(w, k) << 32

    # ---- instructions

    def compile(self, i):
        """A function (warp, lanes): what the instruction does. A uniform one is one of every lane."""
        special = getattr(self, "op_" + i.kind.lower(), None)
        if special:
            return special(i)
        kind = i.kind.removeprefix("U")
        results, sources = [i.operands[0]], i.operands[1:]
        is_compare = kind in ("ISETP", "FSETP", "PLOP3")
        while sources and re.fullmatch(r"U?P[0-9T]", sources[0]) and len(results) < 2 + (kind == "IADD3"):
            results.append(sources.pop(0))
        if kind == "LOP3" and re.fullmatch(r"U?P[0-9T]", results[0]):
            results.insert(0, sources.pop(0))
        of = self.values(kind, i, sources)
        if of is None:
            raise ValueError(f"an instruction that sass.py does not know: {i.text}")
        is_wide = "WIDE" in i.flags or "64" in i.flags and kind == "LDC"
        name, others = results[0], [r for r in results[1:] if r not in ("PT", "UPT")]

        def run(warp, lanes):
            found = [of(warp, k) for k in lanes]
            if name.startswith("U"):
                found, lanes = [found[0]] * 32, LANES
            for k, value in zip(lanes, found):
                if is_compare:
                    value, other = value
                else:
                    other = value >> 32 if kind != "LOP3" else value & MASK
                if not name.endswith(("RZ", "PT")):
                    warp.values[name][k] = value & MASK
                    if is_wide:
                        warp.values[self.next_of(name)][k] = value >> 32 & MASK
                for o in others:
                    warp.values[o][k] = bool(other)
        return run

    def values(self, kind, i, sources):
        """A function (warp, lane) that returns the result, carry and all; None: unknown."""
        flags, name = i.flags, i.name
        minus = "~" if "X" in flags else None
        predicates = [self.predicate(s) for s in sources if re.fullmatch(r"!?U?P[0-9T]", s)]
        sources = [s for s in sources if not re.fullmatch(r"!?U?P[0-9T]", s)]
        is_float = kind in ("FADD", "FMUL", "FFMA", "FSEL", "FSETP", "FMNMX", "MUFU", "F2FP")
        operands = [self.reader(s, is_float, minus) for s in sources]
        a, b, c = (operands + [lambda w, k: 0] * 3)[:3]
        p = predicates[0] if predicates else lambda w, k: False
        cast = signed if "U32" not in flags else (lambda x: x & MASK)

        def floats(function):
            return lambda w, k: to_bits(function(*(to_float(o(w, k)) for o in operands)))

        if kind in ("MOV", "R2UR"):
            return a
        if kind == "LDC":
            if "64" in flags:
                return self.wide(sources[0])
            bits = 0xFF if "U8" in flags else 0xFFFF if "U16" in flags else MASK
            return lambda w, k: a(w, k) & bits
        if kind in ("IADD3", "VIADD"):
            return lambda w, k: sum(o(w, k) for o in operands) + sum(q(w, k) for q in predicates if "X" in flags)
        if kind == "IMAD":
            if "WIDE" in flags:
                c = self.wide(sources[2])
                return lambda w, k: cast(a(w, k)) * cast(b(w, k)) + c(w, k)
            if "HI" in flags:
                return lambda w, k: (cast(a(w, k)) * cast(b(w, k)) >> 32) + c(w, k)
            return lambda w, k: a(w, k) * b(w, k) + c(w, k) + ("X" in flags and p(w, k))
        if kind in ("VIADDMNMX", "VIMNMX", "IMNMX", "FMNMX"):
            if kind == "FMNMX":
                cast = to_float
            least = len(operands) - 1

            def extreme(w, k):
                x, y = cast(a(w, k) + b(w, k) if least == 2 else a(w, k)), cast(operands[least](w, k))
                if x != x or y != y:
                    return to_bits(y if x != x else x)
                chosen = (min if p(w, k) else max)(x, y)
                return to_bits(chosen) if kind == "FMNMX" else chosen
            return extreme
        if kind == "LEA":
            if "HI" not in flags:
                shift = operands[2]
                return lambda w, k: ((a(w, k) << shift(w, k)) & MASK) + b(w, k)
            shift = operands[-1]
            high = (lambda w, k: signed(a(w, k)) >> 32) if "SX32" in flags else c
            return lambda w, k: (((high(w, k) << 32 | a(w, k)) >> (32 - shift(w, k)) & MASK) + b(w, k)
                                 + ("X" in flags and p(w, k)))
        if kind == "SHF":
            to_left, is_64 = flags[0] == "L", "U64" in flags or "S64" in flags
            def shift(w, k):
                low, n, high = a(w, k), b(w, k) & (63 if is_64 else 31), c(w, k)
                if not is_64 and "HI" not in flags:
                    return low << n if to_left else low >> n
                both = (signed(high) if flags[1][0] == "S" else high) << 32 | low
                both = both << n if to_left else both >> n
                return both >> 32 if "HI" in flags else both
            return lambda w, k: shift(w, k) & MASK
        if kind == "LOP3":
            table = operands[3]
            return lambda w, k: lookup(table(w, k), a(w, k), b(w, k), c(w, k))
        if kind == "PLOP3":
            q, tables = predicates, [int(s, 16) for s in sources]
            return lambda w, k: [t >> (4 * q[0](w, k) + 2 * q[1](w, k) + q[2](w, k)) & 1 for t in tables]
        if kind in ("SEL", "FSEL"):
            return lambda w, k: a(w, k) if p(w, k) else b(w, k)
        if kind == "PRMT":
            return lambda w, k: permute(a(w, k), b(w, k), c(w, k))
        if kind in ("ISETP", "FSETP"):
            return self.compare(flags, a, b, predicates, to_float if is_float else cast)
        if kind in ("FADD", "FMUL", "FFMA"):  # products are exact in double; sums are rounded twice, rarely differently
            return floats({"FADD": lambda x, y: x + y, "FMUL": lambda x, y: x * y,
                           "FFMA": lambda x, y, z: x * y + z}[kind])
        if kind == "HFMA2" and sources[0] == "-RZ":  # how a constant is moved into a register
            value = to_half(float(sources[2])) << 16 | to_half(float(sources[3]))
            return lambda w, k: value
        if kind == "HADD2" and "F32" in flags:
            return lambda w, k: to_bits(struct.unpack("<e", struct.pack("<H", b(w, k) & 0xFFFF))[0])
        if kind == "F2FP":
            pack = to_half if "F16" in flags else to_bfloat
            return lambda w, k: pack(to_float(a(w, k))) << 16 | pack(to_float(b(w, k)))
        if kind in ("I2F", "I2FP"):
            bits = 16 if "S16" in flags or "U16" in flags else 32
            if "U32" in flags or "U16" in flags:
                return lambda w, k: to_bits(float(a(w, k) & ((1 << bits) - 1)))
            return lambda w, k: to_bits(float(signed(a(w, k), bits)))
        if kind == "MUFU":
            return floats({"RCP": lambda x: 1 / x, "RSQ": lambda x: x**-0.5, "SQRT": math.sqrt, "LG2": math.log2,
                           "EX2": lambda x: 2.0**x}[flags[0]])
        return None

    @staticmethod
    def compare(flags, a, b, predicates, cast):
        word = flags[0]
        is_unordered = cast is to_float and len(word) == 3 and word not in ("NAN", "NUM")
        test = getattr(operator, word[:2].lower()) if word not in ("NAN", "NUM") else None
        combine = {"AND": operator.and_, "OR": operator.or_, "XOR": operator.xor}[
            next(f for f in flags[1:] if f in ("AND", "OR", "XOR"))]

        def run(w, k):
            x, y = cast(a(w, k)), cast(b(w, k))
            is_nan = x != x or y != y
            if test is None:
                found = is_nan == (word == "NAN")
            elif is_nan:
                found = is_unordered
            else:
                found = predicates[1](w, k) if "EX" in flags and x == y else test(x, y)
            return combine(found, predicates[0](w, k)), combine(not found, predicates[0](w, k))
        return run

    def op_s2r(self, i):
        name, source = i.operands
        def run(warp, lanes):
            for k in lanes if name[0] == "R" else LANES:
                warp.values[name][k] = {"SR_TID.X": 32 * warp.index + k, "SR_LANEID": k, "SR_CTAID.X": 0,
                                        "SR_CgaCtaId": 0}[source]
        return run

    op_s2ur = op_s2r

    def op_cs2r(self, i):
        names = [i.operands[0]] + ([self.next_of(i.operands[0])] if "32" not in i.flags else [])
        def run(warp, lanes):
            for name in names:
                for k in lanes:
                    warp.values[name][k] = 0
        return run

    def op_nop(self, _):
        return lambda warp, lanes: None

    op_bssy = op_bsync = op_warpsync = op_nop

    def op_bra(self, i):
        if "DIV" in i.flags:  # taken where some lanes are not here
            def check(_warp, lanes):
                if len(lanes) < 32:
                    raise ValueError("lanes are not together at a barrier of their warp")
            return check
        target = self.labels[re.search(r"`\((.*)\)", i.text)[1]]
        where = self.predicate(i.operands[0]) if len(i.operands) == 2 else lambda w, k: True
        def run(warp, lanes):
            for k in lanes:
                if where(warp, k):
                    warp.places[k] = target
        return run

    def op_exit(self, _):
        def run(warp, lanes):
            for k in lanes:
                warp.places[k] = None
        return run

    def op_bar(self, _):
        def run(warp, _lanes):
            warp.waits = True
        return run

    def op_shfl(self, i):
        done, target, source, *rest = i.operands
        source, by, limit = (self.reader(o) for o in (source, *rest))
        def run(warp, lanes):
            self.wavefronts[i.address] += 1
            found = {}
            for k in lanes:
                n, c = by(warp, k), limit(warp, k)
                group = c >> 8 & 31
                last = k & group | c & 31 & ~group
                other = {"IDX": k & group | n & ~group & 31, "BFLY": k ^ n, "DOWN": k + n, "UP": k - n}[i.flags[0]]
                inside = other >= last if i.flags[0] == "UP" else other <= last
                found[k] = source(warp, other if inside else k), inside
            for k, (value, inside) in found.items():
                warp.values[target][k] = value
                if done != "PT":
                    warp.values[done][k] = inside
        return run

    def op_lds(self, i):
        return self.access(i, *i.operands, False)

    def op_sts(self, i):
        return self.access(i, *reversed(i.operands), True)

    op_ldg, op_stg = op_lds, op_sts

    def access(self, i, register, place, is_store):
        size = next((n for flag, n in (("128", 16), ("64", 8), ("U16", 2), ("S16", 2), ("16", 2), ("U8", 1), ("8", 1))
                     if flag in i.flags), 4)
        is_shared, at = i.kind.endswith("S"), self.address(place)
        names = [self.next_of(register, n) for n in range((size + 3) // 4)]
        sources = [self.reader(n) for n in names]

        def run(warp, lanes):
            addresses = {k: at(warp, k) - SHARED * is_shared for k in lanes}
            self.wavefronts[i.address] += wavefronts(addresses, size) if is_shared else len(
                {a // 128 for a in addresses.values()})
            for k, address in addresses.items():
                if address % size or is_shared and not 0 <= address <= len(self.shared) - size:
                    raise ValueError(f"{i.text}: address {address:#x} in {len(self.shared):#x} bytes, {size} a lane")
                data, address = (self.shared, address) if is_shared else self.find(address, size)
                if is_store:
                    value = b"".join(struct.pack("<I", of(warp, k) & MASK) for of in sources)
                    data[address : address + size] = value[:size]
                    continue
                value = int.from_bytes(data[address : address + size], "little")
                if "S16" in i.flags:
                    value = signed(value, 16)
                for n, name in enumerate(names):
                    if name != "RZ":
                        warp.values[name][k] = value >> 32 * n & MASK
        return run

    def op_ldl(self, i):
        return self.spill(i, *i.operands, False)

    def op_stl(self, i):
        return self.spill(i, *reversed(i.operands), True)

    def spill(self, i, register, place, is_store):
        """Of a lane's own memory, which lies so that a warp's words are neighbours."""
        at, size = self.address(place), 4 if "128" in i.flags else 2 if "64" in i.flags else 1
        def run(warp, lanes):
            self.wavefronts[i.address] += size
            for k in lanes:
                for n in range(size):
                    names = [self.next_of(register, n), f"local {at(warp, k) + 4 * n}"]
                    to, source = reversed(names) if is_store else names
                    warp.values[to][k] = warp.values[source][k] if source != "RZ" else 0
        return run


def wavefronts(addresses, size):
    together, total = 32 * 4 // max(size, 4), 0
    for first in range(0, 32, together):
        banks = collections.defaultdict(set)
        for k in range(first, first + together):
            for word in range(addresses[k] // 4, (addresses[k] + size + 3) // 4) if k in addresses else ():
                banks[word % 32].add(word)
        total += max(map(len, banks.values()), default=0)
    return total


def warps_of_processor(registers, shared, threads):
    """That compute capability 9.0 has room for: 64 warps, 64 Ki registers, 228 KiB of which a block takes 1 more."""
    warps = threads // 32
    by_registers = 65536 // (-(-registers * 32 // 256) * 256) // 4 * 4 // warps
    by_shared = 233472 // (-(-(shared + 1024) // 128) * 128)
    return warps * min(by_registers, by_shared, 64 // warps, 32)


def largest_difference(machine, launch):
    data, at = machine.find(launch.rows_at, len(launch.expected))
    n = len(launch.expected) // 4
    rows, expected = (struct.unpack_from(f"<{n}f", *x) for x in ((data, at), (launch.expected, 0)))
    return max(math.inf if a != a else abs(a - b) for a, b in zip(rows, expected))


def tool(name, given, package=None):
    places = [given] if given else [shutil.which(name), f"/usr/local/cuda/bin/{name}"]
    if found := next((p for p in places if p and os.access(p, os.X_OK)), None):
        return found
    sys.exit(f"sass.py: no {name} {given or 'in PATH or /usr/local/cuda/bin, nor --' + name}: it is in CUDA's toolkit"
             + (f" and in the Python package {package} (nvidia/cu*/bin)" if package else ""))


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"sass.py: {' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


HOST = ("perf/gpu/kernel_launch.cpp", "cuda/mel_kernels.cu", "cuda/band_pieces.cpp", "cuda/mel_tables.cpp",
        "cuda/cufft_library.cpp", "cuda/shared_library.cpp", "stages/device/kernel_front_end.cpp",
        *(f"stages/features/mel/mel_{part}.cpp" for part in ("plan", "options", "option_table", "filterbank", "window", "signal")))


def main():
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, choices=SIZES, action="append", help="samples of a window [512]")
    parser.add_argument("--operands", choices=OPERANDS, default="float32")
    parser.add_argument("--samples", choices=("int16", "float32"), default="int16")
    parser.add_argument("--phases", action="store_true", help="by the functions of fused_phases.h, too")
    parser.add_argument("--source", default=root, help="the source tree whose kernel is counted [this one]")
    parser.add_argument("--nvcc", help="[in PATH]")
    parser.add_argument("--nvdisasm", help="[in PATH]")
    options = parser.parse_args()
    nvcc = tool("nvcc", options.nvcc)
    beside = os.path.join(os.path.dirname(nvcc), "nvdisasm")
    nvdisasm = tool("nvdisasm", options.nvdisasm or (beside if os.path.exists(beside) else None), "nvidia-cuda-nvdisasm")
    os.chdir(options.source)
    failed = False
    print("| window | registers | spills of the size's kernels, stored and loaded [B] | shared of a block [B] | warps an SM "
          "| instructions | wavefronts | largest difference of a row |\n|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        host, cubin = f"{folder}/launch", f"{folder}/cubin"
        here = os.path.join(root, HOST[0])
        call(os.environ.get("CXX", "c++"), "-std=c++20", "-O1", "-I.", "-Itests/emulated", "-x", "c++", here, *HOST[1:],
             "-o", host, "-ldl")
        for size in options.size or [512]:
            launch = Launch(call(host, str(size), str(OPERANDS.index(options.operands)), options.samples)[0])
            _, said = call(nvcc, "-cubin", "-arch=sm_90", "-std=c++20", "-O3", "-DNDEBUG", "-lineinfo", "-Xptxas", "-v",
                           "-I.", f"cuda/fused_{size}.cu", "-o", cubin)
            kernels = parse(call(nvdisasm, "-c", "-gi", cubin)[0])
            suffix = "s" if options.samples == "int16" else "f"
            pattern = rf"fused_kernelI.*E{suffix}LNS\w*NumberTypeE{OPERANDS.index(options.operands)}E"
            symbol = next((s for s in kernels if re.search(pattern, s)), None)
            if symbol is None:
                sys.exit(f"sass.py: cuda/fused_{size}.cu has no kernel like {pattern}; it has {', '.join(kernels)}")
            resources = {s: (int(registers), int(stored), int(loaded)) for s, stored, loaded, registers in re.findall(
                r"entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers",
                said, re.S)}
            a_round = launch.windows // 3
            try:
                whole, part = (Machine(kernels[symbol], launch, n * a_round).run() for n in (3, 2))
            except ValueError as error:
                sys.exit(f"sass.py: {size}: {error}")
            difference = largest_difference(whole, launch)
            counts = collections.defaultdict(lambda: [0, 0])
            for i in kernels[symbol][0]:
                for n, of in enumerate(("issued", "wavefronts")):
                    more = (getattr(whole, of)[i.address] - getattr(part, of)[i.address]) / a_round
                    counts[i.phase][n] += more
                    counts[None][n] += more
            registers = resources[symbol][0]
            print(f"| {size} {options.samples}, {options.operands} | {registers} "
                  f"| {sum(r[1] for r in resources.values())}, {sum(r[2] for r in resources.values())} | {launch.shared} "
                  f"| {warps_of_processor(registers, launch.shared, launch.threads)} | {counts[None][0]:.0f} "
                  f"| {counts[None][1]:.0f} | {difference:.2g} |")
            if options.phases:
                print("\n| phase | instructions | wavefronts |\n|---|---|---|")
                for phase, (n, cost) in counts.items():
                    if phase and n:
                        print(f"| {phase} | {n:.0f} | {cost:.0f} |")
                print()
            limit = 1e-4 if options.operands == "float32" else 0.1  # dB
            if not difference <= limit:
                print(f"sass.py: {size}: rows differ by {difference}, more than {limit}", file=sys.stderr)
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
