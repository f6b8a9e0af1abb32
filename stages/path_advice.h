// Guesses what was meant by a path that does not exist.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

/// "; ~ is not expanded: write ${HOME}" where the path begins with it, ". Did you mean '${DATA}'?"
/// for {DATA}; else "".
std::string path_advice(std::string_view path);

/// "'s3://b/clips' is a URL, ..." with what to do, where the path is one; else "".
std::string url_problem(std::string_view path);

}  // namespace melflow
