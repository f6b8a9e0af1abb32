// Bindings for pipelines as objects, and for pictures.
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/json_value.h"
#include "apps/picture/spectrogram.h"
#include "apps/python/arrays.h"
#include "apps/python/process.h"
#include "apps/python/text_caster.h"
#include "apps/report/html_report.h"
#include "apps/report/report_json.h"
#include "apps/usage_errors.h"
#include "apps/verbs/plan_arguments.h"
#include "config/document.h"
#include "config/reference.h"
#include "config/top_level.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"

using namespace melflow;

namespace {

// Parses the YAML of a pipeline without checking its meaning: a file, or a text with a name for
// messages.
std::string parse(const std::string& name, const std::string& text) {
  const Document document = text.empty()
                                ? read_document(read_configuration(find_pipeline(name)), name)
                                : read_document(text, name);
  if (!document.problems.empty()) throw ConfigError(document.problems);
  return json_text(json_of(document.root));
}

// `stage`: "" for the keys of a pipeline.
std::string option_advice(const std::string& stage, const std::string& option,
                          const std::string& given) {
  if (!stage.empty())
    return advice_on(*Registry::global().find(stage), option, Value::scalar(given));
  TopLevelOptions top;
  Schema schema;
  top.describe(schema);
  return advice_on(option, {&schema}, Value::scalar(given));
}

using Rows = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::string picture(const Rows& rows, const std::string& unit, double frame_seconds,
                    const std::vector<double>& band_hz, const std::string& title) {
  Spectrogram s;
  s.frames = rows.shape(0);
  s.bands = rows.shape(1);
  s.values.assign(rows.data(), rows.data() + rows.size());
  const Levels levels = to_levels(s.values, unit);
  s.unit = levels.unit;
  s.shown = levels.shown;
  s.frame_seconds = frame_seconds;
  if (band_hz.size() == s.bands) s.band_hz = band_hz;
  s.title = title;
  const WithoutLock free;
  return draw({s}).svg;
}

}  // namespace

void bind_graphs(nb::module_& m);
void bind_graphs(nb::module_& m) {
  m.def("schema", [] { return schema_json(); });
  m.def("stage_count", [] { return Registry::global().all().size(); });
  m.def("option_advice", &option_advice, nb::arg("stage"), nb::arg("option"), nb::arg("given"));
  m.def("stage_advice", [](const std::string& name) { return Registry::global().advice_on(name); });
  m.def("parse", &parse, nb::arg("name"), nb::arg("text"));
  m.def("picture", &picture, nb::arg("rows"), nb::arg("unit"), nb::arg("frame_seconds"),
        nb::arg("band_hz"), nb::arg("title"));
  m.def("html_report", [](const std::string& report) {
    return html_report(nlohmann::ordered_json::parse(without_escaped_bytes(report)));
  });
}
