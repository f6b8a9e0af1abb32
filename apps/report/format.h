// Formats numbers for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace melflow {

std::string count_text(std::size_t n);                       ///< "39,563"
std::string plural(std::size_t n, const std::string& what);  ///< "1 file", "39,563 files"
std::string rate_text(double per_second);                    ///< "10,663", "3.4"
std::string megabytes_text(double bytes);       ///< "3,240", "0.08": decimal megabytes, no unit
std::string bytes_text(double bytes);           ///< "1.20 GB"
std::string mebibytes_text(std::size_t bytes);  ///< "448 MiB"
std::string clock_text(double seconds);         ///< "0:03", "1:02:03"
std::string milliseconds_text(double seconds);  ///< "0.012", "3.4", "1,250": no unit
std::string seconds_text(double seconds);       ///< "3.71 s", "12:40 min", "1:02:03 h"

constexpr std::size_t kLongestReason = 1000;  ///< [bytes]; longer ones are cut
constexpr std::size_t kShownRemarks = 10;     ///< warnings shown before the hint to the whole list

/// Returns "decode: failed: is not an audio file", as every verb prints it; for a file that is ok,
/// "decode: short: …". `status`: the file's outcome. Long reasons are cut.
std::string remark_text(const std::string& stage, const std::string& status,
                        const std::string& reason);

/// Returns "a.wav, b.wav, c.wav, …" for `count` files; `names` has the first of their names.
std::string first_names(const std::vector<std::string>& names, std::size_t count);

/// Returns the sort position of warnings with this status: failed files come first, skipped ones
/// last.
int place_of(std::string_view status);

/// Aligns columns to their widest cell, the first `left` ones to the left and figures to the right.
std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t left);

/// Escapes <, >, &, " and ' for HTML, and replaces bytes that are not UTF-8 or control a terminal.
std::string html_text(std::string_view text);

}  // namespace melflow
