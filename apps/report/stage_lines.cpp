#include "apps/report/stage_lines.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "pipeline/base/text.h"

namespace melflow {
namespace {

constexpr std::size_t kLongestName = 18, kCells = 16;
constexpr int kLeastWidth = 40;
constexpr double kIdle = 0.1;  // below this no node is marked

std::string bar(double share) {
  const auto full = static_cast<std::size_t>(std::lround(share * kCells));
  return std::string(full, '#') + std::string(kCells - full, '.');
}

// Without what a terminal shows at another width than its bytes.
std::string plain(const std::string& name) {
  std::string out = one_line(name).substr(0, kLongestName);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

}  // namespace

std::vector<std::string> stage_lines(const Plan& plan, const RunSample& before,
                                     const RunSample& now, int width) {
  if (now.nodes.size() != plan.nodes.size() || before.nodes.size() != now.nodes.size() ||
      width < kLeastWidth)
    return {};
  std::vector<double> busy;
  std::size_t longest = 0, busiest = 0;
  for (std::size_t i = 0; i < now.nodes.size(); ++i) {
    const StageTime &was = before.nodes[i].time, &is = now.nodes[i].time;
    const double all = is.total() - was.total();
    busy.push_back(all > 0 ? std::clamp((is.busy - was.busy) / all, 0.0, 1.0) : 0);
    if (busy[i] > busy[busiest]) busiest = i;
    longest = std::max(longest, plain(plan.nodes[i].name).size());
  }
  std::vector<std::string> out;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const PlanNode& node = plan.nodes[i];
    std::string line = fmt::format("  {:<{}} {} {:3.0f}% busy", plain(node.name), longest,
                                   bar(busy[i]), 100 * busy[i]);
    if (!node.inputs.empty())
      line += fmt::format(", {}/{} waiting", now.nodes[i].waiting, node.queue);
    if (i == busiest && busy[i] >= kIdle) line += "  <- busiest";
    out.push_back(line.substr(0, static_cast<std::size_t>(width)));
  }
  return out;
}

}  // namespace melflow
