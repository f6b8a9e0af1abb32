// Feeds any bytes as an undo file, for libFuzzer (long/fuzz.sh). Even first byte: the rest is the
// file. Odd: a file is saved and then written where that is allowed: undoing restores it; an undo
// file with any two damaged bytes is refused.
#include <string>

#include "pipeline/base/problem.h"
#include "stages/files/undo_file.h"
#include "stages/files/unique_fd.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace melflow;
using namespace melflow::fuzz;

bool is_undone(const std::string& path) {
  const UniqueFd fd(::open((path + ".part").c_str(), O_RDWR | O_CLOEXEC));
  try {
    UndoFile::check(path);
    UndoFile::apply(path, fd.get());
    return true;
  } catch (const RunError&) {
    return false;
  }
}

void undo(const std::string& path, Input& in) {
  const std::string part = path + ".part", kept = path + ".undo";
  std::string before(in.bytes(in.below(3000)));
  const std::size_t head = in.below(before.size() + 2);
  const std::size_t tail = head + in.below(before.size() + 2);
  write_file(part, before);
  {
    const UniqueFd fd(::open(part.c_str(), O_RDONLY | O_CLOEXEC));
    UndoFile::write(path, fd.get(), head, tail, before.size());
  }
  // Writes before head, from tail on, and after the end; or shortens the file.
  std::string after = before;
  for (int n = 0; n < 4; ++n) {
    const std::size_t at = in.below(before.size());
    if (at < head || at >= tail) damage(after, at, 0x55);
  }
  if (in.flag() && tail <= before.size()) after.resize(tail);
  after += in.bytes(in.below(500));
  write_file(part, after);
  std::string bytes = read_file(kept);
  const std::string good = bytes;
  const std::size_t one = in.below(bytes.size()), two = in.below(bytes.size());
  const auto first = in.take<std::uint8_t>(), second = in.take<std::uint8_t>();
  damage(bytes, one, first);
  damage(bytes, two, second);
  if (bytes != good) {
    write_file(kept, bytes);
    require(!is_undone(path));
    require(read_file(part) == after);  // nothing was undone
    write_file(kept, good);
  }
  require(is_undone(path) && read_file(part) == before);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const bool is_written = in.flag();
  const std::string path = folder() / "out.h5";
  if (is_written) {
    undo(path, in);
  } else {
    write_file(path + ".undo", in.rest());
    write_file(path + ".part", "something");
    static_cast<void>(is_undone(path));
  }
  folder().clear();
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return write_seeds([](const auto& seed) {
    const std::string path = folder() / "seed";
    write_file(path, "the head, the middle, and the tail");
    {
      const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      UndoFile::write(path, fd.get(), 8, 22, 34);
    }
    seed("file", std::string(1, '\0') + read_file(path + ".undo"));
    seed("saved", "\x01\x40" + std::string(100, '\x05'));
    folder().clear();
  });
}
