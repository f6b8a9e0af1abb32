#include "apps/report/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/text.h"

namespace melflow {

std::string count_text(std::size_t n) {
  const std::string digits = std::to_string(n);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string plural(std::size_t n, const std::string& what) {
  return fmt::format("{} {}{}", count_text(n), what, n == 1 ? "" : "s");
}

std::string rate_text(double per_second) {
  if (!std::isfinite(per_second) || per_second <= 0) return "0";
  if (per_second < 10) return fmt::format("{:.1f}", per_second);
  return count_text(static_cast<std::size_t>(std::llround(per_second)));
}

std::string megabytes_text(double bytes) {
  const double mb = bytes / 1e6;
  if (mb <= 0) return "0";
  if (mb < 10) return fmt::format("{:.2f}", mb);
  return count_text(static_cast<std::size_t>(std::llround(mb)));
}

std::string bytes_text(double bytes) {
  constexpr std::array<std::pair<double, const char*>, 4> kUnits{
      {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}}};
  for (const auto& [factor, name] : kUnits)
    if (bytes >= factor) return fmt::format("{:.2f} {}", bytes / factor, name);
  return fmt::format("{:.0f} B", bytes);
}

std::string mebibytes_text(std::size_t bytes) {
  const double mib = static_cast<double>(bytes) / (1024.0 * 1024.0);
  return mib < 10 ? fmt::format("{:.1f} MiB", mib)
                  : count_text(static_cast<std::size_t>(std::llround(mib))) + " MiB";
}

std::string clock_text(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e7) return "--:--";
  const auto s = static_cast<long>(std::ceil(seconds));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string milliseconds_text(double seconds) {
  const double ms = 1e3 * seconds;
  if (ms <= 0) return "0";
  if (ms < 1) return fmt::format("{:.3f}", ms);
  if (ms < 100) return fmt::format("{:.1f}", ms);
  return count_text(static_cast<std::size_t>(std::llround(ms)));
}

std::string seconds_text(double seconds) {
  if (seconds < 100) return fmt::format("{:.2f} s", seconds);
  return clock_text(seconds) + (seconds >= 3600 ? " h" : " min");
}

std::string remark_text(const std::string& stage, const std::string& status,
                        const std::string& reason) {
  return fmt::format("{}{}{}", stage.empty() ? "" : excerpt(stage) + ": ",
                     status == "ok" ? "" : status + ": ", excerpt(reason, kLongestReason));
}

std::string first_names(const std::vector<std::string>& names, std::size_t count) {
  constexpr std::size_t kShown = 3;
  std::string out;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i)
    out += (i == 0 ? "" : ", ") + excerpt(names[i], kLongestPath);
  return out + (count > kShown ? ", …" : "");
}

int place_of(std::string_view status) {
  return status == "failed" ? 0 : status == "skipped" ? 2 : 1;
}

std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i < left ? fmt::format("{:<{}}  ", row[i], widths[i])
                       : fmt::format("{:>{}}  ", row[i], widths[i]);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string html_text(std::string_view text) {
  constexpr std::string_view kSpecial = "<>&\"'";
  constexpr const char* kNames[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
  std::string out;
  for (const char c : printable(text)) {
    const std::size_t special = kSpecial.find(c);
    special == kSpecial.npos ? out += c : out += kNames[special];
  }
  return out;
}

}  // namespace melflow
