// Reads a text file that a user gives, line by line: every list and table of a corpus, plain or
// packed by gzip. A file that is not text is refused with its kind, recognized by its first bytes
// or its name.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "pipeline/base/input_file.h"
#include "stages/files/inflater.h"

namespace melflow {

/// The mark that programs of Windows write before UTF-8.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class TextLines {
 public:
  /// A pipe may be named by its descriptor (/dev/stdin, the shell's <(...)). Throws RunError when
  /// the file cannot be read, with `why_needed` after the reason, or when it is not text.
  explicit TextLines(std::string path, std::string_view why_needed = "");

  /// Reads the next line, without its end (LF or CRLF) and, in the first line, a UTF-8 byte order
  /// mark; false at the end. Other bytes are returned as they are. Throws RunError, with the line,
  /// for a zero byte and for a CR without an LF after it.
  bool next(std::string& line);
  /// The number of the line last read, from 1.
  [[nodiscard]] int number() const { return number_; }
  /// The end of the line last read: "\n", "\r\n", or "" at the end of the file.
  [[nodiscard]] std::string_view line_end() const { return line_end_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  bool fill();

  std::string path_;
  InputFile in_;
  std::unique_ptr<Inflater> inflater_;  // where the file is packed
  std::string buffer_;
  std::size_t at_ = 0;    // position in the buffer
  std::size_t read_ = 0;  // [bytes] read so far
  int number_ = 0;
  std::string_view line_end_;
};

bool is_utf8(std::string_view text);
/// Throws RunError, with the line and how to convert the file, where the text is not UTF-8, as all
/// texts of an output must be. (Paths are bytes, and may be anything that the file system has.)
void require_utf8(std::string_view text, const std::string& path, int line);
/// Returns a command such as "iconv -f WINDOWS-1252 -t UTF-8 list.txt > NEW".
std::string conversion_to_utf8(const std::string& path);

/// Returns the kind of a file that is not text, with advice; "" where it may be text. `head`: its
/// first bytes, at least 512 where it has them; `path`: that of the file.
std::string why_no_text(std::string_view head, const std::string& path);

/// Returns, by the path's ending, why the file is no readable list of recordings, with advice; ""
/// where it may be one.
std::string why_no_list(const std::string& path);
/// The part of why_no_list() for packed files.
std::string why_packed(const std::string& path);

}  // namespace melflow
