// Composes messages.
#pragma once

#include <string>
#include <string_view>

namespace melflow {

/// Returns ". Did you mean 'x'?", to follow a problem. did_you_mean() in problem.h chooses the
/// nearest of several candidates.
std::string did_you_mean(std::string_view meant);

/// Returns the plural of the name of a port: "files" for "file", "batches" for "batch".
std::string plural(std::string_view noun);

/// Begins a new sentence after every question in a text: "Did you mean 'run'?; the verbs are"
/// becomes "Did you mean 'run'? The verbs are".
std::string in_sentences(std::string_view text);

}  // namespace melflow
