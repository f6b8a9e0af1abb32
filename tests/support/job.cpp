#include "tests/support/job.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "pipeline/base/number_type.h"
#include "tests/support/h5_reader.h"
#include "tests/support/watchdog.h"

namespace melflow::test {
namespace {

std::string progress_text(const Runner& runner) {
  const Progress p = runner.progress();
  return fmt::format("{} of {} files closed, {} rows", p.counts.closed(), p.counts.found, p.rows);
}

}  // namespace

std::map<std::string, std::string> JobResult::remarks_by_name() const {
  std::map<std::string, std::string> out;
  for (const Remark& r : remarks)
    out[r.name] =
        fmt::format("{}: {}: {}", melflow::to_text(r.entry.outcome), r.entry.stage, r.entry.reason);
  return out;
}

std::string JobResult::text() const {
  const Ledger::Counts& c = report.counts;
  std::string out = fmt::format(
      "error '{}', {} found, {} ok ({} with a warning), {} skipped, {} failed, {} not run\n", error,
      c.found, c.ok, c.warned, c.skipped, c.failed, c.not_run);
  for (const auto& [name, remark] : remarks_by_name()) out += "  " + name + ": " + remark + "\n";
  for (const std::string& w : report.warnings) out += "  warning: " + w + "\n";
  return out;
}

std::vector<std::string> JobResult::run_warnings() const {
  std::vector<std::string> out = report.warnings;
  std::erase_if(out,
                [this](const std::string& w) { return std::ranges::count(plan_warnings, w) > 0; });
  return out;
}

const StageReport& JobResult::stage(const std::string& node) const {
  for (const StageReport& s : report.stages)
    if (s.name == node) return s;
  throw std::runtime_error("the report has no node " + node);
}

JobResult completed(JobResult job, std::source_location at) {
  if (!job.complete()) ADD_FAIL_AT(at.file_name(), static_cast<int>(at.line()), job.text());
  return job;
}

LoadOptions in_out(const std::string& data, const std::string& out) {
  LoadOptions options;
  options.vars = {{"DATA", data}, {"OUT", out}};
  return options;
}

JobResult run_job(const std::string& yaml, const LoadOptions& options,
                  const std::function<void(Runner&)>& meanwhile, Update update,
                  const Resume& resume) {
  JobResult out;
  Plan plan = load_plan_text(yaml, "test.yaml", options);
  set_task(plan.services, {.update = update, .resume = resume});
  for (const Problem& w : plan.warnings) out.plan_warnings.push_back(w.str());
  Runner runner(std::move(plan));
  const Watchdog watchdog("a job", [&] { return progress_text(runner); });
  std::jthread beside;
  if (meanwhile) beside = std::jthread([&] { meanwhile(runner); });
  try {
    out.report = runner.run();
    out.started = true;
    out.error = out.report.error;
    out.remarks = runner.remarks();
    // No shipped stage emits more than it declared.
    for (const std::string& w : out.report.warnings)
      CHECK_MESSAGE(w.find(" where it had declared ") == w.npos, w);
  } catch (const RunError& e) {
    out.error = e.what();
  }
  return out;
}

std::size_t Output::values_per_row() const {
  std::size_t n = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) n *= shape[i];
  return n;
}

const Output::File& Output::file(const std::string& path) const {
  const auto it =
      std::find_if(files.begin(), files.end(), [&](const File& f) { return f.path == path; });
  if (it == files.end()) throw std::runtime_error("the output has no file " + path);
  return *it;
}

std::vector<float> Output::rows_of(const std::string& path) const {
  const File& f = file(path);
  const auto values = static_cast<std::ptrdiff_t>(values_per_row());
  return {mel.begin() + f.offset * values, mel.begin() + (f.offset + f.count) * values};
}

namespace {
bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
}  // namespace

std::string Output::difference(const Output& other) const {
  if (shape != other.shape) return fmt::format("rows: {} and {}", rows(), other.rows());
  // Bit for bit: the energy's column has no frequency (NaN).
  if (type != other.type || unit != other.unit || band_hz.size() != other.band_hz.size() ||
      !std::equal(band_hz.begin(), band_hz.end(), other.band_hz.begin(), same_bits))
    return "type or bands";
  if (files != other.files) return "files";
  if (labels != other.labels || splits != other.splits) return "labels or splits";
  if (remarks != other.remarks) return "remarks";
  if (mel_bytes == other.mel_bytes) return "";
  const auto at = std::mismatch(mel.begin(), mel.end(), other.mel.begin()).first - mel.begin();
  const std::int64_t row = at / static_cast<std::int64_t>(values_per_row());
  for (const File& f : files)
    if (row >= f.offset && row < f.offset + f.count)
      return fmt::format("values from row {} on, {} of {}", row, row - f.offset, f.path);
  return "bytes of the rows";
}

namespace {

// Checks, for any kind of output, that rows are where the index says.
void check_hashes(const H5File& h5, const Output& out) {
  if (!h5.has("files/rows_hash")) return;
  const std::string bytes = h5.raw("files/rows_hash");
  std::size_t row_bytes = size_of(number_type(out.type).value());
  for (std::size_t i = 1; i < out.shape.size(); ++i) row_bytes *= out.shape[i];
  for (std::size_t i = 0; i < out.files.size(); ++i) {
    std::uint64_t hash = 0;
    std::memcpy(&hash, bytes.data() + i * sizeof hash, sizeof hash);
    const Output::File& f = out.files[i];
    const auto count = static_cast<std::size_t>(f.count);
    if (count > 0 &&
        hash != XXH3_64bits(out.mel_bytes.data() + static_cast<std::size_t>(f.offset) * row_bytes,
                            count * row_bytes))
      throw std::runtime_error("the rows of " + f.path + " have another hash");
  }
}

}  // namespace

Output read_output(const std::string& path) {
  const H5File h5(path);
  Output out;
  const std::string rows = h5.text_attribute("/", "rows");
  out.shape = h5.shape(rows);
  out.type = h5.type(rows);
  out.mel = h5.floats(rows);
  out.mel_bytes = h5.raw(rows);
  if (h5.has("band_hz")) out.band_hz = h5.doubles("band_hz");
  out.unit = h5.text_attribute(rows, "unit");
  out.root = h5.text_attribute("files", "root");
  out.labels = h5.strings("labels/name");
  out.splits = h5.strings("splits/name");
  const auto paths = h5.strings("files/path");
  const auto offset = h5.integers("files/offset"), count = h5.integers("files/count"),
             label = h5.integers("files/label"), split = h5.integers("files/split"),
             rate = h5.integers("files/sample_rate"), status = h5.integers("files/status");
  const auto duration = h5.doubles("files/duration");
  for (std::size_t i = 0; i < paths.size(); ++i)
    out.files.push_back({paths[i], offset.at(i), count.at(i), label.at(i), split.at(i), rate.at(i),
                         duration.at(i), status.at(i)});
  const auto file = h5.integers("remarks/file"), remark_status = h5.integers("remarks/status");
  const auto remark_path = h5.strings("remarks/path"), stage = h5.strings("remarks/stage"),
             reason = h5.strings("remarks/reason");
  for (std::size_t i = 0; i < file.size(); ++i)
    out.remarks.push_back(
        {file[i], remark_path.at(i), remark_status.at(i), stage.at(i), reason.at(i)});
  for (const std::string& name : h5.attribute_names("/")) {
    if (h5.attribute_type("/", name) == "string")
      out.texts[name] = h5.text_attribute("/", name);
    else
      out.integers[name] = h5.integer_attribute("/", name);
  }
  check_hashes(h5, out);
  return out;
}

}  // namespace melflow::test
