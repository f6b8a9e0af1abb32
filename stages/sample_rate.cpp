#include "stages/sample_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "pipeline/base/sentences.h"

namespace melflow {

std::string OptionType<SampleRate>::parse(const Value& v, SampleRate& out) {
  const auto read = detail::number_and_unit(v);
  std::string unit(read ? read->second : "");
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (!read || (!unit.empty() && unit != "hz" && unit != "khz" && unit != "k")) {
    const char* const meant = unit.starts_with('k') ? "kHz" : unit.starts_with('h') ? "Hz" : "";
    return detail::is_no_amount(v, "a sample rate in Hz such as 16000, 16kHz or 44.1kHz") +
           (read && *meant != '\0'
                ? did_you_mean(fmt::format("{}{}", number_text(read->first), meant))
                : std::string());
  }
  const double hz = read->first * (unit.starts_with('k') ? 1000 : 1);
  if (hz > std::numeric_limits<int>::max()) return excerpt(v.text()) + " is too large";
  constexpr double kLeast = 4, kMost = 400;  // [kHz], such as 44.1
  if (unit.empty() && hz != std::round(hz) && hz >= kLeast && hz <= kMost)
    return excerpt(v.text()) + " is not a whole number of Hz" +
           did_you_mean(excerpt(v.text()) + "kHz");
  if (std::abs(hz - std::round(hz)) > 1e-6)
    return excerpt(v.text()) + " is not a whole number of Hz; write one, such as 22050 or 22.05kHz";
  out = static_cast<int>(std::lround(hz));
  return {};
}

}  // namespace melflow
