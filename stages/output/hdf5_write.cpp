// hdf5_write: writes rows to one HDF5 file, in manifest order; docs/output-format.md describes it.
//
// In: MelBatch.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/cpu.h"
#include "pipeline/stage/registry.h"
#include "stages/output/formats/chunked_row_file.h"
#include "stages/output/formats/hdf5_layout.h"
#include "stages/output/formats/row_file.h"
#include "stages/output/row_sink.h"

namespace melflow {

enum class Layout { automatic, contiguous, chunked };
template <>
struct EnumNames<Layout> {
  static constexpr std::pair<const char*, Layout> values[] = {{"auto", Layout::automatic},
                                                              {"contiguous", Layout::contiguous},
                                                              {"chunked", Layout::chunked}};
};

enum class Access { sequential, blocks, shuffled };
template <>
struct EnumNames<Access> {
  static constexpr std::pair<const char*, Access> values[] = {{"sequential", Access::sequential},
                                                              {"blocks", Access::blocks},
                                                              {"shuffled", Access::shuffled}};
};

enum class Compression { none, deflate };
template <>
struct EnumNames<Compression> {
  static constexpr std::pair<const char*, Compression> values[] = {
      {"none", Compression::none}, {"deflate", Compression::deflate}};
};

namespace {

// Memory for the pieces being packed [bytes], on which `concurrency: auto` depends.
constexpr std::size_t kPackingMemory = 128 << 20;

// Reading one row unpacks a whole chunk. docs/decisions/0005-chunks.md has the measurement.
Bytes chunk_for(Access access) {
  return {access == Access::sequential ? 256U << 10
          : access == Access::blocks   ? 32U << 10
                                       : 8U << 10};
}

// Returns the path's ending where it promises another format, else "".
std::string other_format(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  constexpr std::string_view kOthers[] = {".npy", ".npz",     ".csv", ".tsv", ".json", ".pt",
                                          ".pth", ".parquet", ".wav", ".txt", ".zarr", ".mat"};
  return std::find(std::begin(kOthers), std::end(kOthers), ending) != std::end(kOthers) ? ending
                                                                                        : "";
}

struct Hdf5WriteOptions : RowSinkOptions {
  Layout layout = Layout::automatic;
  Access access = Access::sequential;
  std::optional<Bytes> chunk;
  Compression compression = Compression::none;
  int level = 1;
  bool shuffle = true;

  void describe(Schema& s) {
    describe_rows(s, "path of the HDF5 file; it is called <path>.part until it is complete");
    s.field("layout", layout,
            "how the rows are stored; contiguous: in one piece, which can be mapped into memory; "
            "chunked: in chunks, which can be compressed; auto: chunked with compression, else "
            "contiguous")
        .tuning();
    s.field(
         "access", access,
         "how chunked rows will be read; sets the default of chunk; sequential: from the first "
         "to the last; blocks: a few hundred at a time, from any place; shuffled: one at a time, "
         "in any order")
        .tuning();
    s.field("chunk", chunk,
            "size of a chunk before compression, rounded to whole rows; not set: 256KiB, 32KiB or "
            "8KiB with access: sequential, blocks or shuffled")
        .range(4096, 16 << 20)
        .tuning()
        .used_with("layout: chunked, or compression", [this] { return is_chunked(); });
    s.field("compression", compression,
            "compression of the rows, without loss; deflate: zlib's, which every HDF5 reader can "
            "read; none: rows are not compressed")
        .tuning();
    const auto is_packed = [this] { return compression != Compression::none; };
    s.field("level", level, "effort of compression: deflate; higher: slower, smaller files")
        .range(1, 12)
        .tuning()
        .used_with("compression: deflate", is_packed);
    s.field("shuffle", shuffle,
            "reorders the bytes of a chunk before compression: the first bytes of all values, then "
            "the second bytes, and so on; compresses better")
        .tuning()
        .used_with("compression: deflate", is_packed);
    describe_ending(s);
  }

  [[nodiscard]] bool is_chunked() const {
    return layout == Layout::chunked || compression != Compression::none;
  }
};

class Hdf5Write final : public RowSink {
 public:
  explicit Hdf5Write(Hdf5WriteOptions options) : RowSink(options), options_(std::move(options)) {}

  // A thread that packs large pieces takes several times their size in memory.
  [[nodiscard]] StageResources resources() const override {
    StageResources out = RowSink::resources();
    const std::size_t bytes = options_.chunk.value_or(chunk_for(options_.access)).count;
    const auto few = std::max(1, static_cast<int>(kPackingMemory / (4 * bytes)));
    if (is_chunked() && few < available_cpus()) out.default_concurrency = few;
    return out;
  }

  Properties plan(const Properties& given, const Requirements& below, PlanCheck& check) override {
    if (options_.layout == Layout::contiguous && options_.compression != Compression::none)
      check.error("layout",
                  "a contiguous dataset cannot be compressed; layout: auto chooses chunks");
    if (const std::string ending = other_format(options_.path); !ending.empty())
      check.warning(
          "path",
          fmt::format("{}: is written as HDF5 despite its extension; name it .h5{}", options_.path,
                      ending == ".npy" ? ", or use the stage npy_write" : ""));
    if (options_.normalize && is_chunked())
      check.error("normalize",
                  "takes rows in one piece (layout: contiguous); into chunks they go normalised by "
                  "the stage normalize, in a second run");
    return RowSink::plan(given, below, check);
  }

  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    auto out = RowSink::summary();
    const auto cost = space_->cost.estimates();
    if (out.empty() || !cost) return out;
    const auto map_of = [](const PackingCost::Estimate& e) {
      Value map = Value::map({});
      map.set("seconds", Value::scalar(fmt::format("{:.3g}", e.seconds)));
      map.set("size", Value::scalar(fmt::format("{:.4f}", e.size)));
      return map;
    };
    Value packing = map_of(cost->first);
    packing.set("level", Value::scalar(std::to_string(level())));
    packing.set("level_1", map_of(cost->second));
    out.emplace_back("packing", std::move(packing));
    return out;
  }

 private:
  [[nodiscard]] const char* stage_name() const override { return "hdf5_write"; }
  [[nodiscard]] bool is_chunked() const { return options_.is_chunked(); }
  [[nodiscard]] std::string layout_name() const override {
    return is_chunked() ? "chunked" : "contiguous";
  }
  [[nodiscard]] std::string layout_facts() const override {
    if (!is_chunked()) return layout_name();
    return fmt::format("chunks of {} rows, deflate {}, shuffle {}", chunk_rows(), level(),
                       options_.shuffle);
  }

  [[nodiscard]] int level() const {
    return options_.compression == Compression::deflate ? options_.level : 0;
  }

  [[nodiscard]] std::int64_t chunk_rows() const {
    const std::size_t row_bytes = info().values_per_row() * size_of(target().dtype);
    const std::size_t bytes = options_.chunk.value_or(chunk_for(options_.access)).count;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes / row_bytes));
  }

  [[nodiscard]] std::unique_ptr<RowPartFile> make_row_file(const std::string& path,
                                                           const Opening& opening) const override {
    if (!is_chunked())
      return std::make_unique<RowFile>(path, info().name, target().dtype, info().values_per_row(),
                                       opening);
    const Shape shape = shape_of(info(), 0);
    return std::make_unique<ChunkedRowFile>(
        path, info().name, target().dtype, std::vector<hsize_t>(shape.begin() + 1, shape.end()),
        opening, ChunkSettings{chunk_rows(), level(), options_.shuffle && level() > 0, space_});
  }

  [[nodiscard]] std::size_t file_memory(int threads, std::size_t files) const override {
    if (!is_chunked()) return 0;
    const std::size_t row_bytes = info().values_per_row() * size_of(target().dtype);
    return ChunkSpace::most(static_cast<std::size_t>(chunk_rows()) * row_bytes, level(), threads,
                            files);
  }

  [[nodiscard]] std::int64_t extensible_at() const override {
    return is_chunked() ? -1 : static_cast<std::int64_t>(RowFile::kDataOffset);
  }

  void complete_file(RowPartFile& file, const Shape& shape, const OutputIndex& index) override {
    complete_hdf5(static_cast<RowFile&>(file), shape, index);
  }

  Hdf5WriteOptions options_;
  std::shared_ptr<ChunkSpace> space_ = std::make_shared<ChunkSpace>();
};

const RegisterStage<Hdf5Write, Hdf5WriteOptions> register_hdf5_write{
    "hdf5_write",
    "Writes rows to one HDF5 file, in the order of the file list (by path, or as in its manifest).",
    true};

}  // namespace
}  // namespace melflow
