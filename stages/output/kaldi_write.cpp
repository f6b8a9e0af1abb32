// kaldi_write: writes rows to one archive of Kaldi with its tables, in manifest order, and an index
// beside it. docs/corpora.md describes them.
//
// In: MelBatch.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/files/files_read.h"
#include "stages/files/own_file.h"
#include "stages/manifest.h"
#include "stages/output/formats/kaldi_ark.h"
#include "stages/output/recording_names.h"
#include "stages/output/row_sink.h"
#include "stages/recording_groups.h"

namespace melflow {
namespace {

struct KaldiWriteOptions : RowSinkOptions {
  std::string utterance, speaker, texts;
  int compression = 0;

  void describe(Schema& s) {
    describe_rows(s,
                  "path of the archive; feats.ark has its table in feats.scp and its index in "
                  "feats.index.npy and feats.index.json; each is called <path>.part until all are "
                  "complete");
    s.field("utterance", utterance,
            "column of the list that names the utterances; not set: their paths without the ending")
        .tuning();
    s.field("speaker", speaker,
            "column of the list that names the speakers: writes utt2spk and spk2utt beside path")
        .tuning();
    s.field("text", texts, "column of the list with transcripts: writes text beside path").tuning();
    s.field("compression", compression,
            "how matrices are compressed, with loss, by copy-feats' number; 2: 8 bits by quarters "
            "of each column; 3: 16 bits; 5: 8 bits; 1: 2, or 3 up to 8 rows; 0: none. Such an "
            "output cannot be updated")
        .range(0, 5);
    describe_ending(s);
  }
};

class KaldiWrite final : public RowSink, public RefusesUpdate {
 public:
  static constexpr const char* kFeatureStage = "hdf5_write";

  explicit KaldiWrite(const KaldiWriteOptions& options) : RowSink(options), options_(options) {}

  Properties plan(const Properties& given, const Requirements& below, PlanCheck& check) override {
    const auto rows = given.get_or(property::kFeatures, nullptr);
    if (rows && rows->has_integers())
      check.error("from",
                  fmt::format("archives of Kaldi are float32, and what arrives are integers "
                              "of {}; write them by hdf5_write, npy_write or tar_write",
                              to_text(rows->type)));
    else if (target().dtype != NumberType::float32)
      check.error("dtype",
                  "archives of Kaldi are float32; omit dtype, or write 16 bits by "
                  "hdf5_write or npy_write");
    if (target().split_files)
      check.error("split_files",
                  "an archive and its tables are one folder of data; omit it, and "
                  "give each split a pipeline of its own, or `melflow export`");
    if (options_.compression == 4)
      check.error("compression",
                  "4 is for whole numbers from -32768 to 32767, which no rows are; set 3");
    Properties out = RowSink::plan(given, below, check);
    if (options_.compression != 0 && given.get_or(property::kFeatures, nullptr) &&
        info().is_samples() && info().frames <= 1)
      check.error("compression",
                  "recordings of samples are vectors, which Kaldi does not compress");
    return out;
  }

  std::optional<Value> settings() const override {
    std::optional<Value> out = RowSink::settings();
    if (options_.compression != 0)
      out->set("compression", OptionType<int>::echo(options_.compression));
    return out;
  }

  [[nodiscard]] std::string why_no_update() const override {
    if (options_.compression == 0) return {};
    return fmt::format(
        "{}: compressed matrices cannot be updated, since they would lose precision again; run "
        "the pipeline with overwrite: true",
        target().path);
  }
  void look(RunContext& run) override {
    check_update(run);
    RowSink::look(run);
  }

  void start(RunContext& run) override {
    auto names = std::make_shared<KaldiNames>();
    names->keys =
        options_.utterance.empty() ? recording_names(run) : column(run, "utterance", '\0');
    check_names(run, names->keys, "kaldi_write.utterance", [](const std::string& name) {
      return kaldi_words(name, ' ') == name && name.find(' ') == name.npos;
    });
    if (!options_.speaker.empty()) names->speakers = column(run, "speaker", '_');
    if (!options_.texts.empty()) names->texts = column(run, "text", ' ');
    names_ = std::move(names);
    if (names_->speakers || names_->texts) check_no_data_folder(run);
    RowSink::start(run);
  }

 private:
  [[nodiscard]] const char* stage_name() const override { return "kaldi_write"; }
  [[nodiscard]] const char* ending() const override { return kArkEnding; }
  [[nodiscard]] KaldiForm form() const {
    return {!options_.speaker.empty(), !options_.texts.empty(),
            !target().statistics_by.empty() && !target().normalize, options_.compression};
  }

  // The texts of the column that an option names; `blank` between words, '\0': as they are.
  [[nodiscard]] std::vector<std::string> column(const RunContext& run, const char* option,
                                                char blank) const {
    const std::string& name = option == std::string_view("utterance") ? options_.utterance
                              : option == std::string_view("speaker") ? options_.speaker
                                                                      : options_.texts;
    std::vector<std::string> out;
    for (const std::string_view text :
         listed_texts(run, name, fmt::format("kaldi_write.{}", option)))
      out.push_back(blank == '\0' ? std::string(text) : kaldi_words(text, blank));
    return out;
  }

  // Keeps the tables of a data folder that the run reads; files_read() has only the folder's list.
  void check_no_data_folder(const RunContext& run) const {
    namespace fs = std::filesystem;
    const std::string folder = folder_of(without_links(target().path));
    for (const std::string& input : files_read(run)) {
      const std::string name = fs::path(input).filename();
      const bool is_in_one = name == "segments" || name == "wav.scp";
      if (is_same_file(is_in_one ? folder_of(without_links(input)) : input, folder))
        throw RunError(fmt::format(
            "{}: this run reads the folder of data that it lies in, whose utt2spk, spk2utt or text "
            "would be replaced; omit speaker and text, or write into another folder",
            target().path));
    }
  }

  [[nodiscard]] std::vector<std::string> files_of(const std::string& path) const override {
    if (!path.ends_with(kArkEnding)) return {path};
    return KaldiFile::files_of(path, form());
  }
  [[nodiscard]] std::unique_ptr<RowPartFile> make_row_file(const std::string& path,
                                                           const Opening& opening) const override {
    return std::make_unique<KaldiFile>(path, info().values_per_row(), opening, form(), names_);
  }
  void complete_file(RowPartFile& file, const Shape& shape, const OutputIndex& index) override {
    static_cast<KaldiFile&>(file).make_ark(shape, index, rows_hashes());
  }
  [[nodiscard]] std::string layout_facts() const override {
    return fmt::format("ark, {}, {}, {}{}", options_.utterance, options_.speaker, options_.texts,
                       form().cmvn ? ", cmvn" : "");
  }

  KaldiWriteOptions options_;
  std::shared_ptr<const KaldiNames> names_;
};

const RegisterStage<KaldiWrite, KaldiWriteOptions> register_kaldi_write{
    "kaldi_write",
    "Writes rows to one archive of Kaldi (ark and scp), in the order of the file list (by path, or "
    "as in its manifest).",
    true};

}  // namespace
}  // namespace melflow
