#include "config/text_check.h"

#include <fmt/format.h>

#include "pipeline/base/text.h"

namespace melflow {
namespace {

bool is_control(char c) {
  return (c >= 0 && c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F;
}

}  // namespace

// The parser would stop at U+0004, and guess at other encodings.
std::optional<Refusal> find_refusal(std::string_view text, Mark at, std::string_view what,
                                    std::size_t most) {
  if (text.starts_with("\x89HDF") || text.starts_with("\x93NUMPY")) {
    const std::string file = at.file != nullptr ? *at.file : "FILE";
    return Refusal{
        std::move(at),
        fmt::format("this is an output, not a pipeline; `melflow inspect {}` shows what is in it",
                    excerpt(file))};
  }
  for (const char* audio : {"RIFF", "fLaC", "OggS", "ID3"})
    if (text.starts_with(audio))
      return Refusal{std::move(at),
                     "this is a recording, not a pipeline; a pipeline is written in YAML: `melflow "
                     "init FILE` writes one to start from"};
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = utf8_length(text, i);
    if (length == 0)
      return Refusal{
          at, fmt::format("the byte 0x{0:02x} is not part of UTF-8, which {1}s are "
                          "written in; save it as UTF-8, or where a path has this byte write "
                          "${{0x{0:02X}}}",
                          byte, what)};
    if (is_control(text[i]))
      return Refusal{at, fmt::format("a {} cannot have control characters in it; remove "
                                     "U+{:04X} here",
                                     what, byte)};
    if (i >= most)
      return Refusal{at, fmt::format("the {} is longer than {} MiB, which is the most that is read",
                                     what, most >> 20)};
    at.column += static_cast<int>(length);
    if (text[i] == '\n') {
      ++at.line;
      at.column = 1;
    }
    i += length;
  }
  return {};
}

}  // namespace melflow
