// Writes an existing output as archives, for melflow.export, with the code of kaldi_write and
// tar_write.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "apps/python/arrays.h"
#include "apps/python/file_rows.h"
#include "apps/python/process.h"
#include "apps/python/text_caster.h"
#include "pipeline/base/problem.h"
#include "stages/files/publication.h"
#include "stages/output/formats/appender.h"
#include "stages/output/formats/kaldi_ark.h"
#include "stages/output/formats/kaldi_matrix.h"
#include "stages/output/formats/tar_shards.h"
#include "stages/output/recording_names.h"
#include "stages/output/rows/row_hash.h"

using namespace melflow;

namespace {

using StoredRows = std::vector<std::byte>;
using RecordingNumbers = std::vector<std::size_t>;  // by their numbers in the file
using RowHashes = std::vector<std::uint64_t>;

std::vector<float> floats_in(const StoredRows& rows, NumberType type) {
  std::vector<float> out(rows.size() / size_of(type));
  if (is_integer(type))  // of samples the whole numbers, not their share of full scale
    integers_to(rows.data(), out.size(), type, out.data());
  else
    to_float(rows.data(), out.size(), type, out.data());
  return out;
}

template <class T>
std::string_view bytes_in(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

template <class Fill>
void write_exported(const std::string& path, const Fill& fill) {
  PartFile file(path, "export", Existing::refuse);
  fill(file);
  PartFile* const parts[] = {&file};
  Publication::publish(path, parts, false);
}

// Not for several threads at once.
class RowExport {
 public:
  // `names`: of the recordings, without repetition. `hash`: of the file's index; throws RunError if
  // the file has another one now, or if its results are damaged.
  RowExport(const std::string& path, const std::vector<std::string>& names, const std::string& hash)
      : opened_(FileRows::open(path)), scratch_(opened_.rows->scratch()), begins_(names.size()) {
    if (file().hash() != hash)
      throw RunError(path + ": was changed while it was exported; export it again");
    try {
      named_ = named_rows(
          names.size(),
          [this](std::size_t i) {
            const auto& e = recording(i);
            return RowsOfFile{e.offset, e.count, e.results};
          },
          names);
    } catch (const RunError& e) {
      throw RunError(fmt::format("{}: this file is damaged: {}", path, e.what()));
    }
    for (std::size_t k = named_.size(); k-- > 0;) begins_[named_[k].file] = k;
  }

  // The name of each result of a recording, and its number of rows.
  [[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> results(std::size_t i) const {
    std::vector<std::pair<std::string, std::int64_t>> out;
    for (const NamedRows& of : pieces(i)) out.emplace_back(of.name, of.rows);
    return out;
  }

  // The rows of a recording as they are stored, bfloat16 as uint16, and their hash.
  nb::tuple rows(std::size_t i) {
    auto rows = std::make_unique<StoredRows>();
    std::uint64_t hash = 0;
    {
      const WithoutLock free;
      *rows = read(i, hash);
    }
    std::vector<std::size_t> shape{static_cast<std::size_t>(recording(i).count)};
    for (const std::size_t n : opened_.rows->row_shape()) shape.push_back(n);
    void* data = rows->data();
    return nb::make_tuple(
        array(std::move(rows), data, shape,
              type() == NumberType::bfloat16 ? nb::dtype<std::uint16_t>() : dtype_of(type())),
        hash);
  }

  // Returns the hashes of the rows as they are stored.
  RowHashes write_tar(const std::string& path, const RecordingNumbers& numbers) {
    const NumberType stored = type() == NumberType::bfloat16 ? NumberType::float32 : type();
    const TarMembers members(file().data(), stored);
    const auto put = [&](Appender& out, std::size_t i, const StoredRows& rows) {
      const std::vector<float> floats =
          stored == type() ? std::vector<float>() : floats_in(rows, type());
      std::string_view left =
          stored == type() ? bytes_in<std::byte>(rows) : bytes_in<float>(floats);
      for (const NamedRows& of : pieces(i)) {
        const auto bytes =
            static_cast<std::size_t>(of.rows) * opened_.rows->values_per_row() * size_of(stored);
        out.add(members.before(recording(i), of));
        out.add(left.substr(0, bytes));
        out.add(members.after(of));
        left.remove_prefix(bytes);
      }
    };
    return write_recordings(path, numbers, put, TarMembers::end());
  }

  void write_ark(const std::string& folder, const std::string& ark, const RecordingNumbers& numbers,
                 int compression) {
    if (!names_) name_tables();
    const KaldiLayout layout{file().shape(), compression};
    const std::size_t per_row = opened_.rows->values_per_row();
    std::uint64_t at = 0;
    const auto put = [&](Appender& out, std::size_t i, const StoredRows& rows) {
      const std::vector<float> values = floats_in(rows, type());
      for (const KaldiMatrix& m : layout.matrices(pieces(i))) {
        const std::string key = layout.key(m), head = key + " " + layout.head(m);
        const auto of = std::span(values).subspan(
            static_cast<std::size_t>(m.row - recording(i).offset) * per_row,
            static_cast<std::size_t>(m.rows) * per_row);
        tables_.add(key, fmt::format("{}:{}", ark, at + key.size() + 1), layout.height(m), *names_,
                    i);
        out.add(head);
        out.add(compression == 0 ? std::string(bytes_in(of))
                                 : compressed_matrix({of.begin(), of.end()}, layout.height(m),
                                                     layout.columns(), compression));
        at += head.size() + layout.bytes(m);
      }
    };
    write_recordings(folder + "/" + ark, numbers, put, {});
  }

  // Writes the tables of the arks that were written since the last call.
  void write_tables(const std::string& folder) {
    tables_.add_speakers();
    const auto& s = file().statistics();
    if (s && s->groups && s->groups->by == "speaker" && !s->is_applied && file().shape().size() > 1)
      write_exported(fmt::format("{}/{}", folder, kCmvnArk), [&](const PartFile& to) {
        auto sums = speaker_sums(*s);
        std::erase_if(sums,
                      [this](const auto& of) { return !tables_.of["spk2utt"].contains(of.first); });
        tables_.of[kCmvnScp] = write_cmvn(to, sums);
      });
    for (const auto& [name, lines] : tables_.of)
      write_exported(fmt::format("{}/{}", folder, name),
                     [&lines = lines](const PartFile& to) { write_table(to, lines); });
    tables_.of.clear();
  }

 private:
  [[nodiscard]] const FeatureFile& file() const { return opened_.file; }
  [[nodiscard]] const FeatureFile::Entry& recording(std::size_t i) const {
    return file().files().at(i);
  }
  [[nodiscard]] NumberType type() const { return opened_.rows->type(); }
  [[nodiscard]] std::span<const NamedRows> pieces(std::size_t i) const {
    std::size_t end = begins_.at(i);
    while (end < named_.size() && named_[end].file == i) ++end;
    return std::span(named_).subspan(begins_[i], end - begins_[i]);
  }

  [[nodiscard]] StoredRows read(std::size_t i, std::uint64_t& hash) {
    const FeatureFile::Entry& e = recording(i);
    const FileRows& rows = *opened_.rows;
    StoredRows out(static_cast<std::size_t>(e.count) * rows.row_bytes());
    rows.read({static_cast<std::uint64_t>(e.offset), static_cast<std::uint64_t>(e.count)},
              out.data(), *scratch_);
    rows.confirm();
    hash = RowHash::of(out.data(), out.size() / size_of(type()), type(), type());
    if (e.rows_hash != 0 && hash != e.rows_hash)
      throw RunError(fmt::format(
          "{}: the rows of {} are not what was written (`melflow verify` lists all such files), so "
          "nothing is exported; `melflow repair` makes them again",
          file().path(), e.path));
    return out;
  }

  // `put` adds the rows of a recording; Ctrl-C takes effect between two recordings.
  template <class Put>
  RowHashes write_recordings(const std::string& path, const RecordingNumbers& numbers,
                             const Put& put, const std::string& end) {
    RowHashes out(numbers.size());
    write_exported(path, [&](const PartFile& to) {
      Appender appender(to);
      for (std::size_t n = 0; n < numbers.size(); ++n) {
        {
          const WithoutLock free;
          put(appender, numbers[n], read(numbers[n], out[n]));
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
      }
      const WithoutLock free;
      appender.add(end);
      appender.finish();
    });
    return out;
  }

  void name_tables() {
    names_ = KaldiNames{.has_frames = true};
    const auto& columns = file().columns();
    names_->speakers.emplace();
    if (std::ranges::find(columns, "text") != columns.end()) names_->texts.emplace();
    if (!file().labels().empty() && !file().has_label_sets()) names_->labels.emplace();
    for (const FeatureFile::Entry& e : file().files()) {
      names_->speakers->push_back(kaldi_words(file().data().text_of(e, "speaker"), '_'));
      if (names_->texts)
        names_->texts->push_back(kaldi_words(file().data().text_of(e, "text"), ' '));
      if (names_->labels)
        names_->labels->push_back(
            e.label < 0 ? ""
                        : kaldi_words(file().labels()[static_cast<std::size_t>(e.label)], '_'));
    }
  }

  FileRows::Opened opened_;
  std::unique_ptr<RowReader::Scratch> scratch_;
  std::vector<NamedRows> named_;     // in the order of their rows
  std::vector<std::size_t> begins_;  // by recording: its first in named_
  KaldiTables tables_{"feats.scp"};
  std::optional<KaldiNames> names_;  // from the first ark on; without keys
};

}  // namespace

void bind_row_export(nb::module_& m);
void bind_row_export(nb::module_& m) {
  m.def("recording_names",
        [](const std::vector<std::string>& paths) { return recording_names(paths); });
  m.def("as_recording_name", [](const std::string& text) { return as_recording_name(text); });
  nb::class_<RowExport>(m, "RowExport")
      .def(nb::init<const std::string&, const std::vector<std::string>&, const std::string&>(),
           nb::arg("path"), nb::arg("names"), nb::arg("index_hash"))
      .def("results", &RowExport::results, nb::arg("recording"))
      .def("rows", &RowExport::rows, nb::arg("recording"))
      .def("write_tar", &RowExport::write_tar, nb::arg("path"), nb::arg("recordings"))
      .def("write_ark", &RowExport::write_ark, nb::arg("folder"), nb::arg("ark"),
           nb::arg("recordings"), nb::arg("compression"))
      .def("write_tables", &RowExport::write_tables, nb::arg("folder"));
}
