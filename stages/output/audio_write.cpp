// audio_write: writes a sound file for every recording, or for every window of one.
//
// In: Waveform, or Windows of a grid.
//
// A file gets its name only when it is complete. Files of a recording that fails, here or in
// another branch, are removed again.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/files/files_read.h"
#include "stages/files/publication.h"
#include "stages/items.h"
#include "stages/manifest.h"
#include "stages/other_names.h"
#include "stages/output/audio_names.h"
#include "stages/output/formats/sound_writer.h"
#include "stages/run_task.h"
#include "stages/sample_unit.h"

namespace melflow {

template <>
struct EnumNames<SoundFormat> {
  static constexpr std::pair<const char*, SoundFormat> values[] = {{"wav", SoundFormat::wav},
                                                                   {"flac", SoundFormat::flac}};
};
template <>
struct EnumNames<StoredSample> {
  static constexpr std::pair<const char*, StoredSample> values[] = {
      {"int16", StoredSample::int16},
      {"int24", StoredSample::int24},
      {"float32", StoredSample::float32}};
};

namespace {

struct AudioWriteOptions {
  AudioNamesOptions names;
  SoundEncoding kind;
  bool overwrite = false, sync = false;

  void describe(Schema& s) {
    s.other_names(other_names::of_audio_write());
    s.field("path", names.folder,
            "folder below which each recording is written under its own relative path; created if "
            "missing, but not the folder that it is in; required");
    s.field("format", kind.format, "format of the written files");
    s.field(
        "dtype", kind.type,
        "sample format; float32: with format: wav only; int16, int24: floating-point samples are "
        "rounded to the nearest integer, and samples beyond full scale are clipped, with a "
        "warning");
    s.field(
        "by", names.by,
        "folders between path and the path of a recording, in the order written: [split, "
        "label], or only one of them; a file without one goes into no_split or no_label; not set: "
        "no such folders");
    s.field("overwrite", overwrite,
            "replaces existing files; false: the run does not start if one exists");
    s.field("sync", sync, "waits until the system has written each file to disk");
  }
};

struct WriteState final : StageState {
  std::unique_ptr<SoundWriter> file;
  std::int64_t clipped = 0;  // in files that are complete
};

class AudioWrite final : public ItemStage,
                         public PassesAny,
                         public KeepsMemory,
                         public RefusesUpdate {
 public:
  explicit AudioWrite(AudioWriteOptions options)
      : ItemStage({.kind = StageKind::sink, .in = kAnyPort, .takes_sub_items = false}),
        options_(std::move(options)) {
    options_.names.ending = options_.kind.ending();
    std::string& folder = options_.names.folder;
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  }

  static std::vector<PortType> ports() { return {port_type<Waveform>(), port_type<Windows>()}; }
  void set_port(PortType port) override { are_windows_ = port == port_type<Windows>(); }
  [[nodiscard]] StageResources resources() const override {
    return {.files_made = {options_.names.folder}};
  }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    if (options_.names.folder.empty())
      check.error(
          "",
          "'path' is missing; write path: FOLDER, the folder for the files that this node makes");
    if (options_.kind.format == SoundFormat::flac && options_.kind.type == StoredSample::float32)
      check.error("dtype", "FLAC has no float32; write int24, or format: wav");
    if (options_.kind.type != StoredSample::float32 && given.get(property::kSampleUnit))
      check.error("dtype", fmt::format("samples in {} go beyond full scale; write float32, with "
                                       "format: wav",
                                       given.get_or(property::kSampleUnit, "")));
    if (are_windows_ && !given.get(property::kWindowGrid))
      check.error("from",
                  "the input is not cut into windows; take from a node before segment, or give "
                  "segment a length");
    return given;
  }

  [[nodiscard]] std::size_t kept_memory(const RunContext& run, int) const override {
    return run.source.count() * sizeof(made_[0]);
  }

  [[nodiscard]] std::string why_no_update() const override {
    return "audio_write: cannot be updated; use melflow run, with overwrite: true where the files "
           "are there already";
  }
  void start(RunContext& run) override {
    check_update(run);
    names_ = std::make_unique<AudioNames>(options_.names, run);
    const std::string& folder = options_.names.folder;
    if (!std::filesystem::is_directory(folder_of(folder)))
      throw RunError(
          fmt::format("{}: there is no folder {}; make it first (mkdir -p) or write elsewhere "
                      "(option path of the audio_write node)",
                      folder, folder_of(folder)));
    if (has_name(folder) && !std::filesystem::is_directory(folder))
      throw RunError(fmt::format("{}: this is not a folder; audio_write.path takes one", folder));
    check_existing(run);
    make_folder(folder);
    made_ = std::vector<std::atomic<std::uint32_t>>(run.source.count());
    run.ledger.subscribe([this](std::size_t index, Outcome outcome) {
      if (outcome != Outcome::ok) take_back(index);
    });
  }

  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&,
                       ItemContext& context) override {
    std::unique_ptr<StageState>& of_stream = context.state();
    const std::size_t recording = context.origin().stream->index();
    if (!of_stream) {
      if (std::string why = names_->problem(recording); !why.empty())
        return ItemError::failed(std::move(why));
      of_stream = std::make_unique<WriteState>();
    }
    auto& state = static_cast<WriteState&>(*of_stream);
    auto error = are_windows_ ? write_windows(*payload_of<Windows>(item), recording, state)
                              : write_block(*payload_of<Waveform>(item), recording, state);
    if (error) return std::move(*error);
    if (context.origin().last) {
      if (state.clipped > 0)
        context.warn(fmt::format("{} samples beyond full scale are clipped", state.clipped));
      of_stream.reset();
    }
    return Emission{};
  }

  void finish(RunContext& run, Ending) override {
    if (left_ > 0)
      run.warn(fmt::format("{}: {} files of recordings that failed could not be removed",
                           options_.names.folder, left_.load()));
  }

  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    std::uint64_t files = 0;
    for (const auto& n : made_) files += n.load();
    return {{"path", Value::scalar(options_.names.folder, {}, true)},
            {"files", Value::scalar(std::to_string(files))}};
  }

 private:
  static inline const PortType kAnyPort{typeid(AudioWriteOptions), "waveform or windows"};

  std::optional<ItemError> write_block(const Waveform& in, std::size_t recording,
                                       WriteState& state) {
    if (!state.file) {
      auto error = begin(in.sample_rate, recording, -1, state);
      if (error) return error;
    }
    auto error = state.file->add(in.samples);
    if (!error && in.last) complete(recording, state);
    return error;
  }

  std::optional<ItemError> write_windows(const Windows& in, std::size_t recording,
                                         WriteState& state) {
    for (std::int64_t row = in.first_row; row < in.first_row + in.row_count; ++row) {
      auto error = begin(in.sample_rate, recording, row, state);
      if (error) return error;
      const std::int64_t from = in.grid->start(row) - in.begin;
      const std::int64_t have =
          std::clamp<std::int64_t>(in.samples.count - from, 0, in.grid->length);
      Samples window = in.samples;
      window.data += static_cast<std::size_t>(from) * size_of(window.type);
      window.count = have;
      if (have > 0) error = state.file->add(window);
      if (!error) error = state.file->add_silence(in.grid->length - have);
      if (error) return error;
      complete(recording, state);
    }
    return std::nullopt;
  }

  std::optional<ItemError> begin(int sample_rate, std::size_t recording, std::int64_t window,
                                 WriteState& state) {
    if (std::string why = options_.kind.refused(sample_rate); !why.empty())
      return ItemError::failed(std::move(why));
    const std::string target = names_->path(recording, window);
    make_folder(folder_of(target));
    state.file = std::make_unique<SoundWriter>(
        target, "audio_write", options_.overwrite ? Existing::replace : Existing::refuse,
        options_.kind, sample_rate);
    return std::nullopt;
  }

  void complete(std::size_t recording, WriteState& state) {
    state.clipped += state.file->clipped();
    state.file->publish(options_.sync);
    state.file.reset();
    made_[recording].fetch_add(1, std::memory_order_relaxed);
  }

  static void make_folder(const std::string& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw RunError(fmt::format("{}: cannot be made: {}", folder, error.message()));
  }

  // Checked before anything is written, so that a refusal leaves everything untouched.
  void check_existing(const RunContext& run) const {
    std::set<std::pair<dev_t, ino_t>> replaced;
    if (!has_name(options_.names.folder)) return;
    for (std::size_t i = 0; i < run.source.count(); ++i) {
      if (!names_->problem(i).empty()) continue;
      const std::string target = names_->path(i, are_windows_ ? 0 : -1);
      Publication::recover(target, std::array{OutputName{target}});
      if (!has_name(target)) continue;
      if (!options_.overwrite)
        throw RunError(fmt::format(
            "{}: exists already; remove it, write elsewhere, or set overwrite: true in the "
            "audio_write node",
            target));
      struct stat st {};
      if (stat(target.c_str(), &st) == 0) replaced.emplace(st.st_dev, st.st_ino);
    }
    if (!replaced.empty()) check_inputs(run, replaced);
  }

  static void check_inputs(const RunContext& run,
                           const std::set<std::pair<dev_t, ino_t>>& replaced) {
    const auto check = [&](const std::string& input) {
      struct stat st {};
      if (stat(input.c_str(), &st) == 0 && replaced.contains({st.st_dev, st.st_ino}))
        throw RunError(fmt::format(
            "{}: this file is what this run reads and would be replaced by the output; write "
            "elsewhere (option path of the audio_write node)",
            input));
    };
    for (const std::string& input : files_read(run)) check(input);
    if (const ManifestSource* listed = manifest_source(run))
      for (std::size_t i = 0; i < listed->manifest().size(); ++i) check(listed->manifest().path(i));
  }

  // Removes a recording's files. Called from any thread, and must not throw.
  void take_back(std::size_t recording) {
    const std::uint32_t made = made_[recording].exchange(0);
    for (std::uint32_t i = 0; i < made; ++i)
      if (::unlink(names_->path(recording, are_windows_ ? std::int64_t{i} : -1).c_str()) != 0 &&
          errno != ENOENT)
        left_.fetch_add(1, std::memory_order_relaxed);
  }

  AudioWriteOptions options_;
  bool are_windows_ = false;
  std::unique_ptr<AudioNames> names_;
  std::vector<std::atomic<std::uint32_t>> made_;  // number of files of each recording
  std::atomic<std::size_t> left_{0};
};

const RegisterStage<AudioWrite, AudioWriteOptions> register_audio_write{
    "audio_write",
    "Writes a sound file for every recording, or for every window (a-00000.wav, a-00001.wav, "
    "...)."};

}  // namespace
}  // namespace melflow
