// Feeds any bytes as a manifest, for libFuzzer (perf/fuzz.sh): the first byte says whether they are
// CSV or a table with tabs, with or without quotes, or a pattern (the first line) for paths (the
// other lines).
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "pipeline/base/problem.h"
#include "stages/corpus/csv.h"
#include "stages/corpus/path_parts.h"

namespace {

// A file in memory.
class File {
 public:
  File(const std::uint8_t* data, std::size_t size) : fd_(memfd_create("table", 0)) {
    if (fd_ < 0 || write(fd_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// Reads every cell, and counts lines.
void read_all(melflow::TableReader& table) {
  int line = 0;
  for (bool is_row = true; is_row;) {
    try {
      is_row = table.next();
    } catch (const melflow::BadLine&) {
      // The lines after it can be read.
    }
    if (!is_row) return;
    if (table.line() <= line) std::abort();
    line = table.line();
    for (std::size_t c = 0; c < table.columns().size(); ++c) {
      try {
        static_cast<void>(table.cell(static_cast<int>(c)).size());
      } catch (const melflow::BadLine&) {
      }
    }
  }
}

void match_lines(const std::string& text) {
  std::istringstream lines(text);
  std::string pattern, path;
  std::getline(lines, pattern);
  const melflow::Glob glob(pattern);
  while (std::getline(lines, path)) {
    const bool is_match = glob.matches(path);
    if (glob.takes_every_name() && pattern.find('/') == pattern.npos && !path.empty() &&
        path.find('/') == path.npos && (path.front() == '.') == glob.names_hidden() &&
        path.find_first_not_of('.') != path.npos && !is_match)
      std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    if (data[0] % 4 == 3) {
      match_lines({reinterpret_cast<const char*>(data + 1), size - 1});
      return 0;
    }
    const File file(data + 1, size - 1);
    const bool is_csv = data[0] % 2 == 0;
    constexpr const char* kDelimiters[] = {",", "\t", ", ", " "};
    melflow::TableFormat format;
    format.delimiter = kDelimiters[data[0] / 16 % 2 * 2 + (is_csv ? 0 : 1)];
    format.quoting = is_csv != (data[0] % 8 > 3) ? melflow::Quoting::csv : melflow::Quoting::none;
    if (data[0] / 32 % 2 == 1) format.header = {"a", "b"};
    if (data[0] / 64 % 2 == 1) format.comment = "#";
    melflow::CsvReader table(file.path(), {}, format);
    read_all(table);
  } catch (const melflow::RunError&) {
    // An unreadable table is reported.
  }
  return 0;
}
