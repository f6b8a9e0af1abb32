// A hash of a file's bytes, to find out whether they are the same as before: XXH3, 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace melflow {

/// The hash of `bytes`; never 0, which stands for a hash that was not computed.
std::uint64_t content_hash(std::span<const std::byte> bytes);
/// The hash of up to `size` bytes of an open file, from `begin` on, read by 64 KiB at a time; 0
/// when they cannot be read. Does not move the file's position.
std::uint64_t content_hash(int fd, std::uint64_t begin = 0,
                           std::uint64_t size = std::numeric_limits<std::uint64_t>::max());
/// The hash of all bytes of the file at `path`; 0 when they cannot be read, and `error` gets the
/// errno, else 0.
std::uint64_t content_hash_of(const std::string& path, int* error = nullptr);

}  // namespace melflow
