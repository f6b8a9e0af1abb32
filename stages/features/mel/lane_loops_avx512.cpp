// Sixteen frames at once. Compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma.
#include "stages/features/mel/lane_loops_body.h"
#include "stages/features/mel/own_fft_body.h"

namespace melflow::lanes {

extern const Loops avx512_loops;
const Loops avx512_loops{"avx512",  width, load_int16,     load_float,
                         transform, rows,  own_fft<float>, own_fft<double>};

}  // namespace melflow::lanes
