// The state left by an interrupted run: its journal and its work files (`.part`), and how far a new
// run may trust them.
//
// A file of the corpus is done where the journal says so, it is listed at the same position and has
// not changed since, and its rows are in the work file. Where the machine was restarted since then,
// or the run was already ending, the rows must still have their recorded hashes.
//
// The same holds for an update, where a file is also done if the earlier output has its rows. New
// rows for an output that is extended in place have a work file of their own beside it
// (SectionFile) until all are there.
//
// Threads: one, before the first row. It has no lock, and is gone when rows come. Errors: RunError
// where another program holds the files; what cannot be read or trusted is no error, but work that
// cannot be continued, and give_up() tells why.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/stage/run_context.h"
#include "pipeline/stage/sink_ledger.h"
#include "stages/output/output_sections.h"
#include "stages/output/plan_accounts.h"
#include "stages/output/row_plan.h"
#include "stages/output/run_journal.h"
#include "stages/output/section_file.h"
#include "stages/run_task.h"

namespace melflow {

class Resumption {
 public:
  struct Uses {
    RunContext& run;
    const OutputSections& sections;
    const RunJournal::Facts& facts;
    const RowPlan& plan;
  };
  /// Looks for the work of the output at `path`; changes nothing. `uses` is needed only during the
  /// call; `files`, by section, as long as this object, and where there is work they are opened.
  /// Throws RunError when another run is writing it.
  Resumption(const std::string& path, const Uses& uses, std::vector<SectionFile>& files);

  /// Whether an interrupted run has left a journal.
  [[nodiscard]] bool is_there() const { return journal_ != nullptr; }
  /// The number of files, from the first on, that are done.
  [[nodiscard]] std::size_t files() const { return files_; }
  /// The recordings that were being decoded when the interrupted run ended.
  [[nodiscard]] const UnderWay::Entries& under_way() const { return under_way_; }

  /// Continues behind the first `done` files, at most files(): accounts for them, and cuts the work
  /// files. Returns the journal; it has commits for the first `committed` of these files.
  /// `resumed`: those whose rows are not from an earlier output.
  std::unique_ptr<RunJournal> resume(std::size_t done, const Accounts& into, std::size_t& committed,
                                     KeptFiles& resumed);

  /// Removes the journal of a published output, whose run was ended before it could do so. `files`:
  /// all that make up the output.
  static void clear(const std::string& path, const std::vector<std::string>& files);
  /// Gives up the existing work and reports that: removes it, or keeps rows that only another run
  /// could continue, as a backup under other names. `files`: all that make up the output;
  /// `starts_over`: the run cannot resume whatever there is. Throws RunError where the run must
  /// resume.
  void give_up(const Resume& how, const std::vector<std::string>& files, bool starts_over);

 private:
  struct Section {
    std::int64_t rows = 0, safe = 0;
  };
  struct Said {
    bool must_verify = true;
    bool has_rows = false;
    UnderWay::Entries under_way;
    std::vector<std::string> complete;  // hashes of the output, if it was complete
  };
  std::string remove_work(const std::vector<std::string>& files, bool keeps);
  [[nodiscard]] Said look_through();
  [[nodiscard]] std::string why_of_no_use() const;
  [[nodiscard]] bool is_done(const RunJournal::File& file, const Uses& uses, bool verifies);

  std::string path_;
  std::unique_ptr<RunJournal> journal_;
  LogFile::Place begin_;  // where the records behind the facts begin
  std::vector<SectionFile>& work_;
  std::vector<Section> sections_;
  std::size_t files_ = 0;
  std::string refusal_;  // why the work cannot be continued; "" where it can, or there is none
  UnderWay::Entries under_way_;
  std::string unlike_;        // the first file that differs from the journal's record
  bool has_rows_ = false;     // even if they cannot be continued
  std::string stamped_path_;  // of the last file looked at: utterances share theirs
  FileStamp stamp_;
};

}  // namespace melflow
