// Recordings that are not files of their own: members of archives, items of Python. Each has a
// path, that of its container and then its name: /data/corpus.tar/talk/1.wav.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "pipeline/base/result.h"
#include "stages/items.h"
#include "stages/manifest.h"

namespace melflow {

class BufferPool;

class Container {
 public:
  virtual ~Container() = default;
  /// The stamp of a recording; -1 in both members where there is none of that name.
  [[nodiscard]] virtual FileStamp stamp(const std::string& name) const = 0;
  /// Whether it is known which recordings there are.
  [[nodiscard]] virtual bool is_known() const { return true; }
  /// Fills in where the bytes of a recording are: `size`, and `part` or `container`. Returns its
  /// stamp.
  virtual FileStamp locate(const std::string& name, FileRef& file) const = 0;
  /// Gives the bytes of a recording that is in no file (FileRef::container); at most `whole` in
  /// memory, else in a temporary file.
  [[nodiscard]] virtual Result<std::shared_ptr<RawBytes>> read(std::shared_ptr<const FileRef> file,
                                                               BufferPool& pool,
                                                               std::uint64_t whole) const;
};

/// The recording that a path names in a container.
struct ContainedItem {
  std::shared_ptr<const Container> container;  ///< null: the path is that of a file
  std::string name;
  int channel = 0;  ///< as FileRef::channel
};
/// The recording of a container with that name, or the channel of one.
ContainedItem item_of(std::shared_ptr<const Container> container, std::string name);
/// Finds the container that a path goes through, an archive or what was added.
ContainedItem contained_item(const std::string& path);
/// The same for many paths: each thread looks a container up once while its paths stay in it. Only
/// for a run, where readers notice that an archive has changed.
class ContainedItems {
 public:
  ContainedItems();
  [[nodiscard]] ContainedItem operator()(const std::string& path) const;

 private:
  std::uint64_t number_;  // of this object
};

/// Makes a container known by its path, kPythonScheme and a name, until it is destroyed.
void add_container(const std::string& path, const std::shared_ptr<const Container>& container);

/// Returns the present stamp of a file, or of a recording of a container; -1 in both members where
/// there is none. Follows symbolic links. `error` gets the errno where the system cannot tell, else
/// 0.
FileStamp stamp_of(const std::string& path, int* error = nullptr);

/// A file, or a recording of a container, to be read: its size and place as they are now. `stamp`
/// gets its stamp, unless null. `item`: as contained_item() finds it.
FileRef located(std::string path, FileStamp* stamp = nullptr);
FileRef located(std::string path, const ContainedItem& item, FileStamp* stamp = nullptr);

/// Puts bytes where a reader looks for those of a recording: up to `whole` in memory, more in a
/// temporary file.
Result<std::shared_ptr<RawBytes>> as_raw_bytes(std::shared_ptr<const FileRef> file,
                                               std::span<const std::byte> bytes, BufferPool& pool,
                                               std::uint64_t whole);

}  // namespace melflow
