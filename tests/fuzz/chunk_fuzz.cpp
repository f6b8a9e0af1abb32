// Feeds any bytes as a compressed chunk of rows, and as rows to be compressed, for libFuzzer
// (long/fuzz.sh): a damaged chunk is refused or gives as many bytes as a chunk has, and packed rows
// are restored. The first byte has element size, shuffle and level.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "stages/output/formats/chunk_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t element = (data[0] & 1) != 0 ? 4 : 2;
  const bool shuffles = (data[0] & 2) != 0;
  const int level = (data[0] & 4) != 0 ? 6 : 1;
  const std::span given(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  static melflow::ChunkCodec::Scratch scratch;
  const melflow::ChunkCodec codec(element, shuffles, level);
  std::vector<std::byte> chunk(4096);
  for (const std::uint32_t mask : {0U, 1U, 2U, 3U})
    static_cast<void>(codec.unpack(given, mask, chunk, scratch));
  const std::vector<std::byte> rows(
      given.begin(), given.end() - static_cast<std::ptrdiff_t>(given.size() % element));
  if (rows.empty()) return 0;
  const auto packed = codec.pack(rows, scratch);
  const std::vector<std::byte> kept(packed.bytes.begin(), packed.bytes.end());
  std::vector<std::byte> back(rows.size());
  if (!codec.unpack(kept, packed.filter_mask, back, scratch) || back != rows) std::abort();
  return 0;
}
