// Guesses what was meant by a path that does not exist.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

/// Returns "; ~ is not expanded: write ${HOME}" for a path that begins with ~, ". Did you mean
/// '${DATA}'?" for {DATA}, else "".
std::string path_advice(std::string_view path);

/// Returns "'s3://b/clips' is a URL, ..." with advice where the path is one, else "".
std::string url_problem(std::string_view path);
/// The program that copies what a URL of that scheme names: "aws s3 sync".
const char* copier_of(std::string_view scheme);

}  // namespace melflow
