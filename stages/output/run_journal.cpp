#include "stages/output/run_journal.h"

#include <fcntl.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "stages/files/own_file.h"

namespace melflow {
namespace {

// The first byte of a record; in the order of RunJournal::Record.
enum class Kind : char {
  facts = 'F',
  begin = 'B',
  commit = 'C',
  ending = 'E',
  complete = 'N',
  under_way = 'U'
};

class Packer {
 public:
  explicit Packer(Kind kind) { put(kind); }
  template <class T>
  void put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    put(static_cast<std::uint32_t>(value.size()));
    bytes_ += value;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads values from a record; throws std::out_of_range behind its end.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, piece(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(piece(take<std::uint32_t>())); }
  [[nodiscard]] bool is_empty() const { return rest_.empty(); }

 private:
  std::string_view piece(std::size_t bytes) {
    if (bytes > rest_.size()) throw std::out_of_range("record");
    const std::string_view out = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return out;
  }

  std::string_view rest_;
};

void put(Packer& to, const Ledger::Entry& entry) {
  to.put(entry.outcome);
  if (entry.outcome == Outcome::open) return;
  to.text(entry.stage);
  to.text(entry.reason);
}

Ledger::Entry take_entry(Unpacker& from) {
  Ledger::Entry out{.outcome = from.take<Outcome>(), .stage = {}, .reason = {}};
  if (out.outcome == Outcome::open) return out;
  out.stage = from.text();
  out.reason = from.text();
  return out;
}

void put(Packer& to, const RunJournal::File& file) {
  // The hash of a name and is_kept share a number: a commit has to fit on a disk that is full.
  to.put(file.name_hash << 1 | (file.is_kept ? 1 : 0));
  put(to, file.in_run);
  put(to, file.in_sink);
  to.put(file.rows);
  to.put(file.rows_hash);
  to.put(file.about.sample_rate);
  to.put(file.about.frames);
  to.text(file.about.results);
  to.put(file.stamp);
  to.put(file.content);
}

RunJournal::File take_file(Unpacker& from) {
  RunJournal::File out;
  const auto name = from.take<std::uint64_t>();
  out.name_hash = name >> 1;
  out.is_kept = (name & 1) != 0;
  out.in_run = take_entry(from);
  out.in_sink = take_entry(from);
  out.rows = from.take<std::int64_t>();
  out.rows_hash = from.take<std::uint64_t>();
  out.about.sample_rate = from.take<int>();
  out.about.frames = from.take<std::int64_t>();
  out.about.results = from.text();
  out.stamp = from.take<FileStamp>();
  out.content = from.take<std::uint64_t>();
  return out;
}

RunJournal::Record unpack(std::string_view bytes, const LogFile::Place& place) {
  Unpacker from(bytes);
  switch (from.take<Kind>()) {
    case Kind::facts: {
      RunJournal::Facts out;
      while (!from.is_empty()) {
        std::string name = from.text();
        out.emplace_back(std::move(name), from.text());
      }
      return out;
    }
    case Kind::begin:
      return RunJournal::Begin{from.text()};
    case Kind::commit: {
      RunJournal::Commit out{.first = from.take<std::uint64_t>(), .files = {}};
      while (!from.is_empty()) out.files.push_back(take_file(from));
      return out;
    }
    case Kind::ending:
      return RunJournal::Ending{};
    case Kind::complete: {
      RunJournal::Complete out;
      while (!from.is_empty()) out.hashes.push_back(from.text());
      return out;
    }
    case Kind::under_way:
      return UnderWay::read(std::as_bytes(std::span(LogFile::changing_of(bytes, place))));
  }
  throw std::out_of_range("kind of record");
}

}  // namespace

std::string RunJournal::difference(const Facts& before, const Facts& now) {
  std::string out;
  const auto find = [](const Facts& in, const std::string& name) {
    return std::find_if(in.begin(), in.end(), [&](const auto& f) { return f.first == name; });
  };
  const auto name_one = [&](const std::string& name) {
    out += (out.empty() ? "it was made with another " : ", ") + name;
  };
  for (const auto& [name, value] : now) {
    const auto it = find(before, name);
    if (it != before.end() && it->second == value) continue;
    constexpr std::size_t kShort = 40;
    name_one(name);
    if (it != before.end() && value.size() < kShort && it->second.size() < kShort)
      out += fmt::format(" ({}, now {})", it->second, value);
  }
  for (const auto& [name, value] : before)
    if (find(now, name) == now.end()) name_one(name);
  return out;
}

std::string RunJournal::path_of(const std::string& path) {
  return without_links(path) + ".journal";
}

std::uint64_t RunJournal::name_hash(std::string_view name, std::size_t section) {
  return XXH3_64bits_withSeed(name.data(), name.size(), section) >> 1;
}

std::string RunJournal::boot_now() {
  char id[36];
  const UniqueFd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  return fd && ::read(fd.get(), id, sizeof id) == sizeof id ? std::string(id, sizeof id) : "";
}

std::unique_ptr<RunJournal> RunJournal::create(const std::string& path) {
  return std::unique_ptr<RunJournal>(new RunJournal(LogFile::create(path_of(path))));
}

std::unique_ptr<RunJournal> RunJournal::open(const std::string& path) {
  auto log = LogFile::open(path_of(path));
  return log ? std::unique_ptr<RunJournal>(new RunJournal(std::move(log))) : nullptr;
}

bool RunJournal::next(Record& record) {
  std::string bytes;
  const LogFile::Place before = log_->place();
  if (!log_->next(bytes)) return false;
  try {
    record = unpack(bytes, before);
    return true;
  } catch (const std::out_of_range&) {  // a record of another version
    log_->go_to(before);
    return false;
  }
}

void RunJournal::append(const Facts& facts) {
  Packer to(Kind::facts);
  for (const auto& [name, value] : facts) {
    to.text(name);
    to.text(value);
  }
  log_->append(to.bytes());
}

void RunJournal::append(const Begin& begin) {
  Packer to(Kind::begin);
  to.text(begin.boot);
  log_->append(to.bytes());
}

void RunJournal::append(const Commit& commit) {
  Packer to(Kind::commit);
  to.put(std::uint64_t{commit.first});
  for (const File& file : commit.files) put(to, file);
  log_->append(to.bytes());
}

void RunJournal::append(Ending) { log_->append(Packer(Kind::ending).bytes()); }

void RunJournal::append(const Complete& complete) {
  Packer to(Kind::complete);
  for (const std::string& hash : complete.hashes) to.text(hash);
  log_->append(to.bytes());
}

LogFile::Mapped RunJournal::append_under_way(std::size_t entries) {
  return log_->append_changing(static_cast<char>(Kind::under_way), entries * UnderWay::kEntry);
}

}  // namespace melflow
