#include "stages/training/batch_inputs.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/text.h"
#include "stages/facts.h"
#include "stages/manifest.h"

namespace melflow {
namespace {

using Input = PairedInputs::Input;

// The entries that a batch has beside rows, whatever is listed.
constexpr const char* kEntries[] = {"length", "label", "labels", "split",  "target",
                                    "path",   "file",  "offset", "result", "result_offset"};

bool is_name(const std::string& text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < 128 && (std::isalnum(c) != 0 || c == '_'); });
}

// Returns why entries of a batch cannot have these names, or "".
std::string refusal(const std::vector<std::string>& names, const ManifestFields* listed,
                    bool are_ragged) {
  std::set<std::string> taken(std::begin(kEntries), std::end(kEntries));
  if (listed != nullptr) taken.insert(listed->columns.begin(), listed->columns.end());
  std::set<std::string> own;
  for (const std::string& name : names) {
    if (!is_name(name))
      return fmt::format(
          "'{}' is no name; a name has letters, digits and _, and begins with no digit",
          excerpt(name));
    for (const std::string& entry : {name, name + "_length"}) {
      if (entry != name && (names.size() == 1 || !are_ragged)) continue;
      if (taken.contains(entry))
        return fmt::format("a batch has another entry '{}'; choose another name", excerpt(entry));
      if (!own.insert(entry).second)
        return fmt::format(
            "two entries of a batch would be called '{}'; give each a name of its own",
            excerpt(entry));
    }
  }
  return {};
}

// Returns the rows' own names; where several are the same, the nodes' names.
std::vector<std::string> names_of(const std::vector<Input>& inputs,
                                  const std::vector<BatchInput>& rows) {
  std::vector<std::string> out;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const std::string& own = rows[k].rows->name;
    const auto is_it = [&](const BatchInput& other) { return other.rows->name == own; };
    out.push_back(std::count_if(rows.begin(), rows.end(), is_it) == 1 ? own : inputs[k].name);
  }
  return out;
}

const char* row_of(const FeatureInfo& rows) {
  return rows.frames > 0 ? "window" : "whole recording";
}

// Returns "1 s every 0.5 s".
std::string text(const WindowGrid& grid, int rate) {
  const auto seconds = [rate](std::int64_t samples) {
    return fmt::format("{:.6g} s", static_cast<double>(samples) / rate);
  };
  if (grid.per_long == 1)
    return fmt::format("{} every {}", seconds(grid.length), seconds(grid.long_hop));
  return fmt::format("{} every {}, in {} every {}", seconds(grid.length), seconds(grid.short_hop),
                     seconds(grid.long_length), seconds(grid.long_hop));
}

bool are_alike(const WindowGrid& a, int rate_a, const WindowGrid& b, int rate_b) {
  const auto is_same = [&](std::int64_t x, std::int64_t y) { return x * rate_b == y * rate_a; };
  return is_same(a.length, b.length) && is_same(a.long_length, b.long_length) &&
         is_same(a.long_hop, b.long_hop) && is_same(a.short_hop, b.short_hop) &&
         a.per_long == b.per_long;
}

// Returns why the samples of an input are not those of the first; "" where they may be the same.
std::string refusal(const std::vector<Input>& inputs, const std::vector<BatchInput>& rows,
                    std::size_t k) {
  const FeatureInfo &a = *rows.front().rows, &b = *rows[k].rows;
  const std::string &first = inputs.front().name, &name = inputs[k].name;
  if ((a.frames > 0) != (b.frames > 0))
    return fmt::format("a sample of {} is a {}, one of {} is a {}; put both after the same segment",
                       first, row_of(a), name, row_of(b));
  const auto grid = inputs.front().given.get(property::kWindowGrid),
             other = inputs[k].given.get(property::kWindowGrid);
  if (a.frames > 0 && grid && other && a.sample_rate > 0 && b.sample_rate > 0 &&
      !are_alike(*grid, a.sample_rate, *other, b.sample_rate))
    return fmt::format(
        "a sample of {} is a window of {}, one of {} is {}; give them the same windows", first,
        text(*grid, a.sample_rate), name, text(*other, b.sample_rate));
  return {};
}

}  // namespace

std::vector<BatchInput> batch_inputs(const std::vector<Input>& inputs,
                                     const std::vector<std::string>& names, PlanCheck& check) {
  std::vector<BatchInput> out;
  for (const Input& i : inputs) {
    out.push_back({"", i.given.get_or(property::kFeatures, nullptr)});
    if (out.back().rows == nullptr) return {};  // a stage before it has an error of its own
  }
  for (std::size_t k = 1; k < out.size(); ++k)
    if (const std::string why = refusal(inputs, out, k); !why.empty()) {
      check.error("from", why);
      return {};
    }
  if (!names.empty() && names.size() != out.size()) {
    check.error("names",
                fmt::format("{} names for {} inputs; give each a name", names.size(), out.size()));
    return {};
  }
  const std::vector<std::string> own = names.empty() ? names_of(inputs, out) : names;
  const auto listed = inputs.front().given.get_or(property::kManifestFields, nullptr);
  if (const std::string why = refusal(own, listed.get(), out.front().rows->frames == 0);
      !why.empty() && (!names.empty() || out.size() > 1)) {
    check.error(names.empty() ? "from" : "names", why);
    return {};
  }
  for (std::size_t k = 0; k < out.size(); ++k) out[k].name = own[k];
  return out;
}

}  // namespace melflow
