"""perf/gpu/sass.py: a listing whose counts are known, what it does not know, and the rows of the real kernel.

In:  sass_test.py SOURCE. Exit status 77 where nvcc or nvdisasm is missing: the real kernel was not run.
"""

import pathlib
import shutil
import subprocess
import sys
import types

source = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(source / "perf/gpu"))
import sass  # noqa: E402

# Lane k stores a word at words k and 2 k of shared memory and four words at 4 k; all lanes read one
# word, and two; lanes from 16 on run a loop once more.
LISTING = """
.text.known:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   IMAD.SHL.U32 R1, R0, 0x4, RZ ;
        /*0020*/                   STS [R1+0x400], R0 ;
        /*0030*/                   LEA R2, R0, 0x400, 0x3 ;
        /*0040*/                   STS [R2], R0 ;
        /*0050*/                   LEA R2, R0, 0x400, 0x4 ;
        /*0060*/                   STS.128 [R2], R4 ;
        /*0070*/                   LDS R3, [RZ+0x400] ;
        /*0078*/                   LDS.64 R8, [RZ+0x400] ;
        /*0080*/                   SHF.R.U32.HI R3, RZ, 0x4, R0 ;
.L_x_0:
        /*0090*/                   ISETP.GE.AND P0, PT, R3, 0x1, PT ;
        /*00a0*/                   VIADD R3, R3, 0xffffffff ;
        /*00b0*/               @P0 BRA `(.L_x_0) ;
        /*00c0*/                   EXIT ;
"""
WAVEFRONTS = {0x20: 1, 0x40: 2, 0x60: 4, 0x70: 1, 0x78: 2}
TIMES = {0x90: 2, 0xA0: 2, 0xB0: 2}


def run(listing):
    launch = types.SimpleNamespace(memory=[(0x1000, bytes(4))], shared=512, threads=32, argument=b"", count_at=0x1000)
    code, labels = sass.parse(listing)["known"]
    return sass.Machine((code, labels), launch, 1).run(), code


machine, code = run(LISTING)
assert dict(machine.wavefronts) == WAVEFRONTS, machine.wavefronts
for instruction in code:
    assert machine.issued[instruction.address] == TIMES.get(instruction.address, 1), instruction.text
for wrong, said in (("NEVERSEEN R1, R2", "does not know: NEVERSEEN R1, R2"), ("STS [R1+0x600], R0", "STS [R1+0x600], R0")):
    try:
        run(LISTING.replace("EXIT", wrong))
    except ValueError as error:
        assert said in str(error), error
    else:
        sys.exit(f"{wrong}: no error")

if not (shutil.which("nvcc") and shutil.which("nvdisasm")):
    print("skipped: the real kernel, nvcc or nvdisasm is not in PATH")
    sys.exit(77)
done = subprocess.run([sys.executable, source / "perf/gpu/sass.py", "--phases"], capture_output=True, text=True)
print(done.stdout, done.stderr)
assert done.returncode == 0 and "| sum_bands |" in done.stdout
