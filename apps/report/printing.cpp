#include "apps/report/printing.h"

#include "apps/console.h"
#include "pipeline/base/sentences.h"

namespace melflow {
namespace {

constexpr std::size_t kLongestMessage = 16384;  // [bytes]

}  // namespace

void put(std::FILE* out, const std::string& text) {
  const std::string shown = printable(text);
  if (Console* host = console()) return host->print(out, shown);
  (void)std::fwrite(shown.data(), 1, shown.size(), out);
  (void)std::fflush(out);
}

void complain(const std::string& message) {
  put(stderr, "melflow: " + excerpt(in_sentences(message), kLongestMessage) + "\n");
}

}  // namespace melflow
