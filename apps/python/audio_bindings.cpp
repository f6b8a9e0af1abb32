// Bindings for rows of a corpus that are computed on demand.
#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <numeric>
#include <stdexcept>

#include "apps/python/arrays.h"
#include "apps/python/audio_rows.h"
#include "apps/python/list_columns.h"
#include "apps/python/process.h"
#include "apps/python/text_caster.h"
#include "pipeline/options/option_type.h"
#include "stages/containers/container.h"

using namespace melflow;

namespace {

// Sizes and modification times: [recordings, 2].
nb::object stamps_of(const AudioRows& rows) {
  std::vector<std::int64_t> out;
  {
    const WithoutLock free;
    FileStamp stamp;
    for (std::size_t i = 0; i < rows.manifest().size(); ++i) {
      if (rows.firsts()[i] == i) stamp = stamp_of(rows.manifest().path(i));
      out.insert(out.end(), {stamp.size, stamp.modified});
    }
  }
  const std::size_t count = out.size() / 2;
  return array(std::move(out), {count, 2});
}

nb::list measure(const AudioRows& rows, std::size_t first) {
  std::vector<AudioRows::Measured> measured;
  {
    const WithoutLock free;
    measured = rows.measure(first);
  }
  nb::list out;
  for (const AudioRows::Measured& m : measured) {
    const int outcome = m.entry.outcome == Outcome::ok        ? 0
                        : m.entry.outcome == Outcome::skipped ? 1
                                                              : 2;
    out.append(nb::make_tuple(outcome, m.rows, m.entry.stage, m.entry.reason));
  }
  return out;
}

}  // namespace

void bind_audio_rows(nb::module_& m);
void bind_audio_rows(nb::module_& m) {
  nb::class_<AudioRows, RowReader>(m, "AudioRows")
      .def(
          "__init__",
          [](AudioRows* self, const std::string& name, const std::string& text,
             const std::map<std::string, std::string>& vars,
             const std::map<std::string, std::string>& sets, const std::string& store,
             int workers) {
            LoadOptions options;
            for (const auto& [key, value] : vars) options.vars.push_back({key, value});
            for (const auto& [key, value] : sets) options.sets.push_back({key, value});
            Bytes most;
            if (const std::string why = OptionType<Bytes>::parse(Value::scalar(store), most);
                !why.empty())
              throw std::invalid_argument("store: " + why);
            const WithoutLock free;
            new (self) AudioRows(name, text, options, most.count, workers);
          },
          nb::arg("name"), nb::arg("text"), nb::arg("vars"), nb::arg("sets"), nb::arg("store"),
          nb::arg("workers"))
      .def("columns",
           [](const AudioRows& r) {
             std::vector<std::int64_t> all(r.manifest().size());
             std::iota(all.begin(), all.end(), 0);
             nb::dict out;
             describe(r.manifest(), all, out);
             return out;
           })
      .def("stamps", &stamps_of)
      .def("firsts",
           [](const AudioRows& r) {
             return array(std::vector<std::int64_t>(r.firsts().begin(), r.firsts().end()));
           })
      .def("measure", &measure, nb::arg("first"))
      .def_prop_ro("tells_counts", [](const AudioRows& r) { return r.chain().tells_counts(); })
      // Returns -1 where the recording has to be measured.
      .def(
          "count_by_header",
          [](const AudioRows& r, std::size_t first) {
            return r.count_by_header(first).value_or(-1);
          },
          nb::arg("first"), nb::call_guard<WithoutLock>())
      .def_prop_ro("kept_rows",
                   [](const AudioRows& r) { return r.store().limit() / r.row_bytes(); })
      .def(
          "place",
          [](AudioRows& rows, const Numbers& counts, const Numbers& sizes, const Numbers& times,
             const Numbers& by_header) {
            std::vector<FileStamp> stamps;
            for (std::size_t i = 0; i < sizes.shape(0); ++i)
              stamps.push_back({sizes.data()[i], times.data()[i]});
            rows.place(copy_of(counts), std::move(stamps),
                       std::vector<bool>(by_header.data(), by_header.data() + by_header.shape(0)));
          },
          nb::arg("counts"), nb::arg("sizes"), nb::arg("times"), nb::arg("by_header"))
      .def_prop_ro("losses",
                   [](const AudioRows& r) {
                     nb::dict out;
                     for (const auto& [i, reason] : r.losses())
                       out[nb::cast(r.manifest().name(i))] = reason;
                     return out;
                   })
      .def_prop_ro("remarks", &AudioRows::remarks)
      .def_prop_ro("stored_bytes", [](const AudioRows& r) { return r.store().bytes(); })
      .def_prop_ro("storable_bytes", [](const AudioRows& r) { return r.store().storable(); })
      .def_prop_ro("computed", [](const AudioRows& r) { return r.store().made(); })
      .def_prop_ro("name", [](const AudioRows& r) { return r.chain().row_name(); })
      .def_prop_ro("unit", [](const AudioRows& r) { return r.chain().info().unit; })
      .def_prop_ro("frames", [](const AudioRows& r) { return r.chain().info().frames; })
      // Rows in a second of a recording; 0: not known.
      .def_prop_ro("rows_per_second",
                   [](const AudioRows& r) {
                     const FeatureInfo& info = r.chain().info();
                     const int hop = info.is_samples() ? 1 : info.hop;
                     return hop > 0 ? static_cast<double>(info.sample_rate) / hop : 0.0;
                   })
      .def_prop_ro("fingerprint", [](const AudioRows& r) { return r.chain().fingerprint(); })
      .def_prop_ro("label_names", [](const AudioRows& r) { return r.manifest().label_names(); })
      .def_prop_ro("split_names", [](const AudioRows& r) { return r.manifest().split_names(); })
      .def_prop_ro("text_names", [](const AudioRows& r) { return r.manifest().text_names(); })
      .def_prop_ro("target_names", [](const AudioRows& r) { return r.manifest().target_names(); });
}
