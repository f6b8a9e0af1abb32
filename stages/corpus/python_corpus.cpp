#include "stages/corpus/python_corpus.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/secrets.h"
#include "stages/containers/file_channel.h"
#include "stages/files/content_hash.h"

namespace melflow {

// A row for each item; the keys of items are the columns. Only values that are asked for become
// texts.
class PythonTable final : public TableReader {
 public:
  PythonTable(PythonCorpus& corpus, std::string name) : corpus_(corpus), name_(std::move(name)) {
    is_waiting_ = read();
  }

  bool next() override {
    if (!std::exchange(is_waiting_, false) && !read()) return false;
    if (!problem_.empty()) throw BadLine(fmt::format("{}: {}", corpus_.shown_, problem_));
    return true;
  }
  [[nodiscard]] const std::vector<std::string>& columns() const override { return names_; }
  [[nodiscard]] int column(std::string_view name) const override {
    const auto it = std::find(names_.begin(), names_.end(), name);
    return it == names_.end() ? -1 : static_cast<int>(it - names_.begin());
  }
  [[nodiscard]] const std::string& cell(int column) const override {
    std::optional<std::string>& cell = row_[static_cast<std::size_t>(column)];
    if (!cell) {
      Result<std::string> text = corpus_.items_->cell(names_[static_cast<std::size_t>(column)]);
      if (!text) throw BadLine(fmt::format("{}: {}", corpus_.shown_, text.error().reason));
      cell = std::move(*text);
    }
    return *cell;
  }
  using TableReader::cell;
  [[nodiscard]] Place place(int) const override { return {name_, items_}; }
  [[nodiscard]] std::vector<std::string> remarks(const std::vector<int>&) const override {
    return {};
  }

 private:
  bool read() {
    std::optional<PythonItem> item = corpus_.next();
    if (!item) return false;
    ++items_;
    for (std::string& name : item->columns)
      if (column(name) < 0) names_.push_back(std::move(name));
    row_.assign(names_.size(), std::nullopt);
    row_.front() = std::move(item->path);
    problem_ = std::move(item->problem);
    return true;
  }

  PythonCorpus& corpus_;
  std::string name_;
  std::vector<std::string> names_{"path"};
  mutable std::vector<std::optional<std::string>> row_;  // of the row last read, what was asked for
  std::string problem_;                                  // of the row last read
  int items_ = 0;
  bool is_waiting_ = false;  // the first row is still to be returned by next()
};

std::string PythonCorpus::path_of(const std::string& call, const Value& arguments) {
  std::string name = call.substr(call.rfind('/') + 1);
  const bool is_elsewhere = name.size() < call.size();
  // Makes different names for calls that differ in their folder or arguments only.
  if (const std::string text = to_json(without_secrets(arguments, true));
      is_elsewhere || text.size() > 2) {
    const std::string whole = call + text;
    name += fmt::format("-{:08x}", content_hash(std::as_bytes(std::span(whole))) & 0xffffffff);
  }
  return fmt::format("{}{}", kPythonScheme, name);
}

std::shared_ptr<PythonCorpus> PythonCorpus::open(const std::string& call, const Value& arguments,
                                                 const WebLimits& web) {
  if (python_host() == nullptr) throw NeedsPython{call};
  const std::string path = path_of(call, arguments);
  std::shared_ptr<PythonCorpus> out(
      new PythonCorpus(path, call.starts_with('@') ? shown_call(call) : path,
                       python_host()->open_items(call, to_json(arguments), web), web));
  out->self_ = out;
  return out;
}

std::unique_ptr<TableReader> PythonCorpus::table(std::string name) {
  return std::make_unique<PythonTable>(*this, std::move(name));
}

void PythonCorpus::make_known() { add_container(path_, self_.lock()); }

void PythonCorpus::list() {
  while (next()) {
  }
}

std::optional<PythonItem> PythonCorpus::next() {
  std::optional<PythonItem> item = items_->next();
  if (!item) return item;
  // An item that cannot be used may have the path of one that can.
  if (const auto [it, is_new] = known_.try_emplace(item->path); is_new || item->problem.empty())
    it->second = {{item->size, item->modified}, item->file};
  return item;
}

FileStamp PythonCorpus::stamp(const std::string& name) const {
  FileRef ignored;
  return locate(name, ignored);
}

FileStamp PythonCorpus::locate(const std::string& name, FileRef& file) const {
  const auto it = known_.find(name);
  if (it == known_.end()) {
    file.part = FilePart{.file = name, .problem = "is not among the items that Python gives"};
    return {};
  }
  const Item& item = it->second;
  constexpr std::uint64_t kUnknown = 4 << 20;  // [bytes] a recording of unknown size may have
  if (item.file.empty() || WebReader::is_for(item.file)) {
    file.size = item.stamp.size > 0 ? static_cast<std::uint64_t>(item.stamp.size) : kUnknown;
    file.container = self_.lock();
    return item.stamp;
  }
  FileStamp now;
  const FileRef other = located(item.file, &now);
  file.size = other.size;
  if (other.channel > 0) file.channel = other.channel;
  file.part =
      other.part ? other.part : std::optional(FilePart{.file = other.path, .stored = other.size});
  if (now.size >= 0) now.modified ^= item.stamp.modified;  // the version, where it has one
  return now;
}

Result<std::shared_ptr<RawBytes>> PythonCorpus::read(std::shared_ptr<const FileRef> file,
                                                     BufferPool& pool, std::uint64_t whole) const {
  std::string name = file->path.substr(path_.size() + 1);
  if (file->channel > 0) name = without_channel(name);
  if (WebReader::is_here())
    if (const auto it = known_.find(name); it != known_.end() && !it->second.file.empty())
      return web_.read(std::move(file), it->second.file, pool, whole);
  std::optional<Result<std::shared_ptr<RawBytes>>> out;
  const PythonAnswer answer = items_->read(name, [&](std::span<const std::byte> bytes) {
    out.emplace(as_raw_bytes(file, bytes, pool, whole));
  });
  if (answer.outcome == PythonAnswer::Outcome::skipped) return ItemError::skipped(answer.reason);
  if (!out) return ItemError::failed(answer.reason);
  return std::move(*out);
}

}  // namespace melflow
