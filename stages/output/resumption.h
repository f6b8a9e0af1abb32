// State left by an interrupted run: its journal and its work files (`.part`), and how far a new run
// may trust them.
//
// A file of the corpus is done where the journal says so, it is listed in the same place and has
// not changed since, and its rows are in the work file. Where the machine was restarted since
// then, or the run was already at its ending, the rows have to have the hashes that they had.
//
// So it is with an update, where a file is done, too, whose rows the earlier output has. New rows
// that come behind those of a file that is extended in place have a work file of their own, beside
// it (added_path()), until all are there.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/stage/run_context.h"
#include "pipeline/stage/sink_ledger.h"
#include "stages/output/earlier_output.h"
#include "stages/output/formats/row_part_file.h"
#include "stages/output/output_sections.h"
#include "stages/output/row_writer.h"
#include "stages/output/run_journal.h"
#include "stages/output/sink_statistics.h"

namespace melflow {

class Resumption {
 public:
  using Files = std::vector<std::unique_ptr<RowPartFile>>;
  /// Opens the work file of a section to be gone on with.
  using Open = std::function<std::unique_ptr<RowPartFile>(std::size_t section)>;
  struct Uses {
    RunContext& run;
    const OutputSections& sections;
    const RunJournal::Facts& facts;
    const std::vector<std::string>&
        works;  ///< what is being made, of each section, without `.part`
    const Open& open;
    const EarlierOutput& earlier;
  };
  /// Looks for the work of the output at `path`; changes nothing. `uses` is for this call. Throws
  /// RunError when another run is at it.
  Resumption(const std::string& path, const Uses& uses);

  /// For rows that are to be added to the output at `path`: what their work file would be called.
  static std::string added_path(const std::string& path);

  /// Whether an interrupted run has left a journal.
  [[nodiscard]] bool is_there() const { return journal_ != nullptr; }
  /// How many files, from the first on, are done.
  [[nodiscard]] std::size_t files() const { return files_; }
  /// Why of work that is there no file can be kept; "" where one can, or there is no work.
  [[nodiscard]] std::string why_of_no_use() const;
  /// What it says of recordings that were being decoded when it ended.
  [[nodiscard]] const UnderWay::Entries& under_way() const { return under_way_; }
  /// Why work that is there cannot be gone on with; "" where it can, or there is none.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  struct Into {
    RunContext& run;
    SinkLedger& ledger;
    RowWriter& writer;
    SinkStatistics& statistics;
  };
  /// Goes on behind the first `done` files, at most files(): says in the accounts what became of
  /// them, and cuts the work files, which take_files() then gives. Returns the journal; it has
  /// commits on the first `committed` of these files. `resumed`: of those whose rows are not from
  /// an earlier output.
  struct Resumed {
    std::size_t files = 0;
    std::int64_t rows = 0;
  };
  std::unique_ptr<RunJournal> resume(std::size_t done, const Into& into, std::size_t& committed,
                                     Resumed& resumed);
  [[nodiscard]] Files take_files() { return std::move(files_of_sections_); }

  /// Removes a journal whose work is published, should its run have been ended just then.
  static void clear(const std::string& path, const OutputSections& sections);
  /// Gives up what is there: removes it, or, as `keeps` says, keeps it as a backup under other
  /// names. Returns these; "" where nothing was worth it.
  std::string give_up(const OutputSections& sections, bool keeps);

 private:
  struct Section {
    std::int64_t rows = 0, safe = 0;
  };
  struct Said {
    bool must_verify = true;
    bool has_rows = false;
    UnderWay::Entries under_way;
    std::vector<std::string> complete;  // the hashes of the output, where it was
  };
  [[nodiscard]] Said look_through();
  [[nodiscard]] bool is_done(const RunJournal::File& file, const Uses& uses, bool verifies);

  std::string path_;
  std::unique_ptr<RunJournal> journal_;
  LogFile::Place begin_;  // of the records behind the facts
  Files files_of_sections_;
  std::vector<Section> sections_;
  std::size_t files_ = 0;
  std::string refusal_;
  UnderWay::Entries under_way_;
  std::string unlike_;        // the first file that is not what the journal says
  bool has_rows_ = false;     // though they cannot be gone on with
  std::string stamped_path_;  // of the last file looked at: utterances share theirs
  FileStamp stamp_;
};

}  // namespace melflow
