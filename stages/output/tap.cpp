// tap: saves the payloads on an edge, for a few recordings, for inspection: numbers as .npy,
// everything else as JSON.
//
// In: file, bytes, waveform, windows, batch or rows.
//
//   000012-a.wav.npy    samples [count], or rows [rows, frames, columns], as they came
//   000012-a.wav.json   further facts: blocks, rates, windows, columns, settings
//
// Pieces may come in any order, each with its position. A recording is complete when its record in
// the ledger is closed; one that fails keeps the pieces that came before.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/stage/registry.h"
#include "stages/any_payload.h"
#include "stages/corpus/path_parts.h"
#include "stages/files/own_file.h"
#include "stages/files/publication.h"
#include "stages/output/formats/npy_file.h"
#include "stages/output/formats/npy_header.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

constexpr std::uint64_t kHeader = 192;  // bytes of a .npy header, for any shape

struct TapOptions {
  std::string path;
  std::vector<std::string> files;
  int limit = 10;
  bool overwrite = false;

  void describe(Schema& s) {
    s.field("path", path, "folder for the written files; created if missing; required");
    s.field("files", files,
            "patterns for the recordings that are written (\"dog/*.wav\", \"**/a?.flac\"); a "
            "pattern without '/' is compared with the last part of a path; not set: all");
    s.field("limit", limit,
            "largest number of recordings that are written; the first in the order of the list are "
            "taken")
        .range(1, 1000);
    s.field("overwrite", overwrite,
            "replaces existing files; false: the run does not start if one exists");
  }
};

Value number(std::int64_t n) { return Value::scalar(std::to_string(n)); }
Value text(std::string t) { return Value::scalar(std::move(t), {}, true); }
Value flag(bool b) { return Value::scalar(b ? "true" : "false"); }

Value facts_of(const WindowGrid& g) {
  Value out = Value::map({});
  out.set("length", number(g.length));
  out.set("long_length", number(g.long_length));
  out.set("long_hop", number(g.long_hop));
  out.set("short_hop", number(g.short_hop));
  out.set("per_long", number(g.per_long));
  return out;
}

Value facts_of(const FeatureInfo& info, const MelPart& part) {
  Value out = Value::map({});
  out.set("name", text(info.name));
  out.set("unit", text(info.unit));
  out.set("axis", text(info.axis));
  out.set("preset", text(info.preset));
  out.set("sample_rate", number(info.sample_rate));
  out.set("n_fft", number(info.n_fft));
  out.set("hop", number(info.hop));
  out.set("dtype", text(to_text(part.type)));
  // Until the whole recording is there, values are not final, and there may be more columns.
  out.set("final", flag(part.pending == nullptr));
  std::vector<Value> hz;
  for (const double f : info.column_hz)
    hz.push_back(std::isfinite(f) ? Value::scalar(number_text(f)) : Value{});
  out.set("column_hz", Value::list(std::move(hz)));
  return out;
}

// The data and facts that are saved of one recording.
struct Tapped {
  struct Piece {
    std::int64_t start = 0, count = 0;
    std::int64_t first_row = 0, rows = 0;  // of windows
  };

  std::mutex mutex;
  std::unique_ptr<PartFile> data;
  NumberType type = NumberType::float32;
  std::vector<std::uint64_t> shape_behind;  // shape of one unit of `start`
  Value facts = Value::map({});
  std::vector<Piece> pieces;
  FileAudio audio;
  bool has_audio = false, has_last = false;

  [[nodiscard]] std::uint64_t width() const {
    std::uint64_t out = size_of(type);
    for (const std::uint64_t n : shape_behind) out *= n;
    return out;
  }
  void add(const Piece& piece, const void* bytes) {
    data->put(bytes, static_cast<std::size_t>(piece.count) * width(),
              kHeader + static_cast<std::uint64_t>(piece.start) * width());
    pieces.push_back(piece);
  }
  void note(const FileAudio& now) {
    has_audio = true;
    if (now.frames >= audio.frames) audio = now;
  }
};

class Tap final : public ItemStage, public PassesAny, public RefusesUpdate {
 public:
  explicit Tap(TapOptions options)
      : ItemStage({.kind = StageKind::sink,
                   .in = port_type<AnyPayload>(),
                   .order = BlockOrder::any,
                   .takes_sub_items = false}),
        options_(std::move(options)) {
    while (options_.path.size() > 1 && options_.path.ends_with('/')) options_.path.pop_back();
  }

  static std::vector<PortType> ports() { return any_payload_ports(); }
  void set_port(PortType port) override { port_ = port; }
  [[nodiscard]] StageResources resources() const override {
    return {.files_made = {options_.path}};
  }
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    if (options_.path.empty())
      check.error(
          "",
          "'path' is missing; write path: FOLDER, the folder for the files that this node makes");
    return given;
  }

  [[nodiscard]] std::string why_no_update() const override {
    return "tap: cannot be updated; use melflow run, with overwrite: true where the files are "
           "there "
           "already";
  }
  void start(RunContext& run) override {
    check_update(run);
    run_ = &run;
    choose(run);
    std::error_code error;
    std::filesystem::create_directories(options_.path, error);
    if (error)
      throw RunError(
          fmt::format("{}: cannot be made: {}; write elsewhere (option path of the tap node)",
                      options_.path, error.message()));
    run.ledger.subscribe([this](std::size_t index, Outcome outcome) { close(index, outcome); });
  }

  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&,
                       ItemContext& context) override {
    for (std::size_t part = 0; part < item.origins->size(); ++part) {
      const auto tapped = tapped_.find(context.origin(part).stream->index());
      if (tapped == tapped_.end()) continue;
      const std::lock_guard lock(tapped->second->mutex);
      take(item, part, tapped->first, *tapped->second);
      tapped->second->has_last |= context.origin(part).last;
    }
    return Emission{};
  }

  void finish(RunContext&, Ending) override {
    tapped_.clear();
    if (!failure_.empty()) throw RunError(failure_);
  }

  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    return {{"path", text(options_.path)}, {"files", number(written_)}};
  }

 private:
  // Begins with a number, so that no two recordings share a name, and no name leads elsewhere.
  [[nodiscard]] std::string target(std::size_t index, const char* ending) const {
    constexpr std::size_t kLongest = 200;
    const std::string name = run_->source.name(index);
    const std::string last = name.substr(name.rfind('/') + 1);
    return fmt::format("{}/{:06}-{}.{}", options_.path, index, last.substr(0, kLongest), ending);
  }

  void choose(const RunContext& run) {
    std::vector<Glob> globs(options_.files.begin(), options_.files.end());
    const auto limit = static_cast<std::size_t>(options_.limit);
    for (std::size_t i = 0; i < run.source.count() && tapped_.size() < limit; ++i) {
      const std::string name = run.source.name(i);
      if (!globs.empty() &&
          std::none_of(globs.begin(), globs.end(), [&](const Glob& g) { return g.matches(name); }))
        continue;
      tapped_[i] = std::make_unique<Tapped>();
      for (const char* ending : {"npy", "json"})
        if (!options_.overwrite && has_name(target(i, ending)))
          throw RunError(
              fmt::format("{}: exists already; remove it, write elsewhere, or set "
                          "overwrite: true in the tap node",
                          target(i, ending)));
    }
    if (tapped_.empty() && run.source.count() > 0)
      run.warn("tap: no recording matches its patterns (files), so that nothing is written");
  }

  [[nodiscard]] std::unique_ptr<PartFile> file(std::size_t index, const char* ending) const {
    return std::make_unique<PartFile>(target(index, ending), "tap",
                                      options_.overwrite ? Existing::replace : Existing::refuse);
  }

  void take(const Item& item, std::size_t part, std::size_t index, Tapped& to) {
    if (port_ == port_type<Waveform>()) {
      const Waveform& w = *payload_of<Waveform>(item);
      to.facts.set("sample_rate", number(w.sample_rate));
      to.note(w.file);
      take_samples(w.samples, {w.start, w.samples.count}, index, to);
    } else if (port_ == port_type<Windows>()) {
      take_windows(*payload_of<Windows>(item), index, to);
    } else if (port_ == port_type<Batch>()) {
      take_windows(*payload_of<Batch>(item)->parts[part], index, to);
    } else if (port_ == port_type<MelBatch>()) {
      const MelBatch& batch = *payload_of<MelBatch>(item);
      if (batch.parts[part]) take_rows(*batch.parts[part], *batch.info, index, to);
    } else if (port_ == port_type<FileRef>()) {
      const FileRef& f = *payload_of<FileRef>(item);
      to.facts.set("path", text(f.path));
      to.facts.set("size", number(static_cast<std::int64_t>(f.size)));
      to.facts.set("problem", text(std::string(f.problem)));
      to.facts.set("is_stored", flag(f.stored != nullptr));
    } else {
      const RawBytes& b = *payload_of<RawBytes>(item);
      to.facts.set("size", number(static_cast<std::int64_t>(b.size)));
      to.facts.set("is_whole", flag(static_cast<bool>(b.data)));
    }
  }

  void take_windows(const Windows& w, std::size_t index, Tapped& to) {
    to.facts.set("sample_rate", number(w.sample_rate));
    if (w.grid) to.facts.set("windows", facts_of(*w.grid));
    to.note(w.file);
    take_samples(w.samples, {w.begin, w.samples.count, w.first_row, w.row_count}, index, to);
  }

  void take_samples(const Samples& samples, const Tapped::Piece& piece, std::size_t index,
                    Tapped& to) {
    to.type = samples.type == SampleType::int16 ? NumberType::int16 : NumberType::float32;
    if (!to.data) to.data = file(index, "npy");
    to.add(piece, samples.data);
  }

  void take_rows(const MelPart& rows, const FeatureInfo& info, std::size_t index, Tapped& to) {
    if (!to.data) {
      to.data = file(index, "npy");
      to.type = rows.type;
      if (!rows.pending && info.frames > 0)
        to.shape_behind.push_back(static_cast<std::uint64_t>(info.frames));
      to.shape_behind.push_back(
          static_cast<std::uint64_t>(rows.pending ? rows.pending_columns : info.columns));
      to.facts.set("rows", facts_of(info, rows));
    }
    to.note(rows.file);
    if (rows.row_count > 0) to.add({rows.first_row, rows.row_count}, rows.data->data());
  }

  // Listens to the ledger: called from any thread, and must not throw.
  void close(std::size_t index, Outcome outcome) {
    const auto tapped = tapped_.find(index);
    if (tapped == tapped_.end() || outcome == Outcome::not_run) return;
    try {
      write(index, *tapped->second);
      written_.fetch_add(1);
    } catch (const std::exception& e) {
      const std::lock_guard lock(mutex_);
      if (failure_.empty()) failure_ = e.what();
    }
  }

  void write(std::size_t index, Tapped& t) const {
    std::sort(t.pieces.begin(), t.pieces.end(),
              [](const auto& a, const auto& b) { return a.start < b.start; });
    std::vector<std::uint64_t> shape{0};
    std::vector<Value> blocks;
    for (const Tapped::Piece& p : t.pieces) {
      shape[0] = std::max(shape[0], static_cast<std::uint64_t>(p.start + p.count));
      Value& block = blocks.emplace_back(Value::map({}));
      block.set("start", number(p.start));
      block.set("count", number(p.count));
      if (t.facts.find("windows") == nullptr) continue;
      block.set("first_row", number(p.first_row));
      block.set("rows", number(p.rows));
    }
    shape.insert(shape.end(), t.shape_behind.begin(), t.shape_behind.end());
    const Ledger::Entry entry = run_->ledger.entry(index);
    Value facts = Value::map({});
    facts.set("name", text(run_->source.name(index)));
    facts.set("payload", text(port_.name));
    facts.set("outcome", text(to_text(entry.outcome)));
    facts.set("stage", text(entry.stage));
    facts.set("reason", text(entry.reason));
    facts.set("complete", flag(t.has_last));
    if (t.has_audio) {
      Value audio = Value::map({});
      audio.set("sample_rate", number(t.audio.sample_rate));
      audio.set("frames", number(t.audio.frames));
      audio.set("frames_by_header", number(t.audio.total));
      facts.set("file", std::move(audio));
    }
    for (const Value::Entry& e : t.facts.entries()) facts.set(e.key, e.value);
    if (t.data) facts.set("blocks", Value::list(std::move(blocks)));
    facts.set("feature_settings", feature_settings());
    std::vector<PartFile*> files;
    if (t.data) {
      const std::string header = npy_header(NpyFile::descr(t.type), shape, kHeader);
      t.data->put(header.data(), header.size(), 0);
      files.push_back(t.data.get());
    }
    const std::unique_ptr<PartFile> json = file(index, "json");
    const std::string document = to_json(facts) + "\n";
    json->put(document.data(), document.size(), 0);
    files.push_back(json.get());
    Publication::publish(json->target(), files, false);
    t.data.reset();
  }

  TapOptions options_;
  PortType port_;
  const RunContext* run_ = nullptr;
  std::map<std::size_t, std::unique_ptr<Tapped>> tapped_;  // of the chosen ones; fixed in the run
  std::atomic<std::int64_t> written_{0};
  std::mutex mutex_;
  std::string failure_;
};

const RegisterStage<Tap, TapOptions> register_tap{
    "tap",
    "Writes what arrives for a few recordings to files to look at: samples or rows as .npy, all "
    "else as .json."};

}  // namespace
}  // namespace melflow
