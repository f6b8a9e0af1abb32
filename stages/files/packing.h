// Recognizes how a file is packed, by its first bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace melflow {

struct Packing {
  std::string_view bytes;    ///< that it begins with, at `at`
  const char* what;          ///< "a file packed by bzip2"
  const char* command;       ///< that unpacks it
  std::string_view ending;   ///< of its name, which unpacking takes off; "" where it is an archive
  const char* archive = "";  ///< the ending of archives that are read packed so; "": none
  std::size_t at = 0;
};

/// Returns the packing of a file that begins with `head`, at least 512 bytes where it has them;
/// null if it is none of gzip, bzip2, xz, zstd, zip, 7z and RAR.
const Packing* packing_of(std::string_view head);
/// The same for a file; null also if it cannot be read.
const Packing* packing_of_file(const std::string& path);
/// What to do with a packed archive that is not read as it is: "unpack it (bunzip2 -k a.tar.bz2)
/// and name a.tar", or "name it x.zip".
std::string advice_on(const Packing& packing, const std::string& path);

}  // namespace melflow
