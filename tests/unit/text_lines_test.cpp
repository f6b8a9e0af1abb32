#include "stages/corpus/text_lines.h"

#include <doctest/doctest.h>

#include "pipeline/base/problem.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::text_lines_test {

using namespace std::string_literals;

namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& bytes) {
  const TempFolder folder;
  TextLines in(folder.write("t", bytes));
  Lines out;
  for (std::string line; in.next(line);) {
    out.push_back(line);
    CHECK(in.number() == static_cast<int>(out.size()));
  }
  return out;
}

// Returns the message without the folder; "" if nothing is thrown.
std::string complaint(const std::string& bytes) {
  const TempFolder folder;
  try {
    TextLines in(folder.write("t", bytes));
    for (std::string line; in.next(line);) {
    }
  } catch (const RunError& e) {
    std::string text = e.what();
    for (std::size_t at; (at = text.find(folder.path() + "/")) != text.npos;)
      text.erase(at, folder.path().size() + 1);
    return text;
  }
  return "";
}

}  // namespace

TEST_CASE("text lines: line ends, a byte order mark and any other bytes") {
  struct Row {
    const char* what;
    std::string bytes;
    Lines lines;
  };
  const std::string longer(200'000, 'x');  // longer than what is read at a time
  const Row rows[] = {
      {"nothing", "", {}},
      {"LF", "a\n\nb\n", {"a", "", "b"}},
      {"CRLF", "a\r\n\r\nb\r\n", {"a", "", "b"}},
      {"no end", "a\nb", {"a", "b"}},
      {"a CR at the end of the file", "a\r\nb\r", {"a", "b"}},
      {"a mark", "\xEF\xBB\xBF"s + "a\n\xEF\xBB\xBF" + "b\n", {"a", "\xEF\xBB\xBF"s + "b"}},
      {"a mark alone", "\xEF\xBB\xBF", {}},
      {"Latin-1", "caf\xE9\n", {"caf\xE9"}},
      {"long lines", longer + "\r\n" + longer, {longer, longer}},
      {"names that begin as other files do",
       "RIFF/a.wav\nPAR1/b.wav\nID3.wav\nOggS/c.wav\nBZh/d.wav\n",
       {"RIFF/a.wav", "PAR1/b.wav", "ID3.wav", "OggS/c.wav", "BZh/d.wav"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(lines_of(row.bytes) == row.lines);
  }
}

TEST_CASE("text lines: what is no text is refused by what it is") {
  std::string tar(600, '\0');
  tar.replace(0, 5, "a.wav").replace(257, 5, "ustar");
  const std::string gzip = "\x1F\x8B\x08\0\0"s;
  struct Row {
    std::string bytes, message;  // its beginning
  };
  const std::string no = "t: this is ", text = ", not UTF-8 text; ";
  const Row rows[] = {
      {gzip, "t: this file packed by gzip ends too early; copy it again"},
      {"BZh91AY&SY", no + "a file packed by bzip2" + text},
      {"\xFD\x37zXZ\0"s, no + "a file packed by xz" + text},
      {"\x28\xB5\x2F\xFD", no + "a file packed by zstd" + text},
      {"PK\x03\x04", no + "a ZIP archive or spreadsheet" + text},
      {tar, no + "a tar archive" + text},
      {"\x89HDF\r\n\x1A\n", no + "an HDF5 file" + text},
      {"PAR1\x15\0"s, no + "a Parquet table" + text + "save the table as a .csv, .tsv or .jsonl"},
      {"\x93NUMPY\x01\0"s, no + "a NumPy array" + text},
      {"SQLite format 3\0"s, no + "an SQLite database" + text},
      {"RIFF\x24\0\0\0WAVEfmt "s, no + "a recording (WAV)" + text},
      {"fLaC\0\0\0\x22"s, no + "a recording (FLAC)" + text},
      {"ID3\x04\0\0\0\0\0\0\xFF\xFB"s, no + "a recording (MP3)" + text},
      {"\xFF\xFE"s + "a\0"s,
       no + "UTF-16 text" + text + "write it as UTF-8: iconv -f UTF-16 -t UTF-8 t > NEW"},
      {"\xFE\xFF\0a"s, no + "UTF-16 text" + text},
      {"\xFF\xFE\0\0a\0\0\0"s, no + "UTF-32 text" + text},
      {"p\0a\0t\0h\0\n\0"s, no + "UTF-16 text without a byte order mark" + text +
                                "write it as UTF-8: iconv -f UTF-16LE"},
      {"\0p\0a\0t\0h"s, no + "UTF-16 text without a byte order mark" + text +
                            "write it as UTF-8: iconv -f UTF-16BE"},
      {"a.wav\nb\0.wav\n"s, "t:2: a zero byte is no text; take it out, or name another file"},
      {"a.wav\rb.wav\r",
       "t:1: a carriage return (CR) inside the line; lines end in LF or CRLF: take it out, or, "
       "where "
       "CR alone ends lines, rewrite them with tr '\\r' '\\n' < t > NEW"},
      {"a.wav\nb\r.wav\r\n", "t:2: a carriage return (CR) inside the line"},
  };
  for (const Row& row : rows) {
    const std::string got = complaint(row.bytes);
    CAPTURE(got);
    CAPTURE(row.message);
    CHECK(got.starts_with(row.message));
  }
}

}  // namespace melflow::test::text_lines_test
