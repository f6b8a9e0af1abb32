// The recordings that a function of Python gives: a table of them for the listing, and the bytes of
// each for the reader.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "pipeline/base/value.h"
#include "stages/containers/container.h"
#include "stages/containers/web_reader.h"
#include "stages/corpus/table_reader.h"
#include "stages/python/python_functions.h"

namespace melflow {

class PythonCorpus final : public Container {
 public:
  /// The path of the container for such a call: "python:corpora:clips".
  static std::string path_of(const std::string& call, const Value& arguments);
  /// Calls the function. Throws RunError, also with the function's exception.
  static std::shared_ptr<PythonCorpus> open(const std::string& call, const Value& arguments,
                                            const WebLimits& web);

  /// Returns a table that reads the items; this object keeps where they are. Once only. `name`: the
  /// table's name in messages.
  std::unique_ptr<TableReader> table(std::string name);
  /// Reads all items without a table, when the list of recordings is known already.
  void list();
  /// Makes the recordings that were listed known by their paths (contained_item), until this is
  /// destroyed.
  void make_known();
  [[nodiscard]] bool is_empty() const { return known_.empty(); }
  /// Whether items have paths of their own, by which an update finds them again; else they are
  /// numbered. After the last row of the table.
  [[nodiscard]] bool has_paths() const { return items_->has_paths(); }

  [[nodiscard]] FileStamp stamp(const std::string& name) const override;
  FileStamp locate(const std::string& name, FileRef& file) const override;
  [[nodiscard]] Result<std::shared_ptr<RawBytes>> read(std::shared_ptr<const FileRef> file,
                                                       BufferPool& pool,
                                                       std::uint64_t whole) const override;

 private:
  friend class PythonTable;
  struct Item {
    FileStamp stamp;
    std::string file;  // with its bytes, or their URL; "": Python gives them
  };
  PythonCorpus(std::string path, std::string shown, std::shared_ptr<PythonItems> items,
               const WebLimits& web)
      : path_(std::move(path)), shown_(std::move(shown)), items_(std::move(items)), web_(web) {}
  std::optional<PythonItem> next();

  std::string path_;
  std::string shown_;  // what messages call it
  std::shared_ptr<PythonItems> items_;
  std::unordered_map<std::string, Item> known_;
  std::weak_ptr<const Container> self_;
  WebReader web_;
};

}  // namespace melflow
