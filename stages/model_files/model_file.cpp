#include "stages/model_files/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "pipeline/base/text.h"
#include "stages/containers/archive.h"
#include "stages/front_ends.h"
#include "stages/model_files/archive_member.h"
#include "stages/model_files/class_reader.h"
#include "stages/model_files/front_end_class.h"
#include "stages/model_files/model_formats.h"
#include "stages/model_files/model_text.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;

// Files that a folder of a model may have, the first that is there counts.
constexpr const char* kFileNames[] = {"processor_config.json", "preprocessor_config.json",
                                      "model_config.yaml",     "hyperparams.yaml",
                                      "config.yaml",           "train.yaml",
                                      "feature_config.yaml"};
constexpr const char* kConfigOfNemo = "model_config.yaml";

std::string hash_of(const std::string& bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("xxh3 {:016x}{:016x}", h.high64, h.low64);
}

// "MelSpectrogram(16000, n_fft=400)"
bool is_call(const std::string& text) {
  const std::size_t open = text.find('(');
  return open != text.npos && open > 0 && text.ends_with(')') && text.find_first_of("/ ") >= open;
}

const Value* named(const Value& preset) {
  return preset.is_map() ? preset.find(kModelFileKey) : &preset;
}

// The class and its arguments in a file, by the first library that knows it.
std::optional<ModelInstance> instance_of(const std::string& bytes, const std::string& path,
                                         FileSurroundings& beside, Problems& problems) {
  if (auto out = kaldi_instance(bytes, path, beside, problems)) return out;
  const Value root = read_model_text(bytes, path, problems);
  if (!problems.empty()) return std::nullopt;
  for (const auto& find : {lhotse_instance, nemo_instance, speechbrain_instance, espnet_instance,
                           wenet_instance, transformers_instance})
    if (auto out = find(root, beside, problems)) return out;
  return std::nullopt;
}

constexpr const char* kKnown =
    "known are preprocessor_config.json and processor_config.json of Transformers, "
    "model_config.yaml and .nemo of NeMo, hyperparams.yaml of SpeechBrain, config.yaml of ESPnet "
    "and FunASR, configurations of Lhotse, WeNet and WeSpeaker, Kaldi's fbank.conf and mfcc.conf, "
    "and calls of torchaudio and librosa";

class ModelFile {
 public:
  explicit ModelFile(const Value& preset) : file_(*named(preset)) {
    if (preset.is_map()) take_given(preset);
  }

  ModelFrontEnd read() {
    const std::string& text = file_.text();
    std::error_code error;
    std::optional<ModelInstance> instance;
    if (is_call(text)) {
      bytes_ = text;
      instance = call_instance(text, file_.mark(), problems_);
    } else if (fs::is_directory(text, error))
      instance = of_folder(text);
    else
      instance = of_file(text);
    check();
    if (!instance)
      throw ConfigError(fmt::format("{}: this is no file of a model whose front end is known here; "
                                    "{}",
                                    excerpt(text), kKnown),
                        file_.mark());
    ModelFrontEnd out = read_class(*instance, assumptions_, problems_);
    check();
    out.file = text;
    out.hash = hash_of(bytes_);
    return out;
  }

 private:
  void take_given(const Value& preset) {
    for (const Value::Entry& e : preset.entries()) {
      if (e.key == kModelFileKey) continue;
      if (e.key != kIgnoredKey) {
        assumptions_.keys.entries().push_back(e);
        continue;
      }
      for (const Value& name : e.value.is_list() ? e.value.items() : std::vector{e.value})
        assumptions_.left_out.push_back(name.text());
    }
  }

  void check() const {
    if (!problems_.empty()) throw ConfigError(problems_);
  }

  std::optional<ModelInstance> of_folder(const std::string& folder) {
    for (const char* name : kFileNames) {
      const fs::path path = fs::path(folder) / name;
      std::error_code error;
      if (!fs::exists(path, error)) continue;
      if (auto instance = of_file(path.string())) return instance;
      check();
    }
    throw ConfigError(fmt::format("{}: this folder has none of the files {} with a front end",
                                  excerpt(folder), fmt::join(kFileNames, ", ")),
                      file_.mark());
  }

  std::optional<ModelInstance> of_file(const std::string& path) {
    bytes_ =
        path.ends_with(".nemo") || is_archive_name(path) ? config_in(path) : read_model_bytes(path);
    FileSurroundings beside{fs::path(path).parent_path().string(), &assumptions_.keys, {}};
    std::optional<ModelInstance> out = instance_of(bytes_, path, beside, problems_);
    bytes_ += beside.read_too;
    return out;
  }

  // The configuration within an archive of NeMo, of which nothing is extracted.
  [[nodiscard]] std::string config_in(const std::string& path) const {
    try {
      if (auto bytes = archive_member(path, kConfigOfNemo)) return *bytes;
    } catch (const RunError& error) {
      throw ConfigError(error.what(), file_.mark());
    }
    throw ConfigError(
        fmt::format("{}: there is no {} in this archive", excerpt(path), kConfigOfNemo),
        file_.mark());
  }

  const Value& file_;
  ModelAssumptions assumptions_;
  Problems problems_;
  std::string bytes_;
};

}  // namespace

bool is_model_file(const Value& preset) {
  const Value* file = named(preset);
  if (file == nullptr || !file->is_scalar() || file->text().empty()) return false;
  if (preset.is_map()) return true;
  const std::string& text = file->text();
  if (text == "none" || find_front_end(text) != nullptr) return false;
  std::error_code error;
  return is_call(text) || text.find('/') != text.npos || fs::exists(text, error);
}

std::string shadowed_folder(const Value& preset) {
  if (!preset.is_scalar() || find_front_end(preset.text()) == nullptr ||
      !is_model_path("./" + preset.text()))
    return {};
  return fmt::format(
      "{0} is what melflow comes with, and the folder of this name is not read; write ./{0} for "
      "the "
      "folder",
      preset.text());
}

bool is_model_path(const std::string& path) {
  if (is_call(path)) return true;
  if (find_front_end(path) != nullptr) return false;
  const auto is_named = [](const std::string& name) {
    return name == kConfigOfNemo || name == "hyperparams.yaml" || name.ends_with(".nemo") ||
           name.ends_with("processor_config.json") ||
           (name.ends_with(".conf") &&
            (name.find("fbank") != name.npos || name.find("mfcc") != name.npos));
  };
  const auto is_known = [&](const fs::path& file) {
    const std::string name = file.filename().string(), extension = file.extension().string();
    if (is_named(name)) return true;
    if (extension != ".json" && extension != ".yaml" && extension != ".yml") return false;
    try {
      Problems problems;
      const Value none = Value::map({});
      FileSurroundings beside{file.parent_path().string(), &none, {}};
      return instance_of(read_model_bytes(file.string()), file.string(), beside, problems)
          .has_value();
    } catch (const ConfigError&) {
      return false;  // too long for one, or no file
    }
  };
  std::error_code error;
  if (fs::is_regular_file(path, error)) return is_known(path);
  return fs::is_directory(path, error) &&
         std::any_of(std::begin(kFileNames), std::end(kFileNames), [&](const char* name) {
           return fs::is_regular_file(fs::path(path) / name, error) &&
                  is_known(fs::path(path) / name);
         });
}

ModelFrontEnd read_model_file(const Value& preset) { return ModelFile(preset).read(); }

std::span<const FrontEndFamily* const> front_end_families() {
  static constexpr const FrontEndFamily* kAll[] = {
      &kTransformers, &kNemo,   &kSpeechBrain, &kLhotse,     &kKaldi,
      &kEspnet,       &kFunasr, &kWenet,       &kTorchaudio, &kLibrosa};
  return kAll;
}

}  // namespace melflow
