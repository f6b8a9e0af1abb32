// By which the bytes of a file are known again: XXH3, 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace melflow {

/// Never 0, which stands for a hash that nobody made.
std::uint64_t content_hash(std::span<const std::byte> bytes);
/// Of all the file's bytes, through 64 KiB of memory; 0 where they cannot be read. The file's
/// position stays.
std::uint64_t content_hash(int fd);
/// Likewise; `error` gets what the system says where they cannot be read, else 0.
std::uint64_t content_hash_of(const std::string& path, int* error = nullptr);

}  // namespace melflow
