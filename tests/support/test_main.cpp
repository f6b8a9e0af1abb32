#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "tests/support/skip.h"

namespace {
bool any_skipped = false;
}  // namespace

void melflow::test::skip(const std::string& why) {
  any_skipped = true;
  MESSAGE("skipped: " << why);
}

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int result = context.run();
  return result == 0 && any_skipped && !context.shouldExit() ? melflow::test::kSkipped : result;
}
