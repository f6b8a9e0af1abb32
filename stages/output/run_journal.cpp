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

// The first byte of a record, in the order of RunJournal::Record.
constexpr std::string_view kKinds = "FBMENU";
constexpr char kUnderWay = 'U';

// Writes the values of a record, one after another.
class Packer {
 public:
  template <class T>
  void operator()(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void operator()(const std::string& text) {
    (*this)(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  // Writes a list, the last value of its record.
  template <class List, class Each>
  void last(const List& list, const Each& each) {
    for (const auto& one : list) each(one);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what Packer wrote; throws std::out_of_range behind the end of the record.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  void operator()(T& value) {
    std::memcpy(&value, piece(sizeof value).data(), sizeof value);
  }
  void operator()(std::string& text) {
    std::uint32_t size = 0;
    (*this)(size);
    text = piece(size);
  }
  template <class List, class Each>
  void last(List& list, const Each& each) {
    while (!rest_.empty()) each(list.emplace_back());
  }

 private:
  std::string_view piece(std::size_t bytes) {
    if (bytes > rest_.size()) throw std::out_of_range("record");
    const std::string_view out = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return out;
  }

  std::string_view rest_;
};

// The values of each record, in order, for Packer and Unpacker; Packer gets constant objects.

template <class By, class Entry>
void pass_entry(By& by, Entry& entry) {
  by(entry.outcome);
  if (entry.outcome == Outcome::open) return;
  by(entry.stage);
  by(entry.reason);
}

// The values of a recording as bytes; "" for none.
std::string bytes_of(const MeasureValues* values) {
  if (values == nullptr) return {};
  return {reinterpret_cast<const char*>(values->of.data()), sizeof values->of};
}
std::shared_ptr<const MeasureValues> values_in(const std::string& bytes) {
  if (bytes.empty()) return nullptr;
  auto out = std::make_shared<MeasureValues>();
  if (bytes.size() != sizeof out->of) throw std::out_of_range("measures");
  std::memcpy(out->of.data(), bytes.data(), bytes.size());
  return out;
}

template <class By, class File>
void pass_file(By& by, File& file) {
  // The hash of a name and is_kept share a number: a commit has to fit on a disk that is full.
  std::uint64_t name = file.name_hash << 1 | (file.is_kept ? 1 : 0);
  by(name);
  if constexpr (!std::is_const_v<File>) {
    file.name_hash = name >> 1;
    file.is_kept = (name & 1) != 0;
  }
  pass_entry(by, file.in_run);
  pass_entry(by, file.in_sink);
  by(file.rows);
  by(file.rows_hash);
  by(file.about.sample_rate);
  by(file.about.frames);
  by(file.about.results);
  std::string measured = bytes_of(file.about.measured.get());
  by(measured);
  if constexpr (!std::is_const_v<File>) file.about.measured = values_in(measured);
  by(file.stamp);
  by(file.content);
}

template <class By, class Record>
void pass(By& by, Record& record) {
  using T = std::remove_const_t<Record>;
  if constexpr (std::is_same_v<T, RunJournal::Facts>) {
    by.last(record, [&](auto& fact) {
      by(fact.first);
      by(fact.second);
    });
  } else if constexpr (std::is_same_v<T, RunJournal::Begin>) {
    by(record.boot);
  } else if constexpr (std::is_same_v<T, RunJournal::Commit>) {
    by(record.first);
    by.last(record.files, [&](auto& file) { pass_file(by, file); });
  } else if constexpr (std::is_same_v<T, RunJournal::Complete>) {
    by.last(record.hashes, [&](auto& hash) { by(hash); });
  }
}

RunJournal::Record unpack(std::string_view bytes, const LogFile::Place& place) {
  static const RunJournal::Record kEmpty[] = {RunJournal::Facts{}, RunJournal::Begin{},
                                              RunJournal::Commit{}, RunJournal::Ending{},
                                              RunJournal::Complete{}};
  Unpacker from(bytes);
  char kind = 0;
  from(kind);
  if (kind == kUnderWay)
    return UnderWay::read(std::as_bytes(std::span(LogFile::changing_of(bytes, place))));
  const std::size_t index = kKinds.find(kind);
  if (index == kKinds.npos) throw std::out_of_range("kind of record");
  RunJournal::Record out = kEmpty[index];
  std::visit([&](auto& of_kind) { pass(from, of_kind); }, out);
  return out;
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

void RunJournal::append(const Record& record) {
  Packer to;
  to(kKinds[record.index()]);
  std::visit([&](const auto& of_kind) { pass(to, of_kind); }, record);
  log_->append(to.bytes());
}

LogFile::Mapped RunJournal::append_under_way(std::size_t entries) {
  return log_->append_changing(kUnderWay, entries * UnderWay::kEntry);
}

}  // namespace melflow
