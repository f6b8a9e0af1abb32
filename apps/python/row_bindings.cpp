// Bindings for rows addressed by number.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "apps/python/arrays.h"
#include "apps/python/file_rows.h"
#include "apps/python/joined_rows.h"
#include "apps/python/list_columns.h"
#include "apps/python/process.h"
#include "apps/python/row_batches.h"
#include "apps/python/text_caster.h"
#include "stages/measures.h"
#include "stages/output/formats/root_attributes.h"
#include "stages/output/rows/row_hash.h"

using namespace melflow;

namespace {

nb::object take_rows(RowBatches& batches, double seconds) {
  return next_batch<RowBatches::Batch>(
      batches, seconds, [&](RowBatches::Batch batch) -> nb::object {
        nb::dict rows;
        for (std::size_t k = 0; k < batch.inputs.size(); ++k)
          add_rows(std::move(batch.inputs[k]), batches.input(k).name, batches.input(k).length,
                   rows);
        return nb::make_tuple(rows, array(std::move(batch.samples)), batch.end);
      });
}

template <class Get>
nb::object column(const FeatureFile& file, const Get& get) {
  std::vector<std::remove_cvref_t<decltype(get(file.files().front()))>> out;
  out.reserve(file.files().size());
  for (const FeatureFile::Entry& e : file.files()) out.push_back(get(e));
  return array(std::move(out));
}

template <class T, class Put>
nb::object table(const FeatureFile& file, std::size_t columns, const Put& put) {
  std::vector<T> out(file.files().size() * columns, T{});
  for (std::size_t i = 0; i < file.files().size(); ++i)
    put(file.files()[i], out.data() + i * columns);
  return array(std::move(out), {file.files().size(), columns});
}

nb::list texts_of(const std::vector<std::string>& texts) {
  nb::list out;
  for (const std::string& text : texts) out.append(text);
  return out;
}

nb::dict attributes_of(const FeatureFile& file) {
  nb::dict out;
  for (const RootAttribute& a : root_attributes()) {
    if (const auto number = file.integer(a.name))
      out[a.name] = *number;
    else if (const std::string text = file.text(a.name); !text.empty())
      out[a.name] = text;
  }
  return out;
}

// Returns a file's description of its recordings and of itself, under the names of its datasets.
nb::dict index_of(const FeatureFile& file) {
  using Entry = FeatureFile::Entry;
  nb::dict out, columns;
  out["attributes"] = attributes_of(file);
  out["name"] = file.rows_name();
  out["unit"] = file.unit();
  out["shape"] = nb::tuple(nb::cast(file.shape()));
  out["offset"] = column(file, [](const Entry& e) { return e.offset; });
  out["count"] = column(file, [](const Entry& e) { return e.count; });
  out["status"] = column(file, [](const Entry& e) { return static_cast<std::int8_t>(e.status); });
  out["size"] = column(file, [](const Entry& e) { return e.stamp.size; });
  out["modified"] = column(file, [](const Entry& e) { return e.stamp.modified; });
  out["content"] = column(file, [](const Entry& e) { return e.content; });
  out["rows_hash"] = column(file, [](const Entry& e) { return e.rows_hash; });
  out["duration"] = column(file, [](const Entry& e) { return e.duration; });
  out["sample_rate"] = column(file, [](const Entry& e) { return e.sample_rate; });
  out["label"] = column(file, [](const Entry& e) { return e.label; });
  out["split"] = column(file, [](const Entry& e) { return e.split; });
  if (file.has_label_sets())
    out["labels"] =
        table<std::uint8_t>(file, file.labels().size(), [](const Entry& e, std::uint8_t* to) {
          for (const std::int32_t label : e.labels) to[label] = 1;
        });
  if (!file.targets().empty())
    out["targets"] = table<float>(file, file.targets().size(), [](const Entry& e, float* to) {
      std::copy(e.targets.begin(), e.targets.end(), to);
    });
  nb::list paths, results, remarks;
  for (const Entry& e : file.files()) {
    paths.append(e.path);
    results.append(e.results);
  }
  for (const FeatureFile::Remark& r : file.remarks())
    remarks.append(nb::make_tuple(r.file, to_text(r.status), r.stage, r.reason));
  out["path"] = paths;
  out["results"] = results;
  out["remarks"] = remarks;
  for (std::size_t t = 0; t < file.columns().size(); ++t) {
    nb::list texts;
    for (const Entry& e : file.files()) texts.append(e.texts[t]);
    columns[nb::cast(file.columns()[t])] = texts;
  }
  out["columns"] = columns;
  nb::dict measured;
  for (const MeasureInfo& m : measures()) {
    const auto of = [&](const Entry& e) {
      return e.measured != nullptr ? (*e.measured)[measure_of(m)] : std::nanf("");
    };
    if (std::any_of(file.files().begin(), file.files().end(),
                    [&](const Entry& e) { return !std::isnan(of(e)); }))
      measured[m.name] = column(file, of);
  }
  out["measures"] = measured;
  out["label_names"] = texts_of(file.labels());
  out["split_names"] = texts_of(file.splits());
  out["target_names"] = texts_of(file.targets());
  out["warnings"] = texts_of(file.warnings());
  out["root"] = file.root();
  out["band_hz"] = array(file.band_hz());
  if (const auto& statistics = file.statistics()) {
    out["mean"] = array(statistics->mean);
    out["std"] = array(statistics->std);
    out["is_normalized"] = statistics->is_applied;
    if (const auto& groups = statistics->groups) {
      out["statistics_by"] = groups->by;
      out["group_names"] = texts_of(groups->names);
      out["group_frames"] = array(groups->frames);
      out["group_mean"] = array(groups->mean);
      out["group_std"] = array(groups->std);
    }
  }
  return out;
}

// Keeps Python's lock: HDF5 may not be built for threads, and may be another module's copy, which
// relies on Python's lock where libmelflow has its own.
nb::tuple open_file(const std::string& path) {
  const FileRows::Opened opened = FileRows::open(path);
  return nb::make_tuple(opened.rows, index_of(opened.file));
}

// The hash of an array's bytes, as outputs store it for rows.
std::uint64_t hash_of(const nb::ndarray<nb::c_contig, nb::ro, nb::device::cpu>& rows) {
  const WithoutLock free;
  RowHash hash;
  hash.add(rows.data(), rows.nbytes());
  return hash.value();
}

// `as_bits`: bfloat16 as uint16, which NumPy has.
nb::object rows_at(const RowReader& reader, std::uint64_t first, std::uint64_t count,
                   bool as_bits) {
  auto rows = std::make_unique<std::vector<std::byte>>(count * reader.row_bytes());
  {
    const WithoutLock free;
    const auto scratch = reader.scratch();
    reader.read({first, count}, rows->data(), *scratch);
    reader.confirm();
  }
  std::vector<std::size_t> shape{count};
  for (const std::size_t n : reader.row_shape()) shape.push_back(n);
  void* data = rows->data();
  const bool is_bits = as_bits && reader.type() == NumberType::bfloat16;
  return array(std::move(rows), data, shape,
               is_bits ? nb::dtype<std::uint16_t>() : dtype_of(reader.type()));
}

}  // namespace

void bind_order(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_rows(nb::module_& m) {
  nb::class_<RowReader>(m, "RowReader")
      .def("read", &rows_at, nb::arg("first"), nb::arg("count"), nb::arg("as_bits") = false)
      .def_prop_ro("dtype", [](const RowReader& r) { return std::string(to_text(r.type())); })
      .def_prop_ro("row_shape", &RowReader::row_shape)
      .def_prop_ro("row_bytes", &RowReader::row_bytes);
  nb::class_<FileRows, RowReader>(m, "FileRows");
  nb::class_<JoinedRows, RowReader>(m, "JoinedRows")
      .def(
          "__init__",
          [](JoinedRows* self, std::vector<std::shared_ptr<RowReader>> parts, const Numbers& rows) {
            new (self) JoinedRows({parts.begin(), parts.end()}, copy_of(rows));
          },
          nb::arg("parts"), nb::arg("rows"));
  m.def("open_file", &open_file, nb::arg("path"));
  m.def("rows_hash", &hash_of, nb::arg("rows"));
  m.def(
      "run_hash", [](const std::string& path) { return FeatureFile(path).text("run_hash"); },
      nb::arg("path"));
  bind_order(m);
  nb::class_<RowBatches::Input>(m, "BatchRows")
      .def(
          "__init__",
          [](RowBatches::Input* self, std::shared_ptr<RowReader> reader, std::string name,
             std::string length, const Numbers& starts, const Numbers& counts, bool as_float32,
             std::vector<double> mean, std::vector<double> std, const Numbers& groups) {
            new (self) RowBatches::Input{std::move(reader), std::move(name), std::move(length),
                                         copy_of(starts),   copy_of(counts), as_float32,
                                         std::move(mean),   std::move(std),  copy_of(groups)};
          },
          nb::arg("reader"), nb::arg("name"), nb::arg("length"), nb::arg("starts"),
          nb::arg("counts"), nb::arg("as_float32"), nb::arg("mean"), nb::arg("std"),
          nb::arg("groups"));
  nb::class_<RowBatches>(m, "RowBatches")
      .def(
          "__init__",
          [](RowBatches* self, std::shared_ptr<EpochOrder> order,
             std::vector<RowBatches::Input> inputs, bool is_ragged, bool packs, std::size_t rank,
             std::size_t prefetch, std::size_t threads, std::size_t ahead) {
            new (self) RowBatches(std::move(order), {std::move(inputs), is_ragged, packs, rank,
                                                     prefetch, threads, ahead});
          },
          nb::arg("order"), nb::arg("inputs"), nb::arg("is_ragged"), nb::arg("packs"),
          nb::arg("rank"), nb::arg("prefetch"), nb::arg("threads"), nb::arg("ahead"))
      .def("take", &take_rows, nb::arg("seconds"))
      .def("stop", &RowBatches::stop, nb::call_guard<WithoutLock>());
}
