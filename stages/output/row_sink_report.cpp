// The report of a row sink on its output.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "stages/manifest.h"
#include "stages/output/row_sink.h"

namespace melflow {

std::vector<std::pair<std::string, Value>> RowSink::summary() const {
  if (!written_) return {};
  std::vector<Value> shape;
  for (const std::uint64_t n : shape_of(rows_)) shape.push_back(Value::scalar(std::to_string(n)));
  std::vector<std::string> paths;
  for (const auto& f : files_) paths.push_back(complete_ ? f->target() : f->part_path());
  std::vector<std::pair<std::string, Value>> out{
      {"path", Value::scalar(fmt::format("{}", fmt::join(paths, ", ")), {}, true)},
      {"complete", Value::scalar(complete_ ? "true" : "false")},
      {"rows", Value::scalar(std::to_string(rows_))}};
  if (const std::int64_t earlier = kept_.rows + resumed_.rows; earlier > 0)
    out.emplace_back("computed_rows", Value::scalar(std::to_string(rows_ - earlier)));
  out.emplace_back("shape", Value::list(std::move(shape)));
  out.emplace_back("dtype", OptionType<NumberType>::echo(target_.dtype));
  for (const auto& [name, files] :
       {std::pair{"kept_files", kept_.files}, std::pair{"left_out_files", ledger_->left_out()},
        std::pair{"late_files", writer_->late_files()}, std::pair{"resumed_files", resumed_.files}})
    if (files > 0) out.emplace_back(name, Value::scalar(std::to_string(files)));
  for (const auto& [name, files] :
       {std::pair{"dropped", &plan_.dropped}, std::pair{"changed", &plan_.changed},
        std::pair{"added", &plan_.added}}) {
    if (files->count == 0) continue;
    std::vector<Value> names;
    for (const std::string& path : files->names) names.push_back(Value::scalar(path, {}, true));
    out.emplace_back(fmt::format("{}_files", name), Value::scalar(std::to_string(files->count)));
    out.emplace_back(name, Value::list(std::move(names)));
  }
  if (!layout_name().empty()) out.emplace_back("layout", Value::scalar(layout_name()));
  std::uintmax_t bytes = 0;  // as `inspect` reports it
  for (const std::string& path : paths) {
    std::error_code gone;
    if (const auto size = std::filesystem::file_size(path, gone); !gone) bytes += size;
  }
  out.emplace_back("bytes", Value::scalar(std::to_string(bytes)));
  if (sync_seconds_ > 0)
    out.emplace_back("sync_seconds", Value::scalar(fmt::format("{:.3f}", sync_seconds_)));
  if (!splits_.empty()) out.emplace_back("splits", Value::list(splits_));
  return out;
}

// Returns the counts that `inspect --json` reports and, where rows were computed, the time of that.
std::vector<Value> RowSink::split_summaries(const RunContext& run) const {
  const Manifest* manifest = manifest_with_splits(run);
  if (manifest == nullptr) return {};
  std::vector<Value> out;
  const std::vector<Manifest::SplitRange> ranges = manifest->split_ranges();
  const std::vector<SplitTimes::Times> times = split_times_->all(ranges);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Manifest::SplitRange& range = ranges[i];
    std::int64_t rows = 0;
    for (std::size_t file = range.first; file < range.last; ++file)
      rows += writer_->order().rows(file);
    Value split = Value::map({});
    const auto set = [&split](const char* name, std::string text) {
      split.set(name, Value::scalar(std::move(text)));
    };
    split.set("name", range.split < 0 ? Value()
                                      : Value::scalar(manifest->split_name(range.split), {}, true));
    set("files", std::to_string(range.last - range.first));
    set("rows", std::to_string(rows));
    if (const SplitTimes::Times& t = times[i]; t.seconds > 0) {
      set("seconds", fmt::format("{:.6f}", t.seconds));
      set("files_per_second", fmt::format("{:.1f}", static_cast<double>(t.files) / t.seconds));
      set("rows_per_second", fmt::format("{:.1f}", static_cast<double>(t.rows) / t.seconds));
      set("write_seconds", fmt::format("{:.6f}", t.write_seconds));
    }
    out.push_back(std::move(split));
  }
  return out;
}

}  // namespace melflow
