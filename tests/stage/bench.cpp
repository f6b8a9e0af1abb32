#include "tests/stage/bench.h"

#include "config/document.h"

namespace melflow::test {
namespace {

Value options_of(const std::string& text) {
  Document document = read_document(text, "options");
  if (!document.problems.empty()) throw ConfigError(document.problems);
  return document.root;
}

}  // namespace

Bench::Bench(const std::string& stage, const std::string& options)
    : StageRunner(stage, options_of(options)) {}

}  // namespace melflow::test
