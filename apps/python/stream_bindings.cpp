// Bindings of streams: rows of samples that come as they are recorded.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include <fmt/format.h>

#include "apps/python/process.h"
#include "apps/python/sample_array.h"
#include "apps/python/text_caster.h"
#include "config/load.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "stages/streaming/sample_stream.h"

using namespace melflow;

namespace {

// What streams share, and what is known of their rows.
struct Front {
  std::shared_ptr<const StreamFront> streams;
  std::string fingerprint;
  std::vector<std::string> warnings;
};

Front front_of(const std::string& name, const std::string& text,
               const std::map<std::string, std::string>& vars,
               const std::map<std::string, std::string>& sets, int sample_rate, bool finish_only) {
  LoadOptions options;
  for (const auto& [key, value] : vars) options.vars.push_back({key, value});
  for (const auto& [key, value] : sets) options.sets.push_back({key, value});
  const Plan plan = text.empty() ? load_plan(name, options) : load_plan_text(text, name, options);
  Front out{std::make_shared<const StreamFront>(plan, sample_rate, finish_only), {}, {}};
  for (const Problem& w : plan.warnings) out.warnings.push_back(w.str());
  for (const PlanNode& node : plan.nodes)
    if (node.info->traits.kind == StageKind::sink)
      out.fingerprint = feature_fingerprint(node.stage->feature_settings());
  return out;
}

// One array of samples for each stream, or one [streams, samples] for all.
std::vector<SampleStream::Feed> feeds_of(const nb::list& streams, const nb::object& chunks,
                                         std::vector<SampleArray>& arrays) {
  std::vector<SampleStream::Feed> feeds(streams.size());
  for (std::size_t i = 0; i < feeds.size(); ++i)
    feeds[i].stream = nb::cast<SampleStream*>(streams[i]);
  if (chunks.is_none()) return feeds;
  if (nb::isinstance<nb::list>(chunks)) {
    const auto each = nb::cast<nb::list>(chunks);
    if (each.size() != feeds.size())
      throw std::invalid_argument(
          fmt::format("{} arrays of samples for {} streams", each.size(), feeds.size()));
    arrays.reserve(feeds.size());
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      arrays.push_back(nb::cast<SampleArray>(each[i]));
      feeds[i].samples = samples_of(arrays.back());
    }
    return feeds;
  }
  using Table = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  const auto table = nb::cast<Table>(chunks);
  if (table.shape(0) != feeds.size())
    throw std::invalid_argument(
        fmt::format("{} rows of samples for {} streams", table.shape(0), feeds.size()));
  Samples samples = samples_of(table);
  for (SampleStream::Feed& feed : feeds) {
    feed.samples = samples;
    samples.data += samples.bytes();
  }
  return feeds;
}

// Returns the rows of all streams, one after the other, how many each has, and what has failed, by
// number. `chunks` None: no samples.
nb::tuple push(const nb::list& streams, const nb::object& chunks, bool is_last) {
  std::vector<SampleArray> arrays;
  std::vector<SampleStream::Feed> feeds = feeds_of(streams, chunks, arrays);
  if (feeds.empty()) throw std::invalid_argument("there are no streams");
  const int columns = feeds.front().stream->front()->columns();
  RowVector all;
  std::vector<std::int64_t> counts;
  {
    const WithoutLock free;
    std::vector<RowVector> rows(feeds.size());
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      feeds[i].rows = &rows[i];
      feeds[i].is_last = is_last;
    }
    SampleStream::push(feeds);
    std::size_t size = 0;
    for (const RowVector& of : rows) {
      size += of.size();
      counts.push_back(static_cast<std::int64_t>(of.size()) / columns);
    }
    all = std::move(rows.front());
    all.reserve(size);
    for (std::size_t i = 1; i < rows.size(); ++i)
      all.insert(all.end(), rows[i].begin(), rows[i].end());
  }
  nb::dict failed;
  for (std::size_t i = 0; i < feeds.size(); ++i)
    if (!feeds[i].error.empty()) failed[nb::int_(i)] = nb::cast(feeds[i].error);
  const std::size_t count = all.size() / static_cast<std::size_t>(columns);
  return nb::make_tuple(array(std::move(all), {count, static_cast<std::size_t>(columns)}),
                        nb::cast(counts), failed);
}

}  // namespace

void bind_streams(nb::module_& m);
void bind_streams(nb::module_& m) {
  nb::class_<Front>(m, "StreamFront")
      .def(
          "__init__",
          [](Front* self, const std::string& name, const std::string& text,
             const std::map<std::string, std::string>& vars,
             const std::map<std::string, std::string>& sets, int sample_rate, bool finish_only) {
            new (self) Front(front_of(name, text, vars, sets, sample_rate, finish_only));
          },
          nb::arg("name"), nb::arg("text"), nb::arg("vars"), nb::arg("sets"),
          nb::arg("sample_rate"), nb::arg("finish_only"))
      .def(
          "stream", [](const Front& f) { return new SampleStream(f.streams); },
          nb::rv_policy::take_ownership)
      .def_prop_ro("fingerprint", [](const Front& f) { return f.fingerprint; })
      .def_prop_ro("warnings", [](const Front& f) { return f.warnings; })
      .def_prop_ro("unit", [](const Front& f) { return f.streams->info().unit; })
      .def_prop_ro("columns", [](const Front& f) { return f.streams->columns(); })
      .def_prop_ro("delay", [](const Front& f) -> nb::object {
        const auto delay = f.streams->delay();
        if (!delay) return nb::none();
        return nb::make_tuple(delay->samples, delay->seconds);
      });
  nb::class_<SampleStream>(m, "SampleStream").def("reset", &SampleStream::reset);
  m.def("push", &push, nb::arg("streams"), nb::arg("chunks").none(), nb::arg("is_last"));
}
