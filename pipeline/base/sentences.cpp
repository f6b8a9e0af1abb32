#include "pipeline/base/sentences.h"

#include <cctype>

#include <fmt/format.h>

namespace melflow {

std::string did_you_mean(std::string_view meant) {
  return fmt::format(". Did you mean '{}'?", meant);
}

std::string plural(std::string_view noun) {
  const bool is_plural = noun.ends_with('s');
  const bool hisses = noun.ends_with("ch") || noun.ends_with("sh") || noun.ends_with('x');
  return fmt::format("{}{}", noun, is_plural ? "" : hisses ? "es" : "s");
}

std::string in_sentences(std::string_view text) {
  constexpr std::string_view kJoint = "?; ";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t joint = text.find(kJoint, at);
    if (joint == text.npos || joint + kJoint.size() >= text.size())
      return out.append(text.substr(at));
    out.append(text.substr(at, joint - at)).append("? ");
    at = joint + kJoint.size();
    out += static_cast<char>(std::toupper(static_cast<unsigned char>(text[at++])));
  }
  return out;
}

}  // namespace melflow
