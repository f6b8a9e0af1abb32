#include "stages/output/hdf5_layout.h"

#include <hdf5_hl.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory_resource>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stages/output/feature_hash.h"
#include "stages/raii/hdf5.h"
#include "stages/version.h"

namespace melflow {
namespace {

constexpr std::size_t kAtOnce = 8192;  // entries converted at a time, whatever the corpus' size

Hid string_type() {
  Hid type(H5Tcopy(H5T_C_S1), H5Tclose, "string type");
  h5_check(H5Tset_size(type, H5T_VARIABLE), "string type");
  h5_check(H5Tset_cset(type, H5T_CSET_UTF8), "string type");
  return type;
}

Hid status_type() {
  Hid type(H5Tenum_create(H5T_STD_I8LE), H5Tclose, "status type");
  for (std::int8_t value = 0; const char* name : OutputIndex::kStatusNames) {
    h5_check(H5Tenum_insert(type, name, &value), name);
    ++value;
  }
  return type;
}

// A group of the file. The same description of what is in it is gone through twice: to write it,
// and when the file is complete, to read it back and compare.
class Place {
 public:
  enum class Pass { write, check };
  Place(hid_t id, Pass pass) : id_(id), pass_(pass) {}
  /// The group `name` in it.
  Place(const Place& in, const char* name)
      : group_(in.writes() ? H5Gcreate2(in, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                           : H5Gopen2(in, name, H5P_DEFAULT),
               H5Gclose, name),
        id_(group_),
        pass_(in.pass_) {}
  operator hid_t() const { return id_; }  // NOLINT: as Hid does
  [[nodiscard]] Pass pass() const { return pass_; }
  [[nodiscard]] bool writes() const { return pass_ == Pass::write; }

 private:
  Hid group_;
  hid_t id_;
  Pass pass_;
};

void expect(bool is_there, const char* name) {
  if (!is_there) fail_read_back(name);
}

// Memory for texts that HDF5 reads, all of which goes at once: an allocation for each would be most
// of what reading them costs.
class TextMemory {
 public:
  TextMemory() : transfer_(H5Pcreate(H5P_DATASET_XFER), H5Pclose, "memory for texts") {
    h5_check(
        H5Pset_vlen_mem_manager(transfer_, &TextMemory::allocate, this, &TextMemory::release, this),
        "memory for texts");
  }
  TextMemory(const TextMemory&) = delete;
  TextMemory& operator=(const TextMemory&) = delete;
  /// For H5Dread.
  [[nodiscard]] hid_t transfer() const { return transfer_; }
  void clear() { memory_.release(); }

 private:
  static void* allocate(std::size_t bytes, void* self) {
    try {
      return static_cast<TextMemory*>(self)->memory_.allocate(bytes, 1);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  static void release(void*, void*) {}

  std::pmr::monotonic_buffer_resource memory_;
  Hid transfer_;
};

// Values of one type on their way into a dataset or attribute, or out of it to be compared.
template <class T>
class Values {
 public:
  std::vector<T> of;

  // transfer(to or from): H5Dwrite or H5Dread.
  template <class Transfer>
  void write(const char* name, const Transfer& transfer) const {
    if constexpr (std::is_same_v<T, std::string>) {
      std::vector<const char*> texts;
      texts.reserve(of.size());
      for (const std::string& v : of) texts.push_back(v.c_str());
      h5_check(transfer(static_cast<const void*>(texts.data())), name);
    } else {
      h5_check(transfer(static_cast<const void*>(of.data())), name);
    }
  }
  // let_go(texts): what HDF5 has read of those is not needed any more.
  template <class Transfer, class LetGo>
  void check(const char* name, const Transfer& transfer, const LetGo& let_go) const {
    if constexpr (std::is_same_v<T, std::string>) {
      std::vector<char*> texts(of.size(), nullptr);
      h5_check(transfer(static_cast<void*>(texts.data())), name);
      bool is_same = true;
      for (std::size_t i = 0; i < of.size(); ++i)
        is_same = is_same && texts[i] != nullptr && of[i].c_str() == std::string_view(texts[i]);
      let_go(texts.data());
      expect(is_same, name);
    } else {
      std::vector<T> there(of.size());
      h5_check(transfer(static_cast<void*>(there.data())), name);
      expect(of.empty() || std::memcmp(there.data(), of.data(), of.size() * sizeof(T)) == 0, name);
    }
  }
};

// A dataset of `shape`, some of its first axis at a time; fill(first, values) appends those from
// there on, as many as `values` has room reserved for. `create` where it is to be made.
template <class T, class Fill>
void dataset(const Place& where, const char* name, hid_t stored, hid_t memory,
             const std::vector<hsize_t>& shape, hsize_t at_once, hid_t create, const Fill& fill) {
  const auto rank = static_cast<int>(shape.size());
  const Hid space(H5Screate_simple(rank, shape.data(), nullptr), H5Sclose, name);
  Hid set(where.writes()
              ? H5Dcreate2(where, name, stored, space, H5P_DEFAULT, create, H5P_DEFAULT)
              : H5Dopen2(where, name, H5P_DEFAULT),
          H5Dclose, name);
  if (!where.writes()) {
    const Hid there(H5Dget_space(set), H5Sclose, name);
    expect(H5Sextent_equal(there, space) > 0, name);
  }
  Values<T> values;
  std::optional<TextMemory> texts;
  if (std::is_same_v<T, std::string> && !where.writes()) texts.emplace();
  std::vector<hsize_t> start(shape.size(), 0), count = shape;
  for (; start[0] < shape[0]; start[0] += at_once) {
    count[0] = std::min(at_once, shape[0] - start[0]);
    values.of.clear();
    fill(start[0], count[0], values.of);
    h5_check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(),
                                 nullptr),
             name);
    const Hid piece(H5Screate_simple(rank, count.data(), nullptr), H5Sclose, name);
    if (where.writes())
      values.write(name, [&](const void* from) {
        return H5Dwrite(set, memory, piece, space, H5P_DEFAULT, from);
      });
    else
      values.check(
          name,
          [&](void* to) {
            return H5Dread(set, memory, piece, space, texts ? texts->transfer() : H5P_DEFAULT, to);
          },
          [&](char**) { texts->clear(); });
  }
  set.close(name);
}

// A column of `count` entries, value(i) each, of memory type `memory`. Strings come as std::string.
template <class T>
void column(const Place& where, const char* name, hid_t stored, hid_t memory, std::size_t count,
            const std::function<T(std::size_t)>& value) {
  dataset<T>(where, name, stored, memory, {count}, kAtOnce, H5P_DEFAULT,
             [&](hsize_t first, hsize_t n, std::vector<T>& out) {
               for (hsize_t i = 0; i < n; ++i) out.push_back(value(first + i));
             });
}

struct TableShape {
  std::size_t rows = 0, columns = 0;
};

// Numbers in rows; fill(i, row) gets zeros. Both axes are at least 1.
template <class T>
void table(const Place& where, const char* name, hid_t stored, hid_t memory, TableShape shape,
           bool packed, const std::function<void(std::size_t, T*)>& fill) {
  const Hid create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, name);
  const std::size_t at_once = std::clamp<std::size_t>(kAtOnce * 8 / shape.columns, 1, shape.rows);
  if (packed) {
    const hsize_t chunk[] = {at_once, shape.columns};
    h5_check(H5Pset_chunk(create, 2, chunk), name);
    h5_check(H5Pset_deflate(create, 1), name);
  }
  dataset<T>(where, name, stored, memory, {shape.rows, shape.columns}, at_once, create,
             [&](hsize_t first, hsize_t n, std::vector<T>& out) {
               out.assign(n * shape.columns, T{});
               for (hsize_t i = 0; i < n; ++i) fill(first + i, out.data() + i * shape.columns);
             });
}

void strings(const Place& where, const char* name, std::size_t count,
             const std::function<std::string(std::size_t)>& value) {
  const Hid type = string_type();
  column<std::string>(where, name, type, type, count, value);
}

template <class T>
void attribute(const Place& where, const char* name, hid_t stored, hid_t memory, T value) {
  const Hid space(H5Screate(H5S_SCALAR), H5Sclose, name);
  Hid a(where.writes() ? H5Acreate2(where, name, stored, space, H5P_DEFAULT, H5P_DEFAULT)
                       : H5Aopen(where, name, H5P_DEFAULT),
        H5Aclose, name);
  Values<T> values;
  values.of = {std::move(value)};
  if (where.writes())
    values.write(name, [&](const void* from) { return H5Awrite(a, memory, from); });
  else
    values.check(
        name, [&](void* to) { return H5Aread(a, memory, to); },
        [&](char** texts) { h5_check(H5Dvlen_reclaim(memory, space, H5P_DEFAULT, texts), name); });
  a.close(name);
}

void attribute(const Place& where, const char* name, const std::string& text) {
  const Hid type = string_type();
  attribute<std::string>(where, name, type, type, text);
}

void write_bands(const Place& file, const FeatureInfo& info) {
  if (info.column_hz.empty()) return;
  column<double>(file, "band_hz", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, info.column_hz.size(),
                 [&](std::size_t i) { return info.column_hz[i]; });
  if (!file.writes()) return;
  const Hid bands(H5Dopen2(file, "band_hz", H5P_DEFAULT), H5Dclose, "band_hz");
  h5_check(H5DSset_scale(bands, (info.axis + " centre frequency [Hz]").c_str()), "dimension scale");
}

// Axis labels of rows, and where a column has a frequency, /band_hz as the scale of the last axis.
void write_axes(const Place& file, const Place& rows, const OutputIndex& x) {
  const FeatureInfo& info = x.info;
  const std::vector<std::string> axes = x.axes();
  const auto last = static_cast<unsigned>(axes.size() - 1);
  if (!info.column_hz.empty() && file.writes()) {
    const Hid bands(H5Dopen2(file, "band_hz", H5P_DEFAULT), H5Dclose, "band_hz");
    h5_check(H5DSattach_scale(rows, bands, last), "dimension scale");
  }
  for (unsigned i = 0; i <= last && file.writes(); ++i)
    h5_check(H5DSset_label(rows, i, axes[i].c_str()), "label");
  attribute(rows, "unit", info.unit);
  if (info.energy_column >= 0)
    attribute<std::int32_t>(rows, "energy_column", H5T_STD_I32LE, H5T_NATIVE_INT32,
                            info.energy_column);
}

// One for each label that the file has, else nought; mostly noughts, so packed.
void write_label_sets(const Place& files, const OutputIndex& x) {
  const std::size_t labels = x.label_names().size();
  table<std::uint8_t>(files, "labels", H5T_STD_U8LE, H5T_NATIVE_UINT8, {x.files(), labels}, true,
                      [&](std::size_t i, std::uint8_t* row) {
                        for (const std::int32_t l : x.labels(i)) row[l] = 1;
                      });
}

void write_files(const Place& file, const OutputIndex& x) {
  const std::size_t count = x.files();
  const Place files(file, "files");
  attribute(files, "root", x.root());
  strings(files, "path", count, [&](std::size_t i) { return x.path(i); });
  const std::vector<std::int64_t> offsets = x.offsets();
  column<std::int64_t>(files, "offset", H5T_STD_I64LE, H5T_NATIVE_INT64, count,
                       [&](std::size_t i) { return offsets[i]; });
  column<std::int64_t>(files, "count", H5T_STD_I64LE, H5T_NATIVE_INT64, count,
                       [&](std::size_t i) { return x.rows(i); });
  column<std::int32_t>(files, "label", H5T_STD_I32LE, H5T_NATIVE_INT32, count,
                       [&](std::size_t i) { return x.label(i); });
  column<std::int8_t>(files, "split", H5T_STD_I8LE, H5T_NATIVE_INT8, count,
                      [&](std::size_t i) { return x.split(i); });
  column<std::int32_t>(files, "sample_rate", H5T_STD_I32LE, H5T_NATIVE_INT32, count,
                       [&](std::size_t i) { return x.sample_rate(i); });
  column<double>(files, "duration", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, count,
                 [&](std::size_t i) { return x.duration(i); });
  column<std::int64_t>(files, "size", H5T_STD_I64LE, H5T_NATIVE_INT64, count,
                       [&](std::size_t i) { return x.stamp(i).size; });
  column<std::int64_t>(files, "modified", H5T_STD_I64LE, H5T_NATIVE_INT64, count,
                       [&](std::size_t i) { return x.stamp(i).modified; });
  if (x.has_contents())
    column<std::uint64_t>(files, "content", H5T_STD_U64LE, H5T_NATIVE_UINT64, count,
                          [&](std::size_t i) { return x.content(i); });
  const Hid status = status_type();
  column<std::int8_t>(files, "status", status, status, count,
                      [&](std::size_t i) { return x.status(i); });
  const Place labels(file, "labels"), splits(file, "splits");
  const auto &label_names = x.label_names(), &split_names = x.split_names();
  strings(labels, "name", label_names.size(), [&](std::size_t i) { return label_names[i]; });
  strings(splits, "name", split_names.size(), [&](std::size_t i) { return split_names[i]; });
  if (x.has_label_sets() && !label_names.empty()) write_label_sets(files, x);
  if (x.target_names().empty()) return;
  const Place targets(file, "targets");
  strings(targets, "name", x.target_names().size(),
          [&](std::size_t i) { return x.target_names()[i]; });
  table<float>(files, "targets", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {count, x.target_names().size()},
               false, [&](std::size_t i, float* row) {
                 for (std::size_t t = 0; t < x.target_names().size(); ++t) row[t] = x.target(i, t);
               });
}

void select(hid_t space, const std::vector<hsize_t>& start, const std::vector<hsize_t>& count) {
  h5_check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
           "selection");
}

// The rows of a split as a dataset of their own, which has no bytes: it shows those of /mel.
Hid make_view(hid_t where, hid_t rows, const OutputIndex::SplitRows& split) {
  const Hid source(H5Dget_space(rows), H5Sclose, "dataspace");
  std::vector<hsize_t> shape(static_cast<std::size_t>(H5Sget_simple_extent_ndims(source)));
  h5_check(H5Sget_simple_extent_dims(source, shape.data(), nullptr), "dataspace");
  shape.front() = static_cast<hsize_t>(split.row_count);
  const Hid space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose,
                  "dataspace");
  const Hid create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "dataset creation");
  std::vector<hsize_t> from(shape.size(), 0), to(shape.size(), 0), count = shape;
  for (const OutputIndex::Rows& range : split.rows) {
    from.front() = static_cast<hsize_t>(range.first);
    count.front() = static_cast<hsize_t>(range.count);
    select(source, from, count);
    select(space, to, count);
    h5_check(H5Pset_virtual(create, space, ".", "/mel", source), "virtual dataset");
    to.front() += count.front();
  }
  h5_check(H5Sselect_all(space), "selection");
  const Hid type(H5Dget_type(rows), H5Tclose, "type");
  return {H5Dcreate2(where, "mel", type, space, H5P_DEFAULT, create, H5P_DEFAULT), H5Dclose,
          split.name + "/mel"};
}

// A group for each split: its rows, and where files have one label each, that of every row.
void write_splits(const Place& file, hid_t rows, const OutputIndex& x) {
  for (const OutputIndex::SplitRows& split : x.splits()) {
    const Place where(file, split.name.c_str());
    const Hid view = file.writes() ? make_view(where, rows, split)
                                   : Hid(H5Dopen2(where, "mel", H5P_DEFAULT), H5Dclose, "mel");
    write_axes(file, {view, file.pass()}, x);
    if (x.has_label_sets() || x.label_names().empty()) continue;
    std::size_t i = split.first;  // asked in order
    std::int64_t left = x.rows(i);
    column<std::int32_t>(where, "label", H5T_STD_I32LE, H5T_NATIVE_INT32,
                         static_cast<std::size_t>(split.row_count), [&](std::size_t) {
                           while (left == 0) left = x.rows(++i);
                           --left;
                           return x.label(i);
                         });
  }
}

void write_statistics(const Place& file, const ColumnStatistics& s) {
  const Place where(file, "statistics");
  for (const auto& [name, values] : {std::pair{"mean", &s.mean}, std::pair{"std", &s.std}})
    column<double>(where, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values->size(),
                   [&values = values](std::size_t i) { return (*values)[i]; });
  attribute(where, "of", s.of);
  attribute<std::int64_t>(where, "frames", H5T_STD_I64LE, H5T_NATIVE_INT64, s.frames);
  attribute<std::int8_t>(where, "applied", H5T_STD_I8LE, H5T_NATIVE_INT8, s.is_applied ? 1 : 0);
}

void write_remarks(const Place& file, const OutputIndex& x) {
  const std::vector<std::size_t> remarked = x.remarked();
  const Place remarks(file, "remarks");
  const std::size_t n = remarked.size();
  column<std::int64_t>(remarks, "file", H5T_STD_I64LE, H5T_NATIVE_INT64, n,
                       [&](std::size_t i) { return static_cast<std::int64_t>(remarked[i]); });
  strings(remarks, "path", n, [&](std::size_t i) { return x.path(remarked[i]); });
  const Hid status = status_type();
  column<std::int8_t>(remarks, "status", status, status, n,
                      [&](std::size_t i) { return x.status(remarked[i]); });
  strings(remarks, "stage", n, [&](std::size_t i) { return x.entry(remarked[i]).stage; });
  strings(remarks, "reason", n, [&](std::size_t i) { return x.entry(remarked[i]).reason; });
}

void write_warnings(const Place& file, const OutputIndex& x) {
  const std::vector<std::string> all = x.warnings();
  if (!all.empty()) strings(file, "warnings", all.size(), [&](std::size_t i) { return all[i]; });
}

void write_attributes(const Place& file, const OutputIndex& x) {
  attribute(file, "melflow_version", std::string(kVersion));
  attribute<std::int32_t>(file, "format", H5T_STD_I32LE, H5T_NATIVE_INT32, OutputIndex::kFormat);
  attribute<std::int8_t>(file, "complete", H5T_STD_I8LE, H5T_NATIVE_INT8, x.complete ? 1 : 0);
  for (const auto& [name, n] : x.counts())
    attribute(file, name, H5T_STD_I64LE, H5T_NATIVE_INT64, n);
  attribute(file, "config", to_json(x.run.settings.config));
  attribute(file, "features", to_json(x.contract));
  attribute(file, "feature_hash", feature_hash(x.contract));
  if (!x.info.preset.empty()) attribute(file, "preset", x.info.preset);
  attribute(file, "backend", x.info.computed_by->backend);
  attribute(file, "instruction_set", x.info.computed_by->instruction_set);
  const std::pair<const char*, int> frames[] = {
      {"sample_rate", x.info.sample_rate}, {"n_fft", x.info.n_fft}, {"hop_length", x.info.hop}};
  for (const auto& [name, n] : frames)
    attribute(file, name, H5T_STD_I32LE, H5T_NATIVE_INT32, static_cast<std::int32_t>(n));
}

void go_through(const Place& file, hid_t rows, const OutputIndex& index) {
  write_bands(file, index.info);
  write_axes(file, {rows, file.pass()}, index);
  write_files(file, index);
  write_splits(file, rows, index);
  write_remarks(file, index);
  write_warnings(file, index);
  if (index.statistics != nullptr) write_statistics(file, *index.statistics);
  write_attributes(file, index);
}

}  // namespace

void write_layout(hid_t file, hid_t rows, const OutputIndex& index) {
  go_through({file, Place::Pass::write}, rows, index);
}

void check_layout(hid_t file, const OutputIndex& index) {
  const Hid rows(H5Dopen2(file, "mel", H5P_DEFAULT), H5Dclose, "mel");
  go_through({file, Place::Pass::check}, rows, index);
}

}  // namespace melflow
