// Reads a text file that a user gives, line by line: every list and table of a corpus. What is no
// text is refused by what it is, by its first bytes or its name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "pipeline/base/input_file.h"

namespace melflow {

class TextLines {
 public:
  /// A pipe may be named by its descriptor (/dev/stdin, the shell's <(...)). Throws RunError when
  /// the file cannot be read, with `why_needed` behind the reason, or is no text.
  explicit TextLines(std::string path, std::string_view why_needed = "");

  /// Reads the next line, without its end (LF or CRLF) and, in the first line, a UTF-8 byte order
  /// mark; false at the end. Other bytes are as they are in the file. Throws RunError, with the
  /// line, for a zero byte and for a CR that no LF follows.
  bool next(std::string& line);
  /// The number of the line last read, from 1.
  [[nodiscard]] int number() const { return number_; }
  /// What it ended in: "\n", "\r\n", or "" at the end of the file.
  [[nodiscard]] std::string_view line_end() const { return line_end_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  bool fill();

  std::string path_;
  InputFile in_;
  std::string buffer_;
  std::size_t at_ = 0;    // in the buffer
  std::size_t read_ = 0;  // [bytes] so far
  int number_ = 0;
  std::string_view line_end_;
};

bool is_utf8(std::string_view text);
/// Throws RunError, with the line of the file and how to convert it, where the text is not UTF-8,
/// as all texts of an output are. (Paths are bytes, and may be anything that the file system has.)
void require_utf8(std::string_view text, const std::string& path, int line);
/// "iconv -f WINDOWS-1252 -t UTF-8 list.txt > NEW".
std::string conversion_to_utf8(const std::string& path);

/// What the file is, and what to do; "" where it may be text. `head`: its first bytes, 512 or more
/// where it has them; `path`: of the file.
std::string why_no_text(std::string_view head, const std::string& path);

/// By the path's ending: why it is no list of recordings that can be read, and what to do; "" where
/// it may be one.
std::string why_no_list(const std::string& path);
/// The part of why_no_list() that is of packed files.
std::string why_packed(const std::string& path);

}  // namespace melflow
