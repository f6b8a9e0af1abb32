#include "stages/path_advice.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "pipeline/base/secrets.h"
#include "pipeline/base/sentences.h"
#include "pipeline/base/text.h"

namespace melflow {

std::string path_advice(std::string_view path) {
  if (path == "~" || path.starts_with("~/"))
    return fmt::format("; ~ is not expanded: write ${{HOME}}{}", path.substr(1));
  const std::size_t open = path.find('{'), close = path.find('}');
  if (open == path.npos || close == path.npos || close < open + 2) return {};
  const std::string_view name = path.substr(open + 1, close - open - 1);
  const bool is_variable = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isupper(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
  return is_variable ? did_you_mean(fmt::format("${{{}}}", name)) : std::string();
}

std::string url_problem(std::string_view path) {
  const std::string_view scheme = scheme_of(path);
  if (scheme.empty()) return {};
  const std::size_t end = scheme.size();
  const std::string is =
      fmt::format("'{}' is a URL, and paths of mounted disks are read and written", excerpt(path));
  if (scheme == "file") return fmt::format("{}; write {}", is, excerpt(path.substr(end + 3)));
  return fmt::format("{}; copy between it and a folder with {}, and name the folder", is,
                     copier_of(scheme));
}

const char* copier_of(std::string_view scheme) {
  return scheme == "s3"                          ? "aws s3 sync"
         : scheme == "gs"                        ? "gcloud storage rsync"
         : scheme == "hf"                        ? "huggingface-cli download"
         : scheme == "http" || scheme == "https" ? "wget or curl"
                                                 : "the program that it is for";
}

}  // namespace melflow
