// Feeds any bytes as an archive, for libFuzzer (long/fuzz.sh): the first byte says whether they are
// a tar, a zip, a packed tar, or a tar that is still to be packed. Each member that the index calls
// readable is read, or fails; a stored one has the bytes that are at its place.
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/base/memory.h"
#include "pipeline/base/problem.h"
#include "stages/audio/reading/file_reader.h"
#include "stages/containers/archive.h"
#include "stages/files/whole_io.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace melflow;
using namespace melflow::fuzz;

std::string packed(std::string_view bytes) {
  z_stream stream{};
  require(deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);  // 31: gzip
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

void read_members(const Archive& archive, std::string_view stored) {
  constexpr std::size_t kMostMembers = 64;
  static const FileReader reader({.buffer = 4096, .whole = 16 << 10});
  BufferPool pool(0);
  for (std::size_t i = 0; i < archive.size(); ++i) {
    const std::string name(archive.name(i));
    require(i == 0 || archive.name(i - 1) < name);
    require(!name.starts_with('/') && name.find('\0') == name.npos);
    auto file = std::make_shared<FileRef>();
    file->path = archive.path() + '/' + name;
    const FileStamp stamp = archive.locate(name, *file);
    require(file->part.has_value() && stamp.size == static_cast<std::int64_t>(file->size));
    require(file->part->problem == archive.problem(i));
    if (i >= kMostMembers || !file->part->problem.empty() || file->size > 1 << 20) continue;
    const auto read = reader.read(file, pool);
    if (!read || stored.empty() || file->part->is_deflated) continue;
    const RawBytes& raw = **read;
    const std::string bytes =
        raw.fd ? read_at(raw.fd.get(), raw.begin, raw.size, name)
               : std::string(reinterpret_cast<const char*>(raw.data.data()), raw.size);
    require(bytes == stored.substr(file->part->begin, file->size));
  }
}

// A header of a tar with its checksum.
std::string tar_header(const std::string& name, std::size_t size, char type) {
  std::string out(512, '\0');
  out.replace(0, name.size(), name);
  out.replace(100, 7, "0000644");
  char digits[12];
  std::snprintf(digits, sizeof digits, "%011zo", size);
  out.replace(124, 11, digits, 11);
  out[156] = type;
  out.replace(257, 8, std::string("ustar\00000", 8));
  out.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : out) sum += static_cast<unsigned char>(c);
  std::snprintf(digits, sizeof digits, "%06o", sum & 0777777U);
  out.replace(148, 7, digits, 7);
  return out;
}

std::string tar_member(const std::string& name, std::string bytes, char type = '0') {
  const std::string header = tar_header(name, bytes.size(), type);
  bytes.resize((bytes.size() + 511) / 512 * 512);
  return header + bytes;
}

// The sum of bytes in a tar's headers is made right, so that changed ones are taken for headers.
void sign_headers(std::string& bytes) {
  for (std::size_t at = 0; at + 512 <= bytes.size(); at += 512) {
    if (bytes.compare(at + 257, 5, "ustar") != 0) continue;
    bytes.replace(at + 148, 8, 8, ' ');
    unsigned sum = 0;
    for (std::size_t i = at; i < at + 512; ++i) sum += static_cast<unsigned char>(bytes[i]);
    char digits[12];
    std::snprintf(digits, sizeof digits, "%06o", sum & 0777777U);
    bytes.replace(at + 148, 7, digits, 7);
  }
}

std::string number(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
  return out;
}

// A zip of one member, `stored`: its bytes in the archive.
std::string zip_of(const std::string& name, const std::string& stored, std::size_t size,
                   std::uint32_t crc, int method) {
  const std::string common = number(0, 2) + number(static_cast<std::uint64_t>(method), 2) +
                             number(0, 4) + number(crc, 4) + number(stored.size(), 4) +
                             number(size, 4) + number(name.size(), 2) + number(0, 2);
  const std::string local = "PK\3\4" + number(20, 2) + common + name + stored;
  const std::string entry =
      "PK\1\2" + number(20, 2) + number(20, 2) + common + std::string(14, '\0') + name;
  return local + entry + "PK\5\6" + number(0, 4) + number(1, 2) + number(1, 2) +
         number(entry.size(), 4) + number(local.size(), 4) + number(0, 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const bool is_zip = data[0] % 4 == 1, is_packed = data[0] % 4 >= 2;
  if (!is_zip && data[0] % 4 != 2 && data[0] / 4 % 4 != 0) sign_headers(bytes);
  const std::string path = folder() / (is_zip ? "a.zip" : is_packed ? "a.tar.gz" : "a.tar");
  write_file(path, data[0] % 4 == 3 ? packed(bytes) : bytes);
  try {
    read_members(Archive(path), is_packed ? std::string_view() : bytes);
  } catch (const RunError&) {
    // What is no archive is refused.
  }
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return write_seeds([](const auto& seed) {
    const std::string end(1024, '\0');
    const std::string pax = "20 path=b/long.wav\n10 size=4\n", text = "some bytes of a recording";
    const std::string tar = tar_member("a.wav", text) + tar_member("", pax, 'x') +
                            tar_member("b.wav", "1234") + tar_member("long/name.wav", "", 'L') +
                            tar_member("c.wav", text) + tar_header("d/link.wav", 0, '2') +
                            tar_header("e.wav", 0, '1') + end;
    seed("tar", '\4' + tar);
    seed("tar_as_it_is", '\0' + tar);
    seed("tgz", '\2' + packed(tar));
    seed("tar_to_pack", '\7' + tar);
    seed("zip",
         '\1' + zip_of("a.wav", text, text.size(),
                       crc_of(0, reinterpret_cast<const std::byte*>(text.data()), text.size()), 0));
    const std::string gzip = packed(text);
    seed("deflated",
         '\1' + zip_of("b.wav", gzip.substr(10, gzip.size() - 18), text.size(),
                       crc_of(0, reinterpret_cast<const std::byte*>(text.data()), text.size()), 8));
  });
}
