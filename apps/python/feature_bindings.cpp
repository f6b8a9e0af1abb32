// Bindings that compute rows of samples in memory.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/calls/stage_chain.h"
#include "apps/json_value.h"
#include "apps/python/arrays.h"
#include "apps/python/process.h"
#include "apps/python/sample_array.h"
#include "apps/python/text_caster.h"
#include "apps/report/report_json.h"
#include "apps/verbs/parity_options.h"
#include "pipeline/base/problem.h"
#include "stages/features/mel_stage_options.h"
#include "stages/front_ends.h"
#include "stages/sample_scale.h"

using namespace melflow;

namespace {

using Array = SampleArray;

nb::object array_of(const StageChain& chain, StageChain::Rows rows) {
  std::vector<std::size_t> shape{static_cast<std::size_t>(rows.count)};
  for (const std::size_t n : chain.row_shape()) shape.push_back(n);
  auto owner = std::make_unique<std::vector<std::byte>>(std::move(rows.values));
  void* data = owner->data();
  return array(std::move(owner), data, shape, dtype_of(chain.type()));
}

// The warning about the rows with its node before it, or "".
std::string warning_of(const StageChain::Rows& rows) {
  return rows.entry.reason.empty() ? std::string()
                                   : fmt::format("{}: {}", rows.entry.stage, rows.entry.reason);
}

using Out = nb::ndarray<nb::c_contig, nb::device::cpu>;

// The memory of `out`, [rows, frames, columns] as the chain's.
RowSpace space_of(const StageChain& chain, const Out& out) {
  const std::vector<std::size_t> shape = chain.row_shape();
  bool is_alike = out.ndim() == shape.size() + 1 && out.dtype() == dtype_of(chain.type());
  for (std::size_t i = 0; is_alike && i < shape.size(); ++i)
    is_alike = out.shape(i + 1) == shape[i];
  if (!is_alike)
    throw std::invalid_argument(fmt::format("out is an array [rows{}{}] of {}",
                                            shape.empty() ? "" : ", ", fmt::join(shape, ", "),
                                            to_text(chain.type())));
  return {static_cast<std::byte*>(out.data()), static_cast<std::int64_t>(out.shape(0))};
}

// Computes the rows of what is given. Returns them, or with `out` their number; the warning about
// them, or ""; and the file's own sample rate.
template <class... Given>
nb::tuple rows_of(const StageChain& chain, const RowCall& call, const std::optional<Out>& out,
                  const Given&... given) {
  const RowSpace space = out ? space_of(chain, *out) : RowSpace{};
  StageChain::Rows rows;
  {
    const WithoutLock free;
    rows = chain.rows(given..., call, space);
  }
  const std::string warning = warning_of(rows);
  const int file_rate = rows.file_rate;
  if (out) return nb::make_tuple(rows.count, warning, file_rate);
  return nb::make_tuple(array_of(chain, std::move(rows)), warning, file_rate);
}

// Bytes that a Python object has, which cannot change their size meanwhile.
class HeldBytes {
 public:
  explicit HeldBytes(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;
  ~HeldBytes() { PyBuffer_Release(&view_); }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

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
  // `deadline` [s] from now.
  nb::class_<RowCall>(m, "RowCall")
      .def(
          "__init__",
          [](RowCall* self, std::optional<double> seconds, std::optional<std::int64_t> samples,
             std::optional<std::int64_t> rows, std::optional<double> deadline) {
            new (self) RowCall;
            self->most_seconds = seconds.value_or(self->most_seconds);
            self->most_samples = samples.value_or(RowCall::kAny);
            self->most_rows = rows.value_or(RowCall::kAny);
            if (deadline) self->set_deadline(*deadline);
          },
          nb::arg("seconds").none(), nb::arg("samples").none(), nb::arg("rows").none(),
          nb::arg("deadline").none())
      .def("end", [](RowCall& call) { call.is_ended = true; });
  nb::class_<StageChain>(m, "FeatureChain")
      .def(
          "__init__",
          [](StageChain* self, const std::string& name, const std::string& text,
             const std::map<std::string, std::string>& vars,
             const std::map<std::string, std::string>& sets) {
            LoadOptions options;
            for (const auto& [key, value] : vars) options.vars.push_back({key, value});
            for (const auto& [key, value] : sets) options.sets.push_back({key, value});
            new (self) StageChain(
                text.empty() ? load_plan(name, options) : load_plan_text(text, name, options), name,
                StageChain::Input::given);
          },
          nb::arg("name"), nb::arg("text"), nb::arg("vars"), nb::arg("sets"))
      .def(
          "rows_of_samples",
          [](const StageChain& chain, const RowCall& call, const std::optional<Out>& out,
             const Array& samples, int sample_rate) {
            const Samples in = samples_of(samples);
            if (in.count == 0) throw std::invalid_argument("there are no samples");
            return rows_of(chain, call, out, in, sample_rate);
          },
          nb::arg("call"), nb::arg("out").none(), nb::arg("samples"), nb::arg("sample_rate"))
      .def(
          "rows_of_bytes",
          [](const StageChain& chain, const RowCall& call, const std::optional<Out>& out,
             nb::handle file) {
            const HeldBytes held(file);
            return rows_of(chain, call, out, held.bytes());
          },
          nb::arg("call"), nb::arg("out").none(), nb::arg("file"))
      .def("rows_of_file", &rows_of<std::string>, nb::arg("call"), nb::arg("out").none(),
           nb::arg("path"))
      .def_prop_ro("fingerprint", &StageChain::fingerprint)
      .def_prop_ro("settings", &StageChain::settings)
      .def_prop_ro("warnings", &StageChain::warnings)
      .def_prop_ro("unit", [](const StageChain& c) { return c.info().unit; })
      .def_prop_ro("band_hz", [](const StageChain& c) { return c.info().column_hz; })
      .def_prop_ro("frame_seconds",
                   [](const StageChain& c) {
                     const FeatureInfo& info = c.info();
                     return info.sample_rate > 0 ? static_cast<double>(info.hop) / info.sample_rate
                                                 : 0.0;
                   })
      .def_prop_ro("row_shape", &StageChain::row_shape)
      .def_prop_ro("dtype", [](const StageChain& c) { return std::string(to_text(c.type())); })
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
