#include "stages/output/row_sink_options.h"

#include "stages/other_names.h"

namespace melflow {

void RowSinkOptions::describe_rows(Schema& s, const std::string& what) {
  s.other_names(other_names::of_row_sink());
  s.field("path", path, what).tuning();
  s.field("dtype", dtype,
          "type of the stored numbers; float32; float16: 11 significant bits, up to 65504; "
          "bfloat16: 8, with the range of float32. A file with a larger value fails. A graphics "
          "processor writes 16-bit rows itself where nothing before the sink needs more");
  s.field("statistics", statistics,
          "store mean and standard deviation of every column, of the first split's rows (train; of "
          "all where there are no splits) or of all")
      .tuning();
  s.field("normalize", normalize,
          "when all rows are there, scale their columns, in every split, by the statistics");
}

void RowSinkOptions::describe_ending(Schema& s) {
  s.field(
       "split_files", split_files,
       "a file for each split, named after it: features.train.h5 for path: features.h5; what has "
       "no split goes to the path itself")
      .tuning();
  s.field("overwrite", overwrite,
          "replace an existing file, once the new one is complete; one with rows stays where no "
          "file of the run gives any")
      .tuning();
  s.field(
       "max_dropped", max_dropped,
       "the most of the earlier output that an update drops because its files are gone, in files "
       "or as a share of the rows; more than that is taken for a disk that is not mounted, and "
       "the output stays as it is. 100%: any")
      .tuning();
  s.field("sync", sync, "finish only when the system has everything on disk").tuning();
}

}  // namespace melflow
