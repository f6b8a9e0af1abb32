// Messages that are put together of pieces.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

/// The text with a new sentence behind every question: "did you mean 'run'?; the verbs are" becomes
/// "did you mean 'run'? The verbs are".
std::string in_sentences(std::string_view text);

}  // namespace melflow
