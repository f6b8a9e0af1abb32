// kaldi_write: writes rows to one archive of Kaldi with its tables, in manifest order, and an index
// beside it. docs/corpora.md describes them.
//
// In: MelBatch.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/stage/registry.h"
#include "stages/files/files_read.h"
#include "stages/files/own_file.h"
#include "stages/manifest.h"
#include "stages/output/formats/kaldi_ark.h"
#include "stages/output/recording_names.h"
#include "stages/output/row_sink.h"

namespace melflow {
namespace {

struct KaldiWriteOptions : RowSinkOptions {
  std::string utterance, speaker, texts;

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
    describe_ending(s);
  }
};

// A text as one word, or as words with single blanks between them.
std::string words_of(std::string_view text, char blank) {
  std::string out;
  for (const char c : text)
    if (c != ' ' && (c < '\t' || c > '\r'))
      out += c;
    else if (!out.empty() && out.back() != blank)
      out += blank;
  while (!out.empty() && out.back() == blank) out.pop_back();
  return out;
}

class KaldiWrite final : public RowSink {
 public:
  static constexpr const char* kFeatureStage = "hdf5_write";

  explicit KaldiWrite(const KaldiWriteOptions& options) : RowSink(options), options_(options) {}

  Properties plan(const Properties& given, const Requirements& below, PlanCheck& check) override {
    if (!target().path.empty() && !has_ending())
      check.error("path", "'" + target().path +
                              "' does not end in .ark; name it NAME.ark, since the files beside it "
                              "are named after NAME");
    if (target().dtype != NumberType::float32)
      check.error("dtype",
                  "archives of Kaldi are float32; omit dtype, or write 16 bits by "
                  "hdf5_write or npy_write");
    if (target().split_files)
      check.error("split_files",
                  "an archive and its tables are one folder of data; omit it, and "
                  "give each split a pipeline of its own, or `melflow export`");
    return RowSink::plan(given, below, check);
  }

  void start(RunContext& run) override {
    auto names = std::make_shared<KaldiNames>();
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < run.source.count(); ++i) paths.push_back(run.source.name(i));
    names->keys =
        options_.utterance.empty() ? recording_names(paths) : column(run, "utterance", '\0');
    check_keys(names->keys, paths);
    if (!options_.speaker.empty()) names->speakers = column(run, "speaker", '_');
    if (!options_.texts.empty()) names->texts = column(run, "text", ' ');
    names_ = std::move(names);
    if (names_->speakers || names_->texts) check_no_data_folder(run);
    RowSink::start(run);
  }

 private:
  [[nodiscard]] bool has_ending() const { return target().path.ends_with(kArkEnding); }
  [[nodiscard]] const char* stage_name() const override { return "kaldi_write"; }

  // The texts of the column that an option names; `blank` between words, '\0': as they are.
  [[nodiscard]] std::vector<std::string> column(const RunContext& run, const char* option,
                                                char blank) const {
    const std::string& name = option == std::string_view("utterance") ? options_.utterance
                              : option == std::string_view("speaker") ? options_.speaker
                                                                      : options_.texts;
    const auto* listed = manifest_source(run);
    const std::vector<std::string> there =
        listed != nullptr ? listed->manifest().text_names() : std::vector<std::string>{};
    const auto at = std::find(there.begin(), there.end(), name);
    if (at == there.end())
      throw RunError(fmt::format(
          "kaldi_write.{}: the list has no column '{}'{}; name one that file_list.columns reads",
          option, excerpt(name),
          there.empty() ? "" : fmt::format(", there are {}", fmt::join(there, ", "))));
    const auto which = static_cast<std::size_t>(at - there.begin());
    std::vector<std::string> out;
    for (std::size_t i = 0; i < listed->manifest().size(); ++i) {
      const std::string_view text = listed->manifest().text(i, which);
      out.push_back(blank == '\0' ? std::string(text) : words_of(text, blank));
    }
    return out;
  }

  // The tables of a folder of data that is read belong to its list, and are not named by it.
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

  static void check_keys(const std::vector<std::string>& keys,
                         const std::vector<std::string>& paths) {
    std::unordered_set<std::string_view> seen;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool is_word = !keys[i].empty() && words_of(keys[i], ' ').find(' ') == keys[i].npos &&
                           words_of(keys[i], ' ') == keys[i];
      if (!is_word || !seen.insert(keys[i]).second)
        throw RunError(fmt::format(
            "kaldi_write.utterance: {} has the name '{}', which {}; Kaldi wants a word of its own "
            "for each utterance",
            excerpt(paths[i], kLongestPath), excerpt(keys[i]),
            is_word ? "another one has" : "is no word"));
    }
  }

  [[nodiscard]] std::vector<std::string> files_of(const std::string& path) const override {
    if (!path.ends_with(kArkEnding)) return {path};
    return KaldiFile::files_of(path, !options_.speaker.empty(), !options_.texts.empty());
  }
  [[nodiscard]] std::unique_ptr<RowPartFile> make_row_file(const std::string& path,
                                                           const Opening& opening) const override {
    return std::make_unique<KaldiFile>(path, info().values_per_row(), opening, names_);
  }
  void complete_file(RowPartFile& file, const Shape& shape, const OutputIndex& index) override {
    static_cast<KaldiFile&>(file).make_ark(shape, index);
  }
  [[nodiscard]] std::string layout_facts() const override {
    return fmt::format("ark, {}, {}, {}", options_.utterance, options_.speaker, options_.texts);
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
