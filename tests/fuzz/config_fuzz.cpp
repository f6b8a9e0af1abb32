// Feeds any bytes as a configuration, for libFuzzer: no crash, no sanitizer finding, less than a
// second of work, and messages of bounded length that have a position. Bytes up to the first U+0001
// are the file, followed by --set and --var, one per line. long/fuzz.sh builds and runs it.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/unit/config_stages.h"

namespace {

using melflow::Assignment;

// Reads the lines of `text` as NAME=VALUE, alternating between --set and --var.
melflow::LoadOptions options_of(const std::string& text) {
  melflow::LoadOptions out;
  std::istringstream lines(text);
  std::string line;
  for (bool is_set = true; std::getline(lines, line); is_set = !is_set) {
    const std::size_t equals = line.find('=');
    if (equals == 0 || equals == line.npos) continue;
    (is_set ? out.sets : out.vars).push_back({line.substr(0, equals), line.substr(equals + 1)});
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = all.find('\x01');
  const melflow::LoadOptions options =
      options_of(end == all.npos ? std::string() : all.substr(end + 1));
  try {
    (void)melflow::load_plan_text(all.substr(0, end), "f", options,
                                  melflow::test::config_registry());
  } catch (const melflow::ConfigError& e) {
    for (const melflow::Problem& p : e.problems().sorted())
      if (p.str().size() > 2100 + melflow::Problems::kLongestMessage || p.mark.file == nullptr)
        std::abort();
  }
  return 0;
}
