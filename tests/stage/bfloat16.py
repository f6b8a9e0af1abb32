"""bfloat16 for numpy, which has none: floats from stored bytes, and what floats are rounded to."""

import numpy as np


def floats(stored):
    """Of the two bytes of each value, as any type of that size."""
    return (np.ascontiguousarray(stored).view("<u2").astype("<u4") << 16).view("<f4")


def rounded(values):
    """The nearer of both neighbours, of equally near ones the even one, by their distances in double."""
    bits = np.ascontiguousarray(values).view("<u4")
    below = bits >> 16  # the neighbour closer to 0
    ends = [((below + up) << 16).astype("<u4").view("<f4").astype("<f8") for up in (0, 1)]
    # After the largest value comes infinity, which stands here for the next power of two.
    ends[1] = np.where(np.isinf(ends[1]), np.copysign(2.0**128, ends[1]), ends[1])
    exact = values.astype("<f8")
    low, high = (np.abs(exact - end) for end in ends)
    up = (high < low) | ((high == low) & (below % 2 == 1))
    return (below + np.where(np.isinf(exact), 0, up)).astype("<u2")
