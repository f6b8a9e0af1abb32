#include "stages/corpus/text_lines.h"

#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/corpus/content_kind.h"

namespace melflow {
namespace {

constexpr std::size_t kReadPiece = 1 << 16;  // that is read at a time [bytes]
constexpr std::size_t kMostBytes = std::size_t{64} << 30;
constexpr std::size_t kLongestLine = std::size_t{64} << 20;  // [bytes]
constexpr std::string_view kMark = "\xEF\xBB\xBF";

}  // namespace

TextLines::TextLines(std::string path, std::string_view why_needed)
    : path_(std::move(path)), in_(path_, Pipes::by_descriptor) {
  if (!in_.problem().empty())
    throw RunError(fmt::format("{}: {}{}", path_, in_.problem(), why_needed));
  fill();
  if (const std::string why = why_no_text(buffer_, path_); !why.empty())
    throw RunError(fmt::format("{}: {}", path_, why));
  if (buffer_.starts_with(kMark)) at_ = kMark.size();
}

bool TextLines::fill() {
  buffer_ = in_.read(kReadPiece);
  if (!in_.problem().empty()) throw RunError(fmt::format("{}: {}", path_, in_.problem()));
  read_ += buffer_.size();
  if (read_ > kMostBytes)
    throw RunError(fmt::format("{}: is longer than {} GiB, more than a list may have", path_,
                               kMostBytes >> 30));
  at_ = 0;
  return !buffer_.empty();
}

bool TextLines::next(std::string& line) {
  line.clear();
  line_end_ = "";
  bool any = false;
  while (line_end_.empty() && (at_ < buffer_.size() || fill())) {
    any = true;
    const std::size_t end = buffer_.find('\n', at_);
    line.append(buffer_, at_, end - at_);
    if (line.size() > kLongestLine)
      throw RunError(fmt::format("{}:{}: the line is longer than {} MiB, so this is no list", path_,
                                 number_ + 1, kLongestLine >> 20));
    at_ = end == buffer_.npos ? buffer_.size() : end + 1;
    if (end != buffer_.npos) line_end_ = "\n";
  }
  if (!any) return false;
  ++number_;
  if (line.ends_with('\r')) {
    line.pop_back();
    if (!line_end_.empty()) line_end_ = "\r\n";
  }
  if (line.find('\0') != line.npos)
    throw RunError(fmt::format("{}:{}: a zero byte is no text; take it out, or name another file",
                               path_, number_));
  if (line.find('\r') != line.npos)
    throw RunError(
        fmt::format("{0}:{1}: a carriage return (CR) inside the line; lines end in LF or CRLF: "
                    "take it out, or, where CR alone ends lines, rewrite them with "
                    "tr '\\r' '\\n' < {0} > NEW",
                    path_, number_));
  return true;
}

bool is_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && utf8_length(text, at) > 0) at += utf8_length(text, at);
  return at == text.size();
}

void require_utf8(std::string_view text, const std::string& path, int line) {
  if (!is_utf8(text))
    throw RunError(
        fmt::format("{}:{}: '{}' is not UTF-8, which texts are stored as; if the file "
                    "is Latin-1, convert it: {}",
                    path, line, excerpt(text), conversion_to_utf8(path)));
}

std::string conversion_to_utf8(const std::string& path) {
  return fmt::format("iconv -f WINDOWS-1252 -t UTF-8 {} > NEW", path);
}

}  // namespace melflow
