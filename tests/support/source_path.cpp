#include "tests/support/source_path.h"

namespace melflow::test {

// The only file that is compiled with the path of the checkout, so that a compiler cache serves all
// others in any checkout.
std::string source_path(const std::string& relative) {
  return std::string(MELFLOW_SOURCE_DIR) + "/" + relative;
}

}  // namespace melflow::test
