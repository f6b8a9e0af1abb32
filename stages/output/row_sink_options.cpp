#include "stages/output/row_sink_options.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "pipeline/base/text.h"
#include "stages/files/own_file.h"
#include "stages/other_names.h"
#include "stages/path_advice.h"

namespace melflow {
namespace {

// Only warns: a pipeline may be checked on another machine than the one it runs on.
void check_folder(const std::string& file, PlanCheck& check) {
  if (const std::string url = url_problem(file); !url.empty()) return check.error("path", url);
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    return check.warning("path",
                         excerpt(file, 4096) +
                             " is a folder, but path is the name of a file; add one, such as " +
                             excerpt((std::filesystem::path(file) / "features.h5").string(), 4096));
  if (folder.empty() || file.find("${") != std::string::npos ||
      std::filesystem::exists(folder, error) || error)
    return;
  const std::string why = path_advice(file);
  check.warning("path",
                fmt::format("the folder '{}' does not exist{}", excerpt(folder.string(), 4096),
                            why.empty() ? ", and a run does not create it; create it first, "
                                          "or change the path"
                                        : why));
}

}  // namespace

void RowSinkOptions::describe_rows(Schema& s, const std::string& what) {
  s.other_names(other_names::of_row_sink());
  s.other_values(other_names::values_of_row_sink());
  s.field("path", path, what + "; required").tuning();
  s.field("dtype", dtype,
          "number type of the stored values; float16: 11 significant bits, up to 65504; bfloat16: "
          "8, with the range of float32; beyond it a recording fails; int16: for rows of samples, "
          "times 32768, clipped. Integers stay as they are");
  s.field("statistics", statistics,
          "rows over which the mean and standard deviation of every column are computed and "
          "stored; none: neither; train: rows of the training splits (such as train and "
          "train-clean-100), all rows where there are no splits; all: all rows")
      .tuning();
  s.field("statistics_splits", statistics_splits,
          "with statistics: train, the names of the splits whose rows are taken; not set: those "
          "that are called training")
      .tuning();
  s.field("statistics_by", statistics_by,
          "column of the list, or label or split: also computes mean and standard deviation over "
          "the rows of each speaker, or whatever else the column names; needs statistics: train or "
          "all, which count for recordings without a text")
      .tuning();
  s.field("normalize", normalize,
          "scales all rows, of every split, by the statistics, with statistics_by by those of "
          "their own speaker: (x - mean) / std, after the last row is written; needs statistics: "
          "train or all");
}

void RowSinkOptions::describe_ending(Schema& s) {
  s.field(
       "split_files", split_files,
       "writes a file for each split, with the name of the split before the ending of path "
       "(features.train.h5, features.train.npy); rows of recordings in no split go to path itself")
      .tuning();
  s.field("overwrite", overwrite,
          "replaces an existing file once the new one is complete; false: the run does not start "
          "if the file exists. A file with rows is never replaced by one without any")
      .tuning();
  s.field("max_dropped", max_dropped,
          "largest part of the earlier output, in recordings or as a share of the rows, that an "
          "update may drop because recordings are gone; beyond that, as when a disk is not "
          "mounted, it fails. 100%: no limit")
      .tuning();
  s.field("checkpoint", checkpoint,
          "bytes after which the run's progress is noted in the journal beside the output, at "
          "least every 5 s. A killed run loses what it did since. With sync: true, all is on disk "
          "at each note")
      .range(1, std::int64_t{1} << 40)
      .tuning();
  s.field("sync", sync, "waits until the system has written everything to disk before the run ends")
      .tuning();
}

void RowSinkOptions::check(const std::string& ending, PlanCheck& check) const {
  if (path.empty())
    check.error("", "'path' is missing; write path: FILE, the file that this node makes");
  if (!path.empty() && !path.ends_with(ending))
    check.error("path",
                fmt::format("'{}' does not end in {}; name it NAME{}, since the files beside "
                            "it are named after NAME",
                            path, ending, ending));
  check_folder(path, check);
  if (dtype == NumberType::int16 && normalize)
    check.error("normalize",
                "normalised values go beyond full scale, which int16 cannot hold; "
                "set dtype: float32, or leave the samples as they are");
  if (normalize && statistics == StatisticsOf::none)
    check.error("normalize",
                "scales by statistics, and none are computed; set statistics: train (or all)");
  if (!statistics_splits.empty() && statistics != StatisticsOf::train)
    check.error("statistics_splits",
                "names the splits of statistics: train; set that, or remove it");
  if (!statistics_by.empty() && statistics == StatisticsOf::none)
    check.error("statistics_by",
                "needs the statistics of all rows, which count for recordings without a text; set "
                "statistics: train (or all)");
}

Value RowSinkOptions::settings() const {
  Value out = Value::map({});
  out.set("dtype", OptionType<NumberType>::echo(dtype));
  if (!normalize) return out;
  out.set("normalize", OptionType<StatisticsOf>::echo(statistics));
  if (!statistics_splits.empty())
    out.set("statistics_splits", OptionType<std::vector<std::string>>::echo(statistics_splits));
  if (!statistics_by.empty())
    out.set("statistics_by", OptionType<std::string>::echo(statistics_by));
  return out;
}

}  // namespace melflow
