// Eight frames at once. Compiled with -mavx2 -mfma.
#include "stages/features/mel/lane_loops_body.h"
#include "stages/features/mel/own_fft_body.h"

namespace melflow::lanes {

extern const Loops avx2_loops;
const Loops avx2_loops{"avx2",    width, load_int16,     load_float,
                       transform, rows,  own_fft<float>, own_fft<double>};

}  // namespace melflow::lanes
