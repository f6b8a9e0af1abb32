// The module melflow._melflow: what the package melflow is made of. Nothing here is called by users.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <memory>
#include <utility>

#include "apps/python/arrays.h"
#include "apps/python/batch_run.h"
#include "apps/python/list_columns.h"
#include "pipeline/problem.h"
#include "stages/version.h"

namespace nb = nanobind;
using namespace melflow;

namespace {

nb::object dict_of(const BatchRun& run, SampleBatch batch) {
  nb::dict out;
  for (std::size_t k = 0; k < batch.inputs.size(); ++k) {
    SampleBatch::Rows& rows = batch.inputs[k];
    const std::string& name = run.inputs()[k].name;
    auto owner = std::make_unique<Buffer>(std::move(rows.data));
    void* data = owner->data();
    out[name.c_str()] = array(std::move(owner), data, rows.shape, dtype_of(batch.type));
    if (rows.lengths.empty()) continue;
    const std::string length = batch.inputs.size() == 1 ? "length" : name + "_length";
    out[length.c_str()] = array(std::move(rows.lengths));
  }
  describe(run.manifest(), batch.files, out);
  for (std::int64_t& file : batch.files)
    file = static_cast<std::int64_t>(run.manifest().listed(static_cast<std::size_t>(file)));
  out["file"] = array(std::move(batch.files));
  out["offset"] = array(std::move(batch.offsets));
  return out;
}

// None: the pass is over; False: nothing yet.
nb::object take(BatchRun& run, double seconds) {
  SampleBatch batch;
  BatchQueue::State state{};
  {
    const nb::gil_scoped_release free;
    state = run.take(batch, seconds);
  }
  if (state == BatchQueue::State::ended) return nb::none();
  if (state == BatchQueue::State::nothing_yet) return nb::bool_(false);
  return dict_of(run, std::move(batch));
}

nb::dict report_of(const BatchRun& run) {
  const RunReport& r = run.report();
  nb::dict out;
  out["files"] = r.counts.found;
  out["ok"] = r.counts.ok;
  out["skipped"] = r.counts.skipped;
  out["failed"] = r.counts.failed;
  out["not_run"] = r.counts.not_run;
  out["seconds"] = r.wall_seconds;
  out["memory_peak"] = r.memory_peak;
  nb::list remarks;
  for (const Remark& m : run.remarks())
    remarks.append(nb::make_tuple(m.name, to_text(m.entry.outcome), m.entry.stage, m.entry.reason));
  out["remarks"] = remarks;
  nb::list warnings;
  for (const std::string& w : r.warnings) warnings.append(w);
  out["warnings"] = warnings;
  return out;
}

std::vector<Assignment> assignments(const std::map<std::string, std::string>& of) {
  std::vector<Assignment> out;
  for (const auto& [name, value] : of) out.push_back({name, value});
  return out;
}

}  // namespace

void bind_rows(nb::module_& m);        // row_bindings.cpp
void bind_audio_rows(nb::module_& m);  // audio_bindings.cpp
void bind_features(nb::module_& m);    // feature_bindings.cpp

NB_MODULE(_melflow, m) {
  // A worker process of a DataLoader ends with its rows still open.
  nb::set_leak_warnings(false);
  bind_rows(m);
  bind_audio_rows(m);
  bind_features(m);
  m.attr("version") = kVersion;
  nb::exception<ConfigError>(m, "ConfigError", PyExc_ValueError);
  nb::exception<RunError>(m, "RunError", PyExc_RuntimeError);

  nb::class_<BufferPool>(m, "Memory").def("__init__", [](BufferPool* self) {
    new (self) BufferPool(std::numeric_limits<std::size_t>::max());
  });
  nb::class_<BatchRun>(m, "BatchRun")
      .def(
          "__init__",
          [](BatchRun* self, std::string pipeline, std::string text,
             const std::map<std::string, std::string>& vars,
             const std::map<std::string, std::string>& sets,
             std::map<std::string, std::string> options, std::optional<int> workers,
             std::uint64_t epoch, std::uint64_t skip, std::optional<std::uint64_t> order,
             std::shared_ptr<BufferPool> pool, std::string split, std::size_t rank,
             std::size_t ranks) {
            const nb::gil_scoped_release free;
            new (self) BatchRun({std::move(pipeline), std::move(text), assignments(vars),
                                 assignments(sets), std::move(options), workers, epoch, skip, order,
                                 std::move(pool), std::move(split), rank, ranks});
          },
          nb::arg("pipeline"), nb::arg("text"), nb::arg("vars"), nb::arg("sets"),
          nb::arg("options"), nb::arg("workers").none(), nb::arg("epoch"), nb::arg("skip"),
          nb::arg("order").none(), nb::arg("memory"), nb::arg("split"), nb::arg("rank"),
          nb::arg("ranks"))
      .def("take", &take, nb::arg("seconds"))
      .def_static(
          "check",
          [](std::string pipeline, std::string text, const std::map<std::string, std::string>& vars,
             const std::map<std::string, std::string>& sets,
             std::map<std::string, std::string> options, std::optional<int> workers) {
            const nb::gil_scoped_release free;
            BatchRun::Checked is =
                BatchRun::check({std::move(pipeline), std::move(text), assignments(vars),
                                 assignments(sets), std::move(options), workers});
            return std::pair(is.has_buckets, std::move(is.warnings));
          })
      .def("stop", &BatchRun::stop, nb::call_guard<nb::gil_scoped_release>())
      .def("report", &report_of)
      .def_prop_ro("fingerprint", &BatchRun::fingerprint)
      .def_prop_ro("label_names", [](const BatchRun& r) { return r.manifest().label_names(); })
      .def_prop_ro("split_names", [](const BatchRun& r) { return r.manifest().split_names(); })
      .def_prop_ro("target_names", [](const BatchRun& r) { return r.manifest().target_names(); });
}
