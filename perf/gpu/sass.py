"""Counts what the fused kernel's machine code does for a window, without a device.

In:  sass.py CODE LAUNCH...
     CODE: `nvdisasm -c -gi` of cubins compiled with -lineinfo; LAUNCH: from melflow_kernel_launches.
Out: a table, a line a launch, and one of the first launch by the parts of a window. Exit status 1 when the
     code's rows are not those of the kernel compiled for the host.

The code is run: one block, lane by lane, so loops, branches and addresses are those of these tables. Counted: warp
instructions that are issued. Computed from the addresses of each access: wavefronts, the cycles for which an access
keeps shared memory or L1 busy - the most words in one bank of 32, half a warp at a time for 8 bytes a lane and a
quarter for 16; of global memory the lines of 128 bytes. What a cache misses, and how long anything waits, is not
seen. The window is one in the middle: the difference between two runs that differ by some.
"""

import argparse
import collections
import itertools
import math
import re
import struct
import sys

LANES = 32
FULL = (1 << LANES) - 1
MASK = 0xFFFFFFFF
PARAMETERS = 0x210  # of the constant bank, from compute capability 9.0 on


def to_float(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def to_bits(value):
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return 0xFF800000 if value < 0 else 0x7F800000


def signed(value, bits=32):
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def half(bits):
    return struct.unpack("<e", struct.pack("<H", bits))[0]


def half_bits(value):
    if value != value:
        return 0x7FFF
    try:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    except OverflowError:
        return 0xFC00 if value < 0 else 0x7C00


def brain_bits(value):
    bits = to_bits(value)
    if value != value:
        return 0x7FFF
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def fused(a, b, c):
    if any(math.isinf(x) or math.isnan(x) for x in (a, b, c)):
        return a * b + c if not (math.isinf(a) and b == 0 or math.isinf(b) and a == 0) else math.nan
    return a * b + c  # the product is exact in double; rounded twice, which the limit of the rows allows


class Instruction:
    def __init__(self, address, text, part):
        self.address, self.part = address, part
        guard, text = re.fullmatch(r"(@!?U?P[0-9T]+ )?\s*(.*)", text).groups()
        self.guard = guard[1:].strip() if guard else "PT"
        self.text = text
        self.name, _, rest = text.partition(" ")
        self.kind, *self.flags = self.name.split(".")
        self.operands = [o.strip() for o in re.split(r",(?![^\[]*\])", rest)] if rest.strip() else []
        self.operands = [o.replace(".reuse", "") for o in self.operands]


def parse(text, source):
    """Kernels by symbol: instructions by their place, labels. `source`: file name -> its lines."""
    kernels, chain = {}, []
    for line in text.splitlines():
        if found := re.match(r"\.text\.(\S+):", line):
            code, labels, waiting = [], {}, []
            kernels[found[1]] = code, labels
        elif found := re.match(r"(\.L_x_\d+|\$\S+):", line):
            waiting.append(found[1])
        elif found := re.match(r'\s*//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?', line):
            if not chain or chain[-1] is None:
                chain = []
            chain.append((found[1], int(found[2])))
        elif found := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", line):
            for label in waiting:
                labels[label] = len(code)
            waiting = []
            code.append(Instruction(int(found[1], 16), found[2], part_of(chain, source)))
            if chain and chain[-1] is not None:
                chain.append(None)
    return kernels


def part_of(chain, source):
    """The phase that fused_kernel.cuh calls in the outermost line of code that an instruction is of."""
    places = [p for p in chain if p is not None]
    if not places:
        return "-"
    name, line = places[-1]
    if not name.endswith("fused_kernel.cuh"):
        return "-"
    found = re.search(r"F::(\w+)", source(name)[line - 1])
    return found[1] if found else "loop"


class Launch:
    """What melflow_kernel_launches wrote: a line a field, bytes in hexadecimal."""

    def __init__(self, path):
        self.memory, self.after = [], []
        with open(path) as file:
            for line in file:
                key, value = line.rstrip("\n").split(" ", 1)
                if key in ("memory", "after"):
                    address, data = value.split(" ")
                    getattr(self, key).append((int(address), bytes.fromhex(data)))
                else:
                    setattr(self, key, value)
        self.threads, self.shared, self.frames = int(self.threads), int(self.shared), int(self.frames)
        self.of_warp = int(self.of_warp)
        self.count_at = int(self.count_at)
        self.argument = bytes.fromhex(self.argument)


class Warp:
    def __init__(self, index):
        self.index = index
        self.places = [0] * LANES  # of the lanes' next instructions; None: ended
        self.registers = [collections.defaultdict(int) for _ in range(LANES)]
        self.is_waiting = False


class Machine:
    """One block of a launch."""

    def __init__(self, kernel, launch, frames):
        self.code, self.labels = kernel
        self.launch = launch
        self.segments = [(address, bytearray(data)) for address, data in launch.memory]
        self.store(launch.count_at, struct.pack("<I", frames))
        self.shared = bytearray(b"\xff" * launch.shared)
        constants = bytearray(PARAMETERS) + bytearray(launch.argument) + bytearray(16)
        struct.pack_into("<3I3I", constants, 0, launch.threads, 1, 1, 1, 1, 1)
        self.constants = bytes(constants)
        self.issued = collections.Counter()
        self.wavefronts = collections.Counter()
        self.steps = [self.compile(i) for i in self.code]

    # ---- memory

    def find(self, address, size):
        for start, data in self.segments:
            if start <= address and address + size <= start + len(data):
                return data, address - start
        raise ValueError(f"an access to {address:#x}, where nothing is")

    def load(self, address, size):
        data, at = self.find(address, size)
        return data[at : at + size]

    def store(self, address, value):
        data, at = self.find(address, len(value))
        data[at : at + len(value)] = value

    # ---- operands

    def reader(self, text, flt=False, inverted=False):
        """A function of a lane's registers that returns an operand's bits."""
        if text.startswith("-|") and text.endswith("|"):
            of = self.reader(text[2:-1], flt)
            return lambda r: of(r) | 0x80000000
        if text.startswith("|"):
            of = self.reader(text[1:-1], flt)
            return lambda r: of(r) & 0x7FFFFFFF
        if re.match(r"-[RUc]", text):
            of = self.reader(text[1:], flt)
            if flt:
                return lambda r: of(r) ^ 0x80000000
            return (lambda r: of(r) ^ MASK) if inverted else lambda r: -of(r) & MASK
        if text.startswith("~"):
            of = self.reader(text[1:], flt)
            return lambda r: of(r) ^ MASK
        if text in ("RZ", "URZ", "SRZ"):
            return lambda r: 0
        if found := re.fullmatch(r"(U?R\d+)(?:\.(64|H0|H1|H0_H0|H1_H1|B\d))?", text):
            name, part = found[1], found[2]
            if part in ("H1", "H1_H1"):
                return lambda r: r[name] >> 16
            if part in ("H0", "H0_H0"):
                return lambda r: r[name] & 0xFFFF
            return lambda r: r[name]
        if found := re.fullmatch(r"c\[0x0\]\[(0x[0-9a-f]+)\]", text):
            value = struct.unpack_from("<I", self.constants, int(found[1], 16))[0]
            return lambda r: value
        if re.fullmatch(r"-?0x[0-9a-f]+", text):
            value = int(text, 16) & MASK
            return lambda r: value
        value = to_bits(float(text.replace("QNAN", "nan").replace("INF", "inf")))
        if not flt:
            value = int(text) & MASK
        return lambda r: value

    @staticmethod
    def predicate(text):
        name = text.lstrip("!")
        if name in ("PT", "UPT"):
            return (lambda r: False) if text[0] == "!" else lambda r: True
        return (lambda r: not r[name]) if text[0] == "!" else lambda r: bool(r[name])

    @staticmethod
    def pair(name, index=1):
        if name in ("RZ", "URZ"):
            return name
        prefix, number = re.fullmatch(r"(U?R)(\d+)", name).groups()
        return f"{prefix}{int(number) + index}"

    def address(self, text):
        """[R2+0x400], desc[UR10][R4.64+-0x400], [UR4]: a function that returns the sum."""
        inner = re.findall(r"\[([^\]]*)\]", text)[-1]
        parts = []
        for term in inner.split("+"):
            term = term.removesuffix(".U32") if term.startswith("UR") else term
            if term.endswith(".64"):
                low, high = term[:-3], self.pair(term[:-3])
                parts.append(lambda r, low=low, high=high: r[low] | r[high] << 32)
            elif re.fullmatch(r"-?0x[0-9a-f]+", term):
                value = int(term, 16)
                parts.append(lambda r, value=value: value)
            elif found := re.fullmatch(r"(R\d+)\.X(\d+)", term):
                parts.append(lambda r, n=found[1], f=int(found[2]): r[n] * f)
            else:
                parts.append(self.reader(term))
        return lambda r: sum(part(r) for part in parts)

    # ---- instructions

    def compile(self, instruction):
        """A function (warp, lanes): what the instruction does for these lanes."""
        kind = instruction.kind
        make = getattr(self, "op_" + kind.lower(), None)
        if make is not None:
            return make(instruction)
        per_lane = self.plain(instruction)
        if per_lane is None:
            def unknown(_warp, _lanes):
                raise ValueError(f"sass.py does not know {instruction.text}")
            return unknown

        def run(warp, lanes):
            for lane in lanes:
                per_lane(warp.registers[lane])
        return run

    def plain(self, instruction):
        """A function of a lane's registers, for what only reads and writes them."""
        ops, flags, kind = instruction.operands, instruction.flags, instruction.kind
        kind = kind.removeprefix("U") if kind not in ("UR2UR",) else kind
        rd = ops[0] if ops else None

        def to(function):
            def run(r):
                r[rd] = function(r) & MASK
            return run

        def values(names, flt=False, inverted=False):
            return [self.reader(n, flt, inverted) for n in names]

        def wide(function):
            high = self.pair(rd)
            def run(r):
                value = function(r)
                r[rd], r[high] = value & MASK, value >> 32 & MASK
            return run

        def floats(function, n=None):
            of = values(ops[1 : None if n is None else n + 1], flt=True)
            return to(lambda r: to_bits(function(*(to_float(f(r)) for f in of))))

        def wide_reader(name):
            low = self.reader(name)
            if name in ("RZ", "URZ") or not re.match(r"U?R\d", name):
                return low
            high = self.reader(self.pair(name))
            return lambda r: low(r) | high(r) << 32

        if kind == "MOV" or instruction.name.startswith("IMAD.MOV"):
            return to(self.reader(ops[-1]))
        if kind == "IMAD":
            if ops[1].startswith("P") and ops[1][1:].isdigit():
                return None
            carry = self.predicate(ops[4]) if "X" in flags else None
            a, b = values(ops[1:3])
            c = self.reader(ops[3], inverted=carry is not None)
            if "WIDE" in flags:
                c = wide_reader(ops[3])
                if "U32" in flags:
                    return wide(lambda r: a(r) * b(r) + c(r))
                return wide(lambda r: signed(a(r)) * signed(b(r)) + c(r))
            if "HI" in flags:
                if "U32" in flags:
                    return to(lambda r: (a(r) * b(r) >> 32) + c(r))
                return to(lambda r: (signed(a(r)) * signed(b(r)) >> 32) + c(r))
            if carry:
                return to(lambda r: a(r) * b(r) + c(r) + carry(r))
            return to(lambda r: a(r) * b(r) + c(r))
        if kind in ("IADD3", "VIADD"):
            outs, rest = [], ops[1:]
            while re.fullmatch(r"U?P[0-9T]", rest[0]):
                outs.append(rest.pop(0))
            carries = []
            while re.fullmatch(r"!?U?P[0-9T]", rest[-1]):
                carries.append(self.predicate(rest.pop()))
            if "X" not in flags:
                carries = []
            of = values(rest, inverted=bool(carries))
            def run(r):
                value = sum(f(r) for f in of) + sum(c(r) for c in carries)
                # -x of 0 is 2^32 to the carry.
                if not carries:
                    value += sum(1 << 32 for t, f in zip(rest, of) if re.match(r"-[RU]", t) and f(r) == 0)
                if outs:
                    r[outs[0]] = value >> 32 != 0
                r[rd] = value & MASK
            return run
        if kind in ("VIADDMNMX", "VIMNMX", "IMNMX"):
            least = self.predicate(ops[-1])
            of = values(ops[1:-1])
            cast = (lambda x: x) if "U32" in flags else signed
            def run(r):
                first = of[0](r) if len(of) == 2 else (of[0](r) + of[1](r)) & MASK
                pick = min if least(r) else max
                r[rd] = pick(cast(first), cast(of[-1](r))) & MASK
            return run
        if kind == "LEA":
            out = None
            rest = ops[1:]
            if re.fullmatch(r"U?P[0-9T]", rest[0]):
                out = rest.pop(0)
            carry = self.predicate(rest.pop()) if "X" in flags else None
            shift = int(rest.pop(), 16)
            if "HI" in flags:
                if "SX32" in flags:
                    a, b = values(rest)
                    value = lambda r: (signed(a(r)) << shift >> 32) + b(r) + (carry(r) if carry else 0)
                else:
                    a, b, c = values(rest)
                    value = lambda r: (((c(r) << 32 | a(r)) << shift) >> 32 & MASK) + b(r) + (carry(r) if carry else 0)
            else:
                a, b = values(rest)
                value = lambda r: (a(r) << shift & MASK) + b(r)
            def run(r):
                found = value(r)
                if out:
                    r[out] = found >> 32 & 1
                r[rd] = found & MASK
            return run
        if kind == "LOP3":
            rest = ops[:]
            out = rest.pop(0) if re.fullmatch(r"U?P[0-9T]", rest[0]) else None
            target = rest[0]
            a, b, c = values(rest[1:4])
            table = int(rest[4], 16)
            def run(r):
                x, y, z = a(r), b(r), c(r)
                value = 0
                for bits in range(8):
                    if table >> bits & 1:
                        value |= (x if bits & 4 else ~x) & (y if bits & 2 else ~y) & (z if bits & 1 else ~z)
                value &= MASK
                if out:
                    r[out] = value != 0
                if target not in ("RZ", "URZ"):
                    r[target] = value
            return run
        if kind == "SHF":
            a, n, c = values(ops[1:4])
            if "L" in flags and "HI" not in flags:
                return to(lambda r: a(r) << (n(r) & 63) if n(r) < 32 else 0)
            if "HI" in flags and ops[1] in ("RZ", "URZ") and "R" in flags:
                if "S32" in flags:
                    return to(lambda r: signed(c(r)) >> min(n(r), 31))
                return to(lambda r: c(r) >> n(r) if n(r) < 32 else 0)
            return None
        if kind == "SEL":
            a, b = values(ops[1:3])
            which = self.predicate(ops[3])
            return to(lambda r: a(r) if which(r) else b(r))
        if kind == "FSEL":
            a, b = values(ops[1:3], flt=True)
            which = self.predicate(ops[3])
            return to(lambda r: a(r) if which(r) else b(r))
        if kind in ("ISETP", "FSETP"):
            compare = {"LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "EQ": "==", "NE": "!="}
            is_float = kind == "FSETP"
            a, b = values(ops[2:4], flt=is_float)
            with_other = self.predicate(ops[4])
            extended = self.predicate(ops[5]) if "EX" in flags else None
            word = flags[0]
            symbol = compare.get(word.removesuffix("U") if len(word) == 3 else word)
            both = "OR" not in flags
            if is_float:
                def test(r):
                    x, y = to_float(a(r)), to_float(b(r))
                    nan = x != x or y != y
                    if word == "NAN":
                        return nan
                    if word == "NUM":
                        return not nan
                    if nan:
                        return len(word) == 3
                    return eval_compare(symbol, x, y)
            else:
                cast = (lambda x: x) if "U32" in flags else signed
                def test(r):
                    x, y = cast(a(r)), cast(b(r))
                    if extended and x == y:
                        return extended(r) if symbol in ("<", "<=", ">", ">=", "==") else extended(r)
                    return eval_compare(symbol, x, y)
            out = ops[0]
            def run(r):
                result = test(r)
                r[out] = (result and with_other(r)) if both else (result or with_other(r))
            return run
        if kind == "PLOP3":
            out = ops[0]
            of = [self.predicate(o) for o in ops[2:5]]
            table = int(ops[5], 16)
            def run(r):
                r[out] = bool(table >> (4 * of[0](r) + 2 * of[1](r) + of[2](r)) & 1)
            return run
        if kind == "PRMT":
            a, how, b = values(ops[1:4])
            def run(r):
                data = (a(r) | b(r) << 32).to_bytes(8, "little")
                select, value = how(r), 0
                for i in range(4):
                    nibble = select >> 4 * i & 15
                    byte = data[nibble & 7]
                    if nibble & 8:
                        byte = 0xFF if byte & 0x80 else 0
                    value |= byte << 8 * i
                r[rd] = value
            return run
        if kind == "FADD":
            return floats(lambda a, b: a + b)
        if kind == "FMUL":
            return floats(lambda a, b: a * b if not (math.isinf(a) and b == 0) else math.nan)
        if kind == "FFMA":
            return floats(fused)
        if kind == "FMNMX":
            least = self.predicate(ops[3])
            a, b = values(ops[1:3], flt=True)
            def run(r):
                x, y = to_float(a(r)), to_float(b(r))
                pick = min if least(r) else max
                r[rd] = to_bits(y if x != x else x if y != y else pick(x, y))
            return run
        if kind == "HFMA2":
            a, b = (half_bits(float(o)) for o in ops[-2:])
            return to(lambda r: a << 16 | b)
        if kind == "HADD2" and "F32" in flags:
            of = self.reader(ops[2])
            return to(lambda r: to_bits(half(of(r) & 0xFFFF)))
        if kind == "F2FP":
            pack = half_bits if "F16" in flags else brain_bits
            a, b = values(ops[1:3], flt=True)
            return to(lambda r: pack(to_float(a(r))) << 16 | pack(to_float(b(r))))
        if kind in ("I2F", "I2FP"):
            of = self.reader(ops[1])
            if "S16" in flags:
                return to(lambda r: to_bits(float(signed(of(r) & 0xFFFF, 16))))
            if "U32" in flags or "U16" in flags:
                return to(lambda r: to_bits(float(of(r))))
            return to(lambda r: to_bits(float(signed(of(r)))))
        if kind == "MUFU":
            of = self.reader(ops[1], flt=True)
            how = {"RCP": lambda x: 1 / x, "RSQ": lambda x: x**-0.5, "SQRT": math.sqrt, "LG2": math.log2,
                   "EX2": lambda x: 2.0**x}[flags[0]]
            return to(lambda r: to_bits(how(to_float(of(r)))))
        if kind in ("LDC", "ULDC"):
            at = self.constants_at(ops[1])
            if "64" in flags:
                return wide(lambda r: struct.unpack_from("<Q", self.constants, at(r))[0])
            form = "<B" if "U8" in flags else "<H" if "U16" in flags else "<I"
            return to(lambda r: struct.unpack_from(form, self.constants, at(r))[0])
        if kind == "R2UR":
            return to(self.reader(ops[-1]))
        return None

    def constants_at(self, text):
        inner = re.fullmatch(r"c\[0x0\]\[(.*)\]", text)[1]
        of = self.address(f"[{inner}]")
        return of

    def op_ldc(self, i):
        return self.lanes_of(self.plain(i))

    @staticmethod
    def lanes_of(per_lane):
        def run(warp, lanes):
            for lane in lanes:
                per_lane(warp.registers[lane])
        return run

    def op_s2r(self, i):
        target, source = i.operands
        def run(warp, lanes):
            for lane in lanes:
                known = {"SR_TID.X": 32 * warp.index + lane, "SR_CTAID.X": 0, "SR_CgaCtaId": 0, "SR_LANEID": lane}
                warp.registers[lane][target] = known[source]
        return run

    op_s2ur = op_s2r

    def op_cs2r(self, i):
        target = i.operands[0]
        high = self.pair(target)
        def run(warp, lanes):
            for lane in lanes:
                warp.registers[lane][target] = warp.registers[lane][high] = 0
        return run

    def op_nop(self, _):
        return lambda warp, lanes: None

    op_bssy = op_bsync = op_warpsync = op_endcollective = op_nop

    def op_bra(self, i):
        if "DIV" in i.flags:
            return lambda warp, lanes: None
        target = self.labels[re.search(r"`\((.*)\)", i.text)[1]]
        where = self.predicate(i.operands[0]) if len(i.operands) == 2 else lambda r: True
        def run(warp, lanes):
            for lane in lanes:
                if where(warp.registers[lane]):
                    warp.places[lane] = target
        return run

    def op_exit(self, _):
        def run(warp, lanes):
            for lane in lanes:
                warp.places[lane] = None
        return run

    def op_bar(self, _):
        def run(warp, _lanes):
            warp.is_waiting = True
        return run

    @staticmethod
    def width(flags):
        for flag, size in (("128", 16), ("64", 8), ("U16", 2), ("16", 2), ("U8", 1)):
            if flag in flags:
                return size
        return 4

    def access(self, i, is_store, is_shared):
        size = self.width(i.flags)
        target = i.operands[1] if is_store else i.operands[0]
        at = self.address(i.operands[0] if is_store else i.operands[1])
        words = [target if n == 0 else self.pair(target, n) for n in range((size + 3) // 4)]
        sources = [self.reader(w) for w in words]

        def run(warp, lanes):
            addresses = {lane: at(warp.registers[lane]) for lane in lanes}
            self.wavefronts[i.address] += wavefronts(addresses, size, is_shared)
            for lane, address in addresses.items():
                r = warp.registers[lane]
                if is_shared:
                    address -= 0x400
                    if address < 0 or address + size > len(self.shared):
                        raise ValueError(f"{i.text}: byte {address} of {len(self.shared)} of shared memory")
                if address % size:
                    raise ValueError(f"{i.text}: address {address:#x} is not aligned")
                if is_store:
                    value = b"".join(struct.pack("<I", f(r)) for f in sources)[:size]
                    if is_shared:
                        self.shared[address : address + size] = value
                    else:
                        self.store(address, value)
                else:
                    value = bytes(self.shared[address : address + size] if is_shared else self.load(address, size))
                    for n, word in enumerate(words):
                        r[word] = int.from_bytes(value[4 * n : 4 * n + 4], "little")
        return run

    def op_lds(self, i):
        return self.access(i, False, True)

    def op_sts(self, i):
        return self.access(i, True, True)

    def op_ldg(self, i):
        return self.access(i, False, False)

    def op_stg(self, i):
        return self.access(i, True, False)

    # Of a thread's own memory: what is spilled, an access of its own for each lane's word.
    def op_ldl(self, i):
        return self.local(i, False)

    def op_stl(self, i):
        return self.local(i, True)

    def local(self, i, is_store):
        size = self.width(i.flags)
        target = i.operands[1] if is_store else i.operands[0]
        at = self.address(i.operands[0] if is_store else i.operands[1])
        words = [target if n == 0 else self.pair(target, n) for n in range((size + 3) // 4)]
        def run(warp, lanes):
            self.wavefronts[i.address] += len(words)
            for lane in lanes:
                r = warp.registers[lane]
                for n, word in enumerate(words):
                    place = f"local {at(r) + 4 * n}"
                    if is_store:
                        r[place] = r[word]
                    else:
                        r[word] = r[place]
        return run

    # ---- running

    def run(self):
        warps = [Warp(i) for i in range(self.launch.threads // LANES)]
        while any(any(p is not None for p in w.places) for w in warps):
            for warp in warps:
                self.run_warp(warp)
            for warp in warps:
                warp.is_waiting = False
        return self

    def run_warp(self, warp):
        guards = [self.predicate(i.guard) for i in self.code]
        while not warp.is_waiting:
            alive = [p for p in warp.places if p is not None]
            if not alive:
                return
            place = min(alive)  # lanes that diverged meet again behind the branch
            instruction = self.code[place]
            here = [lane for lane in range(LANES) if warp.places[lane] == place]
            for lane in here:
                warp.places[lane] = place + 1
            lanes = [lane for lane in here if guards[place](warp.registers[lane])]
            self.issued[instruction.address] += 1
            if lanes:
                self.steps[place](warp, lanes)


def eval_compare(symbol, x, y):
    return {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "==": x == y, "!=": x != y}[symbol]


def wavefronts(addresses, size, is_shared):
    if not addresses:
        return 0
    if not is_shared:
        return len({a // 128 for a in addresses.values()} | {(a + size - 1) // 128 for a in addresses.values()})
    lanes = LANES * 4 // max(size, 4)  # at a time
    total = 0
    for first in range(0, LANES, lanes):
        banks = collections.defaultdict(set)
        for lane in range(first, first + lanes):
            if lane in addresses:
                for word in range(addresses[lane] // 4, (addresses[lane] + size + 3) // 4):
                    banks[word % 32].add(word)
        total += max((len(words) for words in banks.values()), default=0)
    return total


def occupancy(registers, shared, threads):
    """Warps that a multiprocessor of compute capability 9.0 has room for."""
    warps = threads // LANES
    by_registers = 65536 // (-(-registers * LANES // 256) * 256) // warps
    by_shared = 233472 // (-(-(shared + 1024) // 128) * 128)
    return warps * min(by_registers, by_shared, 64 // warps, 32)


def rows_differ(machine, launch):
    """The largest difference between float32 rows of the code and those of the kernel on the host."""
    worst = 0.0
    for address, expected in launch.after:
        data, at = machine.find(address, len(expected))
        for ours, theirs in zip(struct.iter_unpack("<f", bytes(data[at : at + len(expected)])), struct.iter_unpack("<f", expected)):
            if ours[0] != ours[0]:
                return math.inf
            worst = max(worst, abs(ours[0] - theirs[0]))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("code")
    parser.add_argument("resources", help="what nvcc -Xptxas -v said")
    parser.add_argument("launch", nargs="+")
    options = parser.parse_args()
    files = {}

    def source(name):
        if name not in files:
            with open(name) as file:
                files[name] = file.read().splitlines()
        return files[name]

    with open(options.code) as file:
        kernels = parse(file.read(), source)
    with open(options.resources) as file:
        said = file.read()
    failed = False
    by_part = []
    print("| launch | registers | spilled [B] | shared a block [B] | warps an SM | warp instructions a window | wavefronts a window: shared | L1 |")
    print("|---|---|---|---|---|---|---|---|")
    for path in options.launch:
        launch = Launch(path)
        kernel = kernels[launch.symbol]
        a_pass = launch.threads // LANES * launch.of_warp
        whole = Machine(kernel, launch, launch.frames).run()
        part = Machine(kernel, launch, launch.frames - 2 * a_pass).run()
        per_window = 2 * a_pass
        parts = collections.defaultdict(lambda: [0, 0, 0, 0])
        for i in kernel[0]:
            n = whole.issued[i.address] - part.issued[i.address]
            cost = whole.wavefronts[i.address] - part.wavefronts[i.address]
            of_part = parts[i.part]
            of_part[0] += n / per_window
            if i.kind in ("FADD", "FMUL", "FFMA"):
                of_part[1] += n / per_window
            of_part[2 if i.kind in ("LDS", "STS") else 3] += cost / per_window
        resources = re.search(re.escape(launch.symbol) + r".*?(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers", said, re.S)
        registers = int(resources[3])
        total = [sum(p[k] for p in parts.values()) for k in range(4)]
        print(f"| {launch.name} | {registers} | {resources[1]}, {resources[2]} | {launch.shared} | "
              f"{occupancy(registers, launch.shared, launch.threads)} | {total[0]:.0f} | {total[2]:.0f} | {total[3]:.0f} |")
        difference = rows_differ(whole, launch)
        if not difference <= float(launch.limit):
            print(f"sass.py: {launch.name}: rows differ by {difference} from those of the host's kernel", file=sys.stderr)
            failed = True
        by_part.append((launch.name, parts, total))
    name, parts, total = by_part[0]
    print(f"\n| {name}: part of a window | warp instructions | of these float | wavefronts: shared | L1 |\n|---|---|---|---|---|")
    for part, p in itertools.chain(parts.items(), [("sum", total)]):
        if any(p):
            print(f"| {part} | {p[0]:.0f} | {p[1]:.0f} | {p[2]:.0f} | {p[3]:.0f} |")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
