// Feeds any bytes as JSON lines, and as the JSON beside a recording, for libFuzzer (long/fuzz.sh):
// the first line is the name of a column that is asked for, the second one that is required, or
// empty.
#include <string>

#include "pipeline/base/problem.h"
#include "stages/corpus/json_lines.h"
#include "tests/fuzz/read_table.h"

using namespace melflow;
using namespace melflow::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto line = [&rest] {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string out(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return out;
  };
  const std::string asked = line(), required = line();
  if (std::string value; is_utf8(rest) && json_value(rest, asked, value).empty())
    require(value.find('\0') == value.npos && is_utf8(value));
  write_files(rest, {"list.jsonl"});
  try {
    JsonLinesReader table(folder() / "list.jsonl", required.empty()
                                                       ? std::vector<std::string>()
                                                       : std::vector<std::string>{required});
    const int column = table.find_column(asked);
    require(column < 0 || column == table.column(asked));
    read_all(table);
    static_cast<void>(table.remarks({0, 1}));
  } catch (const RunError&) {
    // An unreadable list is reported.
  }
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return write_seeds([](const auto& seed) {
    const std::string lines =
        R"({"path":"a.wav","label":["x","y"],"n":-1.5e3,"none":null,"b":true})"
        "\n"
        R"({"path":"b.wav","late":"caf\u00e9","n":18446744073709551616})"
        "\n\n[1]\n{\"path\":{\"a\":[[]]}}\n";
    seed("lines", "late\n\n" + lines);
    seed("required", "label\npath\n" + lines);
    seed("one", "a\n\n{\"a\":[1,\"\\ud83d\\ude00\",null]}");
    seed("deep", "a\n\n{\"a\":" + std::string(200, '[') + std::string(200, ']') + "}");
  });
}
