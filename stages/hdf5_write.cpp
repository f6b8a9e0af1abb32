// hdf5_write: rows into one HDF5 file, in manifest order. docs/output-format.md says what is in it.
//
// In: MelBatch.

#include <array>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/registry.h"
#include "stages/chunked_row_file.h"
#include "stages/feature_hash.h"
#include "stages/hdf5_layout.h"
#include "stages/items.h"
#include "stages/row_file.h"
#include "stages/row_order.h"
#include "stages/spilled_rows.h"

namespace melflow {

template <>
struct EnumNames<RowType> {
  static constexpr std::pair<const char*, RowType> values[] = {{"float32", RowType::float32},
                                                               {"float16", RowType::float16}};
};

enum class Layout { automatic, contiguous, chunked };
template <>
struct EnumNames<Layout> {
  static constexpr std::pair<const char*, Layout> values[] = {{"auto", Layout::automatic},
                                                              {"contiguous", Layout::contiguous},
                                                              {"chunked", Layout::chunked}};
};

enum class Compression { none, deflate };
template <>
struct EnumNames<Compression> {
  static constexpr std::pair<const char*, Compression> values[] = {
      {"none", Compression::none}, {"deflate", Compression::deflate}};
};

namespace {

struct Hdf5WriteOptions {
  std::string path;
  RowType dtype = RowType::float32;
  Layout layout = Layout::automatic;
  Bytes chunk{256 * 1024};
  Compression compression = Compression::none;
  int level = 1;
  bool shuffle = true;
  bool overwrite = false;
  bool sync = false;

  void describe(Schema& s) {
    s.field("path", path, "the file to make; until it is complete it is called <path>.part")
        .tuning();
    s.field("dtype", dtype, "of the rows");
    s.field("layout", layout,
            "contiguous: one piece, which can be mapped into memory; chunked: pieces, which can be "
            "compressed; auto: chunked where compression is asked for")
        .tuning();
    s.field("chunk", chunk, "size of a piece before compression, rounded to whole rows")
        .range(4096, 16 << 20)
        .tuning();
    s.field("compression", compression, "deflate: every HDF5 reader can read it").tuning();
    s.field("level", level, "of deflate, from fast to small").range(1, 12).tuning();
    s.field("shuffle", shuffle, "sorts the bytes of a piece before it is compressed").tuning();
    s.field("overwrite", overwrite, "replace an existing file, once the new one is complete")
        .tuning();
    s.field("sync", sync, "finish only when the system has everything on disk").tuning();
  }
};

constexpr std::size_t kMostQueued = 8;  // parts

class Hdf5Write final : public Sink<MelBatch> {
 public:
  explicit Hdf5Write(Hdf5WriteOptions options) : options_(std::move(options)) {}

  Facts plan(const Facts& given, const Facts&, PlanCheck& check) override {
    if (options_.path.empty()) check.error("", "'path' is missing: which file should be written?");
    if (options_.layout == Layout::contiguous && options_.compression != Compression::none)
      check.error("layout",
                  "a contiguous dataset cannot be compressed; layout: auto chooses chunks");
    info_ = given.get_object<FeatureInfo>(FeatureInfo::kFact);
    if (info_ && options_.dtype == RowType::float16 && !info_->is_log)
      check.warning("dtype",
                    "float16 holds 6e-8 to 65504, and these values are no logarithms: quiet ones "
                    "become 0 and loud ones may become infinite");
    return given;
  }

  void start(RunContext& run) override {
    file_ = make_row_file();
    Ledger& ledger = run.ledger;
    order_ = std::make_unique<RowOrder>(ledger.counts().found, [&ledger](std::size_t i) {
      const Outcome o = ledger.outcome(i);
      return o != Outcome::open && o != Outcome::ok;
    });
    ledger.subscribe([this](std::size_t index, Outcome outcome) {
      if (outcome != Outcome::ok) closed(index);
    });
  }

  std::optional<ItemError> consume(std::shared_ptr<const MelBatch> in,
                                   ItemContext& context) override {
    std::vector<PlacedPart> ready;
    bool is_writer = false;
    {
      const std::lock_guard lock(mutex_);
      if (error_) std::rethrow_exception(error_);
      for (std::size_t i = 0; i < in->parts.size(); ++i) {
        const Origin& origin = context.origin(i);
        if (in->parts[i] && !origin.stream->failed())
          order_->take(origin.stream->index(), in->parts[i], origin, ready);
      }
      roll_back();
      finish_values(ready);
      is_writer = queue(ready);
    }
    write(ready, is_writer);
    return std::nullopt;
  }

  // A run that ended early leaves some.
  void drop_waiting() override {
    order_->take_waiting().clear();
    std::exchange(queued_, {}).clear();
  }

  void finish(RunContext& run, Ending ending) override {
    if (!file_) return;
    try {
      if (error_) std::rethrow_exception(error_);
      if (ending == Ending::failed) return file_.reset();
      close_gaps(run);
      complete_ = ending == Ending::complete;
      make_file(run);
      if (complete_)
        file_->publish(options_.sync);
      else
        file_->keep();
      rows_ = order_->total();
      written_ = true;
    } catch (...) {
      file_.reset();
      throw;
    }
  }

  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    if (!written_) return {};
    std::vector<Value> shape;
    for (const hsize_t n : shape_of(rows_)) shape.push_back(Value::scalar(std::to_string(n)));
    return {{"path", Value::scalar(complete_ ? file_->target() : file_->part_path(), {}, true)},
            {"complete", Value::scalar(complete_ ? "true" : "false")},
            {"rows", Value::scalar(std::to_string(rows_))},
            {"shape", Value::list(std::move(shape))},
            {"dtype", OptionType<RowType>::echo(options_.dtype)},
            {"layout", Value::scalar(is_chunked() ? "chunked" : "contiguous")},
            {"bytes", Value::scalar(
                          std::to_string(static_cast<std::uint64_t>(rows_) * file_->row_bytes()))}};
  }

 private:
  // A file ended without rows: those behind it need not wait for it. Called where a stream ends,
  // which may be in a destructor: an error is kept for the next call that can throw.
  void closed(std::size_t index) {
    try {
      std::vector<PlacedPart> ready;
      bool is_writer = false;
      {
        const std::lock_guard lock(mutex_);
        order_->closed(index, ready);
        roll_back();
        finish_values(ready);
        is_writer = queue(ready);
      }
      write(ready, is_writer);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  // Before anything is written where a file's rows were that failed on the way.
  void roll_back() {
    if (const auto row = order_->take_rolled_back()) file_->roll_back(*row);
  }

  [[nodiscard]] bool is_chunked() const {
    return options_.layout == Layout::chunked || options_.compression != Compression::none;
  }

  [[nodiscard]] std::size_t row_bytes() const {
    return info_->values_per_row() * (options_.dtype == RowType::float32 ? 4 : 2);
  }

  [[nodiscard]] std::int64_t chunk_rows() const {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(options_.chunk.count / row_bytes()));
  }

  [[nodiscard]] std::unique_ptr<RowFile> make_row_file() const {
    if (!is_chunked())
      return std::make_unique<RowFile>(options_.path, options_.dtype, info_->values_per_row(),
                                       options_.overwrite);
    std::vector<hsize_t> row = shape_of(0);
    row.erase(row.begin());
    const int level = options_.compression == Compression::deflate ? options_.level : 0;
    return std::make_unique<ChunkedRowFile>(
        options_.path, options_.dtype, std::move(row), options_.overwrite,
        ChunkSettings{chunk_rows(), level, options_.shuffle && level > 0});
  }

  // With the mutex held; true: the caller is the writer from now on. Where a second writer would
  // only wait for the first, what is ready goes to that one, unless it has enough: rows that lie
  // about leave the cache.
  bool queue(std::vector<PlacedPart>& ready) {
    if (ready.empty() || !file_->is_serial()) return false;
    if (!writing_) return writing_ = true;
    if (queued_.size() + ready.size() <= kMostQueued) {
      std::move(ready.begin(), ready.end(), std::back_inserter(queued_));
      ready.clear();
    }
    return false;
  }

  void write(std::vector<PlacedPart>& ready, bool is_writer) {
    std::vector<RowRange> ranges;
    while (!ready.empty()) {
      ranges.clear();
      for (const PlacedPart& p : ready)
        if (p.part->row_count > 0 && !p.part->pending)
          ranges.push_back({p.file_row + p.part->first_row, p.part->values(), p.part->row_count});
      file_->write(ranges);
      ready.clear();  // may close files' lines, and so come back here through closed()
      if (!is_writer) return;
      const std::lock_guard lock(mutex_);
      ready.swap(queued_);
      writing_ = !ready.empty();
    }
  }

  // Values that depend on the whole file: its rows go to a temporary file until the last block is
  // there. With the mutex held; such files are long and rare.
  void finish_values(const std::vector<PlacedPart>& ready) {
    for (const PlacedPart& p : ready) {
      if (!p.part->pending) continue;
      const auto columns = static_cast<std::uint64_t>(p.part->pending_columns);
      if (p.part->row_count > 0)
        file_->spill(static_cast<std::uint64_t>(p.part->first_row) * columns * sizeof(float),
                     p.part->values(),
                     static_cast<std::size_t>(p.part->row_count) * columns * sizeof(float));
      if (p.file_rows <= 0) continue;
      finish_spilled(*file_, *p.part->pending, p.file_rows, p.part->pending_columns,
                     [&](std::int64_t row, const float* values, std::int64_t n) {
                       file_->write(p.file_row + row, values, n);
                     });
    }
  }

  // Files that failed after their rows were placed (in another branch of the graph) leave none.
  void close_gaps(RunContext& run) {
    std::int64_t from = 0, to = 0;
    std::size_t gaps = 0;
    const std::size_t files = run.ledger.counts().found;
    for (std::size_t i = 0; i < files; ++i) {
      const std::int64_t rows = order_->rows(i);
      if (rows == 0) continue;
      if (run.ledger.outcome(i) != Outcome::ok) {
        order_->forget(i);
        ++gaps;
      } else {
        if (from != to) file_->move_rows(from, to, rows);
        to += rows;
      }
      from += rows;
    }
    if (gaps > 0)
      run.warn(fmt::format("rows of {} files that failed late were taken out of {} again", gaps,
                           options_.path));
  }

  [[nodiscard]] std::vector<hsize_t> shape_of(std::int64_t rows) const {
    std::vector<hsize_t> shape{static_cast<hsize_t>(rows)};
    if (info_->frames > 1) shape.push_back(static_cast<hsize_t>(info_->frames));
    shape.push_back(static_cast<hsize_t>(info_->columns));
    return shape;
  }

  void make_file(RunContext& run) {
    const OutputIndex index{run, *order_, *info_, contract(), complete_};
    file_->make_hdf5(shape_of(order_->total()),
                     [&](hid_t file, hid_t rows) { write_layout(file, rows, index); });
  }

  Hdf5WriteOptions options_;
  std::shared_ptr<const FeatureInfo> info_;
  std::unique_ptr<RowFile> file_;
  std::mutex mutex_;
  std::unique_ptr<RowOrder> order_;
  bool writing_ = false;            // somebody is, where only one can
  std::vector<PlacedPart> queued_;  // for that one
  std::exception_ptr error_;
  std::int64_t rows_ = 0;
  bool complete_ = false, written_ = false;
};

const RegisterStage<Hdf5Write, Hdf5WriteOptions> registered{
    "hdf5_write", "Writes rows to one HDF5 file, in manifest order.", true};

}  // namespace
}  // namespace melflow
