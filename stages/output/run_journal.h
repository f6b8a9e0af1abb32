// `<path>.journal`: the progress of a run, so that the next run can resume it.
//
// A log (files/log_file) of:
//
//   facts    what decides the bytes of the output, by name; a run with other facts cannot resume
//   begin    the boot of the machine on which a run begins or resumes
//   under way   the recordings being decoded, and what is known of some
//            (files/under_way.h); its bytes change
//   commit   the outcomes of the next files of the corpus, all of whose rows are in the work file
//   ending   from here on the work file may be changed in other ways than by adding rows
//   complete the hashes of the files of an output that is about to get its name
//
// Threads: one at a time; Checkpoints has the lock. What append_under_way() returns is memory that
// other threads change while the journal is open. Errors: RunError where it cannot be written; what
// cannot be read ends it (next()).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pipeline/stage/ledger.h"
#include "stages/files/log_file.h"
#include "stages/files/under_way.h"
#include "stages/items.h"
#include "stages/manifest.h"
#include "stages/output/rows/row_order.h"

namespace melflow {

class RunJournal {
 public:
  using Facts = std::vector<std::pair<std::string, std::string>>;

  /// The outcome of a file.
  struct File {
    std::uint64_t name_hash = 0;  ///< of its name and where its rows belong (name_hash()), 63 bits
    Ledger::Entry in_run;
    Ledger::Entry in_sink;  ///< open: as in the run; else the file was left out of this output
    bool is_kept = false;   ///< its rows are those of an earlier output
    std::int64_t rows = 0;  ///< in the work file
    std::uint64_t rows_hash = 0;
    AboutFile about;
    FileStamp stamp{};
    std::uint64_t content = 0;
  };
  struct Begin {
    std::string boot;  ///< "" where the system does not say
  };
  struct Commit {
    std::size_t first = 0;
    std::vector<File> files;  ///< those from `first` on
  };
  struct Ending {};
  struct Complete {
    std::vector<std::string> hashes;  ///< index_hash() of each file
  };
  using Record = std::variant<Facts, Begin, Commit, Ending, Complete, UnderWay::Entries>;

  /// Returns the facts in which `before` and `now` differ, as "it was made with another backend
  /// (cpu, now cuda), ..."; "" where there are none.
  static std::string difference(const Facts& before, const Facts& now);

  /// The path of the journal for the output at `path`.
  static std::string path_of(const std::string& path);
  static std::uint64_t name_hash(std::string_view name, std::size_t section);
  /// The id of the machine's present boot; "" where the system does not say.
  static std::string boot_now();

  /// Both as in LogFile.
  static std::unique_ptr<RunJournal> create(const std::string& path);
  static std::unique_ptr<RunJournal> open(const std::string& path);

  [[nodiscard]] LogFile& log() { return *log_; }
  /// Reads the next record; false at the end, and where the next one is damaged.
  bool next(Record& record);
  /// Not for recordings under way, for which append_under_way() makes room.
  void append(const Record& record);
  /// Adds a record of `entries` entries, all of them empty.
  LogFile::Mapped append_under_way(std::size_t entries);

 private:
  explicit RunJournal(std::unique_ptr<LogFile> log) : log_(std::move(log)) {}

  std::unique_ptr<LogFile> log_;
};

}  // namespace melflow
