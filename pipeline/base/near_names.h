// Names in a message about a word that is none of them. did_you_mean() in problem.h chooses one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace melflow {

/// A word that is longer is no misspelling [bytes].
constexpr std::size_t kLongestMisspelt = 100;

/// Edit distance with transpositions of neighbours (optimal string alignment), for typing errors.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Lists the names in a message about `word`: all of them, or of more than twenty the three
/// nearest, how many more there are, and what shows all ("" for nothing): "ast, nemo, vggish and 86
/// more (`melflow presets` shows all)".
std::string names_text(std::string_view word, const std::vector<std::string>& names,
                       std::string_view shown_by = "");

/// Returns "is not one of a, b, c. Did you mean 'c'?", with names_text().
std::string not_one_of(std::string_view word, const std::vector<std::string>& names,
                       std::string_view shown_by = "");

}  // namespace melflow
