// The part of the module that gives rows by their numbers.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <tuple>

#include "apps/python/arrays.h"
#include "apps/python/file_rows.h"
#include "apps/python/process.h"
#include "apps/python/row_batches.h"
#include "apps/python/text_caster.h"

using namespace melflow;

namespace {

NumberType type_of(const std::string& name) {
  if (const auto type = number_type(name)) return *type;
  throw std::invalid_argument("rows of " + name);
}

nb::object take(RowBatches& batches, double seconds) {
  bool is_over = false;
  std::optional<RowBatches::Batch> batch;
  {
    const WithoutLock free;
    batch = batches.take(seconds, is_over);
  }
  if (!batch) return is_over ? nb::none() : nb::object(nb::bool_(false));
  auto owner = std::make_unique<Buffer>(std::move(batch->data));
  void* data = owner->data();
  return nb::make_tuple(array(std::move(owner), data, batch->shape, dtype_of(batch->type)),
                        array(std::move(batch->samples)), array(std::move(batch->lengths)),
                        batch->end);
}

using Chunks = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>>;

FileRows::Layout layout_of(std::string path, const std::string& type,
                           std::vector<std::size_t> row_shape, std::uint64_t rows, std::uint64_t at,
                           std::uint64_t chunk_rows, bool is_shuffled, bool is_deflated,
                           const Chunks& chunks) {
  FileRows::Layout out{std::move(path), type_of(type), std::move(row_shape), rows, at,
                       chunk_rows,      is_shuffled,   is_deflated,          {}};
  for (const auto& [chunk_at, bytes, mask] : chunks) out.chunks.push_back({chunk_at, bytes, mask});
  return out;
}

nb::object rows_at(const RowReader& reader, std::uint64_t first, std::uint64_t count) {
  auto rows = std::make_unique<std::vector<std::byte>>(count * reader.row_bytes());
  {
    const WithoutLock free;
    const auto scratch = reader.scratch();
    reader.read({first, count}, rows->data(), *scratch);
  }
  std::vector<std::size_t> shape{count};
  for (const std::size_t n : reader.row_shape()) shape.push_back(n);
  void* data = rows->data();
  return array(std::move(rows), data, shape, dtype_of(reader.type()));
}

}  // namespace

void bind_rows(nb::module_& m);
void bind_rows(nb::module_& m) {
  nb::class_<RowReader>(m, "RowReader")
      .def("read", &rows_at, nb::arg("first"), nb::arg("count"))
      .def_prop_ro("dtype", [](const RowReader& r) { return std::string(to_text(r.type())); })
      .def_prop_ro("row_shape", &RowReader::row_shape);
  nb::class_<FileRows, RowReader>(m, "FileRows")
      .def(
          "__init__",
          [](FileRows* self, std::string path, const std::string& type,
             std::vector<std::size_t> row_shape, std::uint64_t rows, std::uint64_t at,
             std::uint64_t chunk_rows, bool is_shuffled, bool is_deflated, const Chunks& chunks) {
            new (self) FileRows(layout_of(std::move(path), type, std::move(row_shape), rows, at,
                                          chunk_rows, is_shuffled, is_deflated, chunks));
          },
          nb::arg("path"), nb::arg("type"), nb::arg("row_shape"), nb::arg("rows"), nb::arg("at"),
          nb::arg("chunk_rows"), nb::arg("is_shuffled"), nb::arg("is_deflated"), nb::arg("chunks"));
  nb::class_<EpochOrder>(m, "EpochOrder")
      .def(
          "__init__",
          [](EpochOrder* self, std::uint64_t samples, const Numbers& lengths, bool shuffles,
             std::size_t bucket, std::uint64_t seed, std::uint64_t epoch, std::size_t size,
             std::size_t max_rows, std::size_t ranks, bool drop_last, std::uint64_t begin) {
            const WithoutLock free;
            new (self) EpochOrder({samples,
                                   copy_of(lengths),
                                   shuffles,
                                   bucket,
                                   seed,
                                   epoch,
                                   {size, max_rows, ranks},
                                   drop_last,
                                   begin});
          },
          nb::arg("samples"), nb::arg("lengths"), nb::arg("shuffles"), nb::arg("bucket"),
          nb::arg("seed"), nb::arg("epoch"), nb::arg("size"), nb::arg("max_rows"), nb::arg("ranks"),
          nb::arg("drop_last"), nb::arg("begin"))
      .def("count", &EpochOrder::count);
  nb::class_<RowBatches>(m, "RowBatches")
      .def(
          "__init__",
          [](RowBatches* self, std::shared_ptr<RowReader> reader, std::shared_ptr<EpochOrder> order,
             const Numbers& starts, const Numbers& counts, bool is_ragged, std::size_t rank,
             std::size_t prefetch, std::size_t threads, bool as_float32, std::vector<double> mean,
             std::vector<double> std) {
            new (self) RowBatches(std::move(reader), std::move(order),
                                  {copy_of(starts), copy_of(counts), is_ragged, rank, prefetch,
                                   threads, as_float32, std::move(mean), std::move(std)});
          },
          nb::arg("reader"), nb::arg("order"), nb::arg("starts"), nb::arg("counts"),
          nb::arg("is_ragged"), nb::arg("rank"), nb::arg("prefetch"), nb::arg("threads"),
          nb::arg("as_float32"), nb::arg("mean"), nb::arg("std"))
      .def("take", &take, nb::arg("seconds"))
      .def("stop", &RowBatches::stop, nb::call_guard<WithoutLock>());
}
