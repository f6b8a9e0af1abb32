// Composes messages.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

/// ". Did you mean 'x'?": a sentence behind what is wrong. did_you_mean() of problem.h finds the
/// nearest of several.
std::string did_you_mean(std::string_view meant);

/// "files" of "file", "batches" of "batch"; "rows" as it is. Of names of ports.
std::string plural(std::string_view noun);

/// The text with a new sentence behind every question: "Did you mean 'run'?; the verbs are" becomes
/// "Did you mean 'run'? The verbs are".
std::string in_sentences(std::string_view text);

}  // namespace melflow
