#include "apps/report/printing.h"

#include <fcntl.h>
#include <unistd.h>

#include "apps/console.h"
#include "pipeline/base/sentences.h"

namespace melflow {
namespace {

constexpr std::size_t kLongestMessage = 16384;  // [bytes]
std::FILE* apart = nullptr;

}  // namespace

void put(std::FILE* out, const std::string& text) {
  const std::string shown = printable(text);
  if (Console* host = console()) return host->print(out, shown);
  if (out == stdout) out = standard_output();
  (void)std::fwrite(shown.data(), 1, shown.size(), out);
  (void)std::fflush(out);
}

std::FILE* standard_output() { return apart != nullptr ? apart : stdout; }

void keep_output_apart() {
  const int copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (copy < 0) return;
  apart = fdopen(copy, "w");
  if (apart != nullptr) (void)dup2(STDERR_FILENO, STDOUT_FILENO);
}

void complain(const std::string& message) {
  put(stderr, "melflow: " + excerpt(in_sentences(message), kLongestMessage) + "\n");
}

}  // namespace melflow
