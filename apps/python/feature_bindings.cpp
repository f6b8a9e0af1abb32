// Bindings that compute rows of samples in memory.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "apps/json_value.h"
#include "apps/python/arrays.h"
#include "apps/python/process.h"
#include "apps/python/stage_chain.h"
#include "apps/python/text_caster.h"
#include "apps/report/report_json.h"
#include "apps/verbs/parity_options.h"
#include "pipeline/base/problem.h"
#include "stages/features/mel_stage_options.h"
#include "stages/front_ends.h"
#include "stages/sample_scale.h"

using namespace melflow;

namespace {

using Array = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Samples samples_of(const Array& array) {
  Samples out;
  out.data = static_cast<const std::byte*>(array.data());
  out.count = static_cast<std::int64_t>(array.shape(0));
  if (array.dtype() == nb::dtype<std::int16_t>())
    out.type = SampleType::int16;
  else if (array.dtype() == nb::dtype<float>())
    out.type = SampleType::float32;
  else
    throw std::invalid_argument("samples are float32 (1 is full scale) or int16");
  return out;
}

nb::object array_of(const StageChain& chain, StageChain::Rows rows) {
  std::vector<std::size_t> shape{static_cast<std::size_t>(rows.count)};
  for (const std::size_t n : chain.row_shape()) shape.push_back(n);
  auto owner = std::make_unique<std::vector<std::byte>>(std::move(rows.values));
  void* data = owner->data();
  return array(std::move(owner), data, shape, dtype_of(chain.type()));
}

// The rows, the warning about them with its node before it, or "", and the file's own sample rate.
nb::tuple rows_and_warning(const StageChain& chain, StageChain::Rows rows) {
  const std::string warning = rows.entry.reason.empty()
                                  ? std::string()
                                  : fmt::format("{}: {}", rows.entry.stage, rows.entry.reason);
  const int file_rate = rows.file_rate;
  return nb::make_tuple(array_of(chain, std::move(rows)), warning, file_rate);
}

nb::tuple rows_of(const StageChain& chain, const Array& samples, int sample_rate) {
  const Samples in = samples_of(samples);
  if (in.count == 0) throw std::invalid_argument("there are no samples");
  StageChain::Rows rows;
  {
    const WithoutLock free;
    rows = chain.rows(in, sample_rate);
  }
  return rows_and_warning(chain, std::move(rows));
}

nb::tuple rows_of_file(const StageChain& chain, const std::string& path) {
  StageChain::Rows rows;
  {
    const WithoutLock free;
    rows = chain.rows(path);
  }
  return rows_and_warning(chain, std::move(rows));
}

// Returns the stage that has the preset.
std::string preset_stage(const std::string& name) {
  const FrontEnd* of = find_front_end(name);
  return of != nullptr && of->sample_rate_of("samples") > 0 ? "samples" : "mel";
}

// Returns the rate [Hz] for which a preset's window and hop are meant, or None for any rate.
std::optional<int> preset_rate(const std::string& name) {
  if (preset_stage(name) == "samples") return find_front_end(name)->sample_rate_of("samples");
  MelStageOptions options;
  Schema schema;
  options.describe(schema);
  Problems problems;
  schema.read(Value::map({{"preset", Value::scalar(name), {}}}), "", problems);
  if (!problems.empty()) throw ConfigError(problems);
  const MelPreset* preset = options.preset.preset;
  if (preset == nullptr || !preset->has_fixed_times) return std::nullopt;
  return preset->options.sample_rate;
}

}  // namespace

void bind_features(nb::module_& m);
void bind_features(nb::module_& m) {
  nb::class_<StageChain>(m, "FeatureChain")
      .def(
          "__init__",
          [](StageChain* self, const std::string& name, const std::string& text,
             const std::map<std::string, std::string>& vars,
             const std::map<std::string, std::string>& sets, bool of_files) {
            LoadOptions options;
            for (const auto& [key, value] : vars) options.vars.push_back({key, value});
            for (const auto& [key, value] : sets) options.sets.push_back({key, value});
            new (self) StageChain(
                text.empty() ? load_plan(name, options) : load_plan_text(text, name, options), name,
                of_files ? StageChain::Input::files : StageChain::Input::samples);
          },
          nb::arg("name"), nb::arg("text"), nb::arg("vars"), nb::arg("sets"),
          nb::arg("of_files") = false)
      .def("rows", &rows_of, nb::arg("samples"), nb::arg("sample_rate"))
      .def("rows_of_file", &rows_of_file, nb::arg("path"))
      .def_prop_ro("fingerprint", &StageChain::fingerprint)
      .def_prop_ro("warnings", &StageChain::warnings)
      .def_prop_ro("unit", [](const StageChain& c) { return c.info().unit; })
      .def_prop_ro("band_hz", [](const StageChain& c) { return c.info().column_hz; })
      .def_prop_ro("frame_seconds",
                   [](const StageChain& c) {
                     const FeatureInfo& info = c.info();
                     return info.sample_rate > 0 ? static_cast<double>(info.hop) / info.sample_rate
                                                 : 0.0;
                   })
      .def_prop_ro("name", [](const StageChain& c) { return c.row_name(); });
  // All options of a mel stage that has these, both as JSON.
  m.def(
      "mel_settings",
      [](const std::string& options, const std::string& where) {
        return json_text(mel_settings(value_of(nlohmann::ordered_json::parse(options)), where));
      },
      nb::arg("options"), nb::arg("where"));
  m.def("scale_remark", &scale_remark, nb::arg("peak"));
  m.def("preset_rate", &preset_rate, nb::arg("name"));
  m.def("preset_stage", &preset_stage, nb::arg("name"));
}
