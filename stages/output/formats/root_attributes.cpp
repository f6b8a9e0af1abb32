#include "stages/output/formats/root_attributes.h"

#include <type_traits>

#include "pipeline/base/version.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "stages/output/formats/index_hash.h"

namespace melflow {
namespace {

using X = OutputIndex;
using Type = RootAttribute::Type;

template <class T>
constexpr Type type_of() {
  if constexpr (std::is_same_v<T, bool>) return Type::flag;
  if constexpr (std::is_same_v<T, std::int32_t>) return Type::int32;
  if constexpr (std::is_same_v<T, std::int64_t>) return Type::int64;
  if constexpr (std::is_same_v<T, std::string>) return Type::text;
  if constexpr (std::is_same_v<T, Value>) return Type::json;
}

// Makes an attribute whose value is `of(index)`.
template <class Of>
RootAttribute attribute(const char* name, Of of, const char* what) {
  using T = std::remove_cvref_t<std::invoke_result_t<Of, const X&>>;
  return {name, type_of<T>(), what,
          [of](const X& x) { return RootValue(std::in_place_type<T>, std::invoke(of, x)); }};
}

RootAttribute files_with(FeatureData::Status status, const char* what) {
  const auto s = static_cast<std::size_t>(status);
  return attribute(
      FeatureData::kStatusNames[s], [s](const X& x) { return x.files_by_status[s]; }, what);
}

RootAttribute only(const char* where, bool (*is_wanted)(const X&), RootAttribute attribute) {
  attribute.only = where;
  attribute.is_wanted = is_wanted;
  return attribute;
}

RootAttribute lately(RootAttribute attribute) {
  attribute.is_in_all = false;
  return attribute;
}

Value groups_of(const FeatureInfo& info) {
  std::vector<Value> out;
  for (const ColumnGroup& g : info.groups) {
    Value group = Value::map({});
    group.set("node", Value::scalar(g.node, {}, true));
    group.set("rows", Value::scalar(g.name));
    group.set("unit", Value::scalar(g.unit, {}, true));
    group.set("columns", Value::scalar(std::to_string(g.columns)));
    out.push_back(std::move(group));
  }
  return Value::list(std::move(out));
}

Value sources_of(const X& x) {
  std::vector<Value> out;
  for (const CorpusSource& s : x.manifest.sources()) {
    Value source = Value::map({});
    source.set("name", Value::scalar(s.name, {}, true));
    source.set("root", Value::scalar(s.root, {}, true));
    out.push_back(std::move(source));
  }
  return Value::list(std::move(out));
}

std::vector<RootAttribute> table() {
  using Status = FeatureData::Status;
  static_assert(FeatureData::kFormat == 2, "the description of `format`");
  return {
      attribute(
          "melflow_version", [](const X&) { return std::string(kVersion); },
          "the program that wrote the file"),
      attribute(
          "format", [](const X&) { return static_cast<std::int32_t>(FeatureData::kFormat); },
          "2: this description"),
      attribute(
          "complete", [](const X& x) { return x.complete; },
          "1; 0 in a `.part` file left by a run that was stopped"),
      attribute(
          "rows", [](const X& x) { return x.info.name; },
          "the name of the dataset of rows: `mel`, `spectrogram`, `mfcc`, `features`, "
          "`waveform` or `windows`"),
      attribute(
          "found", [](const X& x) { return static_cast<std::int64_t>(x.files()); },
          "files that were listed: ok + skipped + failed + not_run"),
      files_with(Status::ok, "files whose rows are all there"),
      files_with(Status::skipped,
                 "files that there was nothing to do for, such as one shorter than a window"),
      files_with(Status::failed, "files that could not be read or processed"),
      files_with(Status::not_run, "files that a run did not come to before it was stopped"),
      attribute(
          "sample_rate", [](const X& x) { return std::int32_t{x.info.sample_rate}; },
          "of the frames [Hz]; 0: of each recording its own"),
      attribute(
          "n_fft", [](const X& x) { return std::int32_t{x.info.n_fft}; },
          "samples per transform; 0: there is none"),
      attribute(
          "hop_length", [](const X& x) { return std::int32_t{x.info.hop}; },
          "samples from frame to frame"),
      only(
          "a preset", [](const X& x) { return !x.info.preset.empty(); },
          attribute(
              "preset", [](const X& x) { return x.info.preset; },
              "the preset and what was changed of it, such as `whisper, with n_mels changed`")),
      only(
          "`concat`", [](const X& x) { return !x.info.groups.empty(); },
          attribute(
              "column_groups", [](const X& x) { return groups_of(x.info); },
              "which columns of a row (or of a frame in it) come from which node, in "
              "their order: a list, `{\"node\": \"mel\", \"rows\": \"mel\", "
              "\"unit\": \"dB\", \"columns\": 80}`")),
      attribute(
          "backend", [](const X& x) { return x.info.computed_by->backend; },
          "what computed the rows, such as `cpu`"),
      attribute(
          "instruction_set", [](const X& x) { return x.info.computed_by->instruction_set; },
          "what the kernels ran on, such as `avx2`; equal bytes are promised for equal sets, "
          "and for avx2 and avx512 unless FFTW does the transform"),
      only(
          "`precision: double`, or an `n_fft` that is odd, above 16,384 or has a prime factor "
          "from 17 on",
          [](const X& x) { return !x.info.computed_by->transform.empty(); },
          lately(attribute(
              "transform", [](const X& x) { return x.info.computed_by->transform; },
              "what did the Fourier transform on the CPU, `fftw` or `melflow`, whose last bits "
              "differ; which one depends on the build of melflow"))),
      attribute(
          "feature_fingerprint", [](const X& x) { return feature_fingerprint(x.feature_settings); },
          "XXH3-128 of `feature_settings`, 32 hexadecimal digits: equal for equal "
          "features"),
      attribute(
          "feature_settings", [](const X& x) { return x.feature_settings; },
          "what can change a value of the rows, in canonical form "
          "([features.md](features.md)): a list of the stages on the way, `{\"stage\": "
          "\"mel\", ...}`"),
      attribute(
          "config", [](const X& x) { return x.run.settings.config; },
          "the whole configuration, all defaults filled in, with variables in place of secrets and "
          "`$$` for `$`; a `.npy` file that an option names [with its numbers](#numbers-of-files); "
          "`auto` is kept where it depends on the machine (`concurrency`, `queue`), "
          "the report of a run has the numbers"),
      only(
          "several sources", [](const X& x) { return !x.manifest.sources().empty(); },
          lately(attribute(kSources, sources_of,
                           "the sources, in their order: a list, `{\"name\": \"train\", "
                           "\"root\": \"/data/a\"}`. The paths of a source's files begin with "
                           "its name and a slash; what follows is below its root, or absolute"))),
      only(
          "`split_files: true`", [](const X& x) { return x.is_of_several; },
          attribute("run_hash", &X::run_hash,
                    "16 hexadecimal digits: equal in the files of one run, whatever "
                    "their splits")),
      lately(attribute(kIndexHash, &X::hash,
                       "XXH3 (64 bits) of what the output says of its files and of "
                       "itself, 16 hexadecimal digits; `melflow verify` compares")),
  };
}

}  // namespace

const std::vector<RootAttribute>& root_attributes() {
  static const std::vector<RootAttribute> all = table();
  return all;
}

}  // namespace melflow
