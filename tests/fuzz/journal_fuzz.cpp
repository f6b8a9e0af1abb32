// Feeds any bytes as the journal of a run, for libFuzzer (long/fuzz.sh). Even first byte: the rest
// is the file. Odd: the rest says which records are written, and which byte is damaged then: all
// records before it are read correctly and none after it, and the journal can be cut off there and
// continued.
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pipeline/base/problem.h"
#include "stages/output/run_journal.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace melflow;
using namespace melflow::fuzz;

constexpr std::size_t kMostRecords = 12, kMark = 14;  // bytes before the first

Ledger::Entry entry(Input& in) {
  Ledger::Entry out{.outcome = static_cast<Outcome>(in.below(6)), .stage = {}, .reason = {}};
  if (out.outcome == Outcome::open) return out;
  out.stage = in.bytes(in.below(8));
  out.reason = in.bytes(in.below(40));
  return out;
}

RunJournal::Commit commit(Input& in) {
  RunJournal::Commit out{.first = in.take<std::uint32_t>(), .files = {}};
  for (std::size_t files = in.below(4); files > 0; --files) {
    RunJournal::File f;
    f.name_hash = in.take<std::uint64_t>() >> 1;
    f.in_run = entry(in);
    f.in_sink = entry(in);
    f.is_kept = in.flag();
    f.rows = in.take<std::int32_t>();
    f.rows_hash = in.take<std::uint64_t>();
    f.about.sample_rate = in.take<std::int32_t>();
    f.about.frames = in.take<std::int32_t>();
    f.about.results = in.bytes(in.below(40));
    f.content = in.take<std::uint64_t>();
    out.files.push_back(std::move(f));
  }
  return out;
}

RunJournal::Facts facts(Input& in) {
  RunJournal::Facts out;
  for (std::size_t n = in.below(4); n > 0; --n) {
    std::string name(in.bytes(in.below(10)));
    out.emplace_back(std::move(name), in.bytes(in.below(30)));
  }
  return out;
}

void append(RunJournal& journal, Input& in) {
  switch (in.below(5)) {
    case 0:
      return journal.append(facts(in));
    case 1:
      return journal.append(RunJournal::Begin{std::string(in.bytes(in.below(40)))});
    case 2:
      return journal.append(commit(in));
    case 3: {
      RunJournal::Complete complete;
      for (std::size_t n = in.below(4); n > 0; --n)
        complete.hashes.emplace_back(in.bytes(in.below(20)));
      return journal.append(complete);
    }
    default:
      return journal.append(RunJournal::Ending{});
  }
}

// Returns all records that can be read, as stored.
std::vector<std::string> stored(LogFile& log) {
  std::vector<std::string> out;
  for (std::string record; log.next(record);) out.push_back(record);
  return out;
}

void read_any(const std::string& path, const std::string& bytes) {
  write_file(RunJournal::path_of(path), bytes);
  try {
    const auto journal = RunJournal::open(path);
    RunJournal::Record record;
    std::vector<RunJournal::Facts> all;
    while (journal->next(record))
      if (const auto* f = std::get_if<RunJournal::Facts>(&record)) all.push_back(*f);
    for (const auto& f : all) static_cast<void>(RunJournal::difference(f, all.front()));
  } catch (const RunError&) {  // not a journal of melflow
  }
}

void damage_one(const std::string& path, Input& in) {
  std::vector<std::uint64_t> ends;
  std::vector<std::string> written;
  {
    const auto journal = RunJournal::create(path);
    const std::size_t records = in.below(kMostRecords);
    for (std::size_t i = 0; i < records; ++i) {
      append(*journal, in);
      ends.push_back(journal->log().place().at);
    }
  }
  {  // The records read are those written: they have the same stored form.
    const std::string other = path + "2";
    const auto journal = RunJournal::open(path), copy = RunJournal::create(other);
    RunJournal::Record record;
    const auto append = [&copy](const auto& r) {
      if constexpr (requires { copy->append(r); }) copy->append(r);
    };
    while (journal->next(record)) std::visit(append, record);
    require(read_file(RunJournal::path_of(other)) == read_file(RunJournal::path_of(path)));
    journal->log().go_to({kMark, 0});
    written = stored(journal->log());
    require(written.size() == ends.size());
  }
  std::string bytes = read_file(RunJournal::path_of(path));
  const std::size_t at = in.below(bytes.size());
  if (!damage(bytes, at, in.take<std::uint8_t>())) return;
  write_file(RunJournal::path_of(path), bytes);
  const auto whole = static_cast<std::size_t>(
      std::count_if(ends.begin(), ends.end(), [at](std::uint64_t end) { return end <= at; }));
  try {
    const auto journal = RunJournal::open(path);
    RunJournal::Record record;
    std::size_t read = 0;
    while (journal->next(record)) ++read;
    require(read == whole);
    if (at < kMark) return;  // cut off there, as if interrupted at its creation
    journal->log().cut();
    journal->append(RunJournal::Begin{"again"});
  } catch (const RunError&) {
    return require(at < kMark);
  }
  const auto log = LogFile::open(RunJournal::path_of(path));
  const std::vector<std::string> now = stored(*log);
  require(now.size() == whole + 1 && std::equal(now.begin(), now.end() - 1, written.begin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const bool is_written = in.flag();
  const std::string path = folder() / "out.h5";
  if (is_written)
    damage_one(path, in);
  else
    read_any(path, std::string(in.rest()));
  folder().clear();
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return write_seeds([](const auto& seed) {
    const std::string path = folder() / "seed.h5";
    {
      const auto journal = RunJournal::create(path);
      journal->append(RunJournal::Facts{{"version", "1"}, {"backend", "cpu"}});
      journal->append(RunJournal::Begin{"a boot"});
      journal->append_under_way(2);
      RunJournal::Commit c{.first = 0, .files = {}};
      c.files.resize(3);
      c.files[1].in_run = {.outcome = Outcome::failed, .stage = "decode", .reason = "damaged"};
      journal->append(c);
      journal->append(RunJournal::Ending{});
    }
    seed("file", std::string(1, '\0') + read_file(RunJournal::path_of(path)));
    seed("records", "\x01\x08" + std::string(200, '\x02'));
    folder().clear();
  });
}
