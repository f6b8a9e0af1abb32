#include "stages/files/part_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "stages/files/publication.h"
#include "stages/files/undo_file.h"
#include "tests/stage/failing_calls.h"
#include "tests/support/complaint.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::part_file_test {
namespace {

void make(const std::string& target, Existing existing) {
  PartFile file(target, "test", existing, has_one_of({"completed by test"}));
  file.put("new", 3, 0);
  file.cut(3);
  PartFile* const parts[] = {&file};
  Publication::publish(target, parts, false);
}

bool is_foreign(const std::string& message, const std::string& path) {
  return message.starts_with(path + ": this exists already and is not melflow's");
}

}  // namespace

TEST_CASE("part file: much that begins with zeros is kept, with a word on power failures") {
  const TempFolder folder;
  const std::string zeros(70'000, '\0');
  const std::string part = folder.write("out.part", zeros);
  CHECK(complaint([&] { make(folder / "out", Existing::refuse); }) ==
        part +
            ": begins with zeros, as files do whose writing a power failure ended; if it is of "
            "an earlier run, remove it");
  CHECK(read_bytes(part) == zeros);
}

TEST_CASE("part file: what an earlier run left is replaced, what anybody else left is not") {
  struct Row {
    const char* what;
    std::string left;
    bool is_own;
  };
  const Row rows[] = {
      {"nothing yet", "", true},
      {"begun", std::string(PartFile::kMark), true},
      {"begun, with rows", std::string(PartFile::kMark) + std::string(100'000, 'x'), true},
      {"completed", "\x89HDF and so on, completed by test", true},
      {"somebody's", "a download", false},
      {"somebody's, with the text far behind", std::string(70'000, 'x') + "completed by test",
       false},
      {"what a power failure left of one just begun", std::string(1000, '\0'), true},
      {"somebody's, which begins with zeros", std::string(1000, '\0') + "x", false},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const TempFolder folder;
    const std::string target = folder / "out", part = folder.write("out.part", row.left);
    const std::string message = complaint([&] { make(target, Existing::refuse); });
    if (row.is_own) {
      CHECK(message == "");
      CHECK(read_bytes(target) == "new");
    } else {
      CHECK(is_foreign(message, part));
      CHECK(read_bytes(part) == row.left);
      CHECK_FALSE(std::filesystem::exists(target));
    }
  }
}

TEST_CASE("part file: links, folders and FIFOs at the names that are used are left alone") {
  for (const std::string name : {"out.part", "out.undo", "out.replaced", "out.commit"}) {
    CAPTURE(name);
    const TempFolder folder;
    const std::string target = folder.write("out", "old");
    const std::string precious = folder.write("precious", "precious");
    const auto attempt = [&] {
      return complaint([&] {
        Publication::recover(target, std::array{OutputName{target}});
        make(target, Existing::replace);
      });
    };
    std::filesystem::create_symlink(precious, folder / name);
    CHECK(is_foreign(attempt(), folder / name));
    std::filesystem::remove(folder / name);
    std::filesystem::create_symlink(folder / "nowhere", folder / name);
    CHECK(is_foreign(attempt(), folder / name));
    std::filesystem::remove(folder / name);
    folder.folder(name);
    CHECK(is_foreign(attempt(), folder / name));
    std::filesystem::remove(folder / name);
    REQUIRE(mkfifo((folder / name).c_str(), 0600) == 0);
    CHECK(is_foreign(attempt(), folder / name));
    std::filesystem::remove(folder / name);
    folder.write(name, "precious");
    CHECK(is_foreign(attempt(), folder / name));
    CHECK(read_bytes(folder / name) == "precious");
    CHECK(read_bytes(precious) == "precious");
    CHECK(read_bytes(target) == "old");
    CHECK_FALSE(std::filesystem::exists(folder / "nowhere"));
  }
}

TEST_CASE("own file: what is another user's, or has a second name, is not trusted") {
  const TempFolder folder;
  const std::string precious = folder.write("precious", "precious"), path = folder / "out.part";
  std::filesystem::create_hard_link(precious, path);
  CHECK(complaint([&] { open_locked(path); }).starts_with(path + ": this file has 2 names"));
  CHECK(complaint([&] {
          make(folder / "out", Existing::refuse);
        }).starts_with(path + ": this file has 2 names"));
  std::filesystem::remove(path);
  CHECK_NOTHROW(check_side_file(path));
  if (::geteuid() != 0) return;  // only root may give files away
  for (const std::string name : {"out.part", "out.undo", "out.commit"}) {
    CAPTURE(name);
    const std::string theirs = folder.write(name, "");  // or any content
    REQUIRE(::chown(theirs.c_str(), 4711, 4711) == 0);
    CHECK(complaint([&] {
            Publication::recover(folder / "out", std::array{OutputName{folder / "out"}});
            make(folder / "out", Existing::refuse);
          }) == theirs +
                    ": belongs to user 4711, and this run (user 0) goes on only with files of "
                    "its own user; remove it, or write elsewhere");
    CHECK(std::filesystem::exists(theirs));
    std::filesystem::remove(theirs);
  }
}

TEST_CASE("own file: a file that is made or emptied follows no link and waits for nobody") {
  const TempFolder folder;
  const std::string precious = folder.write("precious", "precious"),
                    path = folder / "job.json.plan";
  std::filesystem::create_symlink(precious, path);
  CHECK_FALSE(create_empty(path));
  CHECK(read_bytes(precious) == "precious");
  std::filesystem::remove(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK_FALSE(create_empty(path));
  const UniqueFd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  CHECK_FALSE(create_empty(path));
  std::filesystem::remove(path);
  folder.write("job.json.plan", "what was left");
  CHECK(create_empty(path));
  CHECK(read_bytes(path).empty());
}

TEST_CASE("part file: only files are replaced") {
  const TempFolder folder;
  const std::string fifo = folder / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  for (const Existing existing : {Existing::refuse, Existing::replace, Existing::extend}) {
    CHECK(complaint([&] {
            make(fifo, existing);
          }).starts_with(fifo + ": this is a FIFO, not a file"));
    CHECK(complaint([&] {
            make("/dev/null", existing);
          }).starts_with("/dev/null: this is a device, not a file; test.path takes"));
  }
  struct stat st {};
  CHECK((stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode)));
  CHECK((stat(fifo.c_str(), &st) == 0 && S_ISFIFO(st.st_mode)));
}

TEST_CASE("part file: a link stays one, what it leads to is written") {
  const TempFolder folder;
  folder.folder("big");
  std::filesystem::create_symlink("big/real", folder / "out");
  make(folder / "out", Existing::refuse);
  CHECK(std::filesystem::is_symlink(folder / "out"));
  CHECK(read_bytes(folder / "big/real") == "new");
  CHECK(complaint([&] { make(folder / "out", Existing::refuse); }).find("exists already") !=
        std::string::npos);
}

TEST_CASE("part file: where there are no locks nothing stops") {
  for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
    const TempFolder folder;
    const NoLocks none(error);
    { CHECK(PartFile(folder / "out", "test", Existing::refuse).is_unlocked()); }
    make(folder / "out", Existing::refuse);
    CHECK(read_bytes(folder / "out") == "new");
    CHECK(PartFile(folder / "out", "test", Existing::extend).is_unlocked());
  }
  const TempFolder folder;
  CHECK_FALSE(PartFile(folder / "out", "test", Existing::refuse).is_unlocked());
}

TEST_CASE("part file: what only closing a file says is an error") {
  const TempFolder folder;
  PartFile file(folder / "out", "test", Existing::refuse);
  const FailingCall failing(1);
  CHECK(complaint([&] { file.complete_writes(false); }) ==
        folder / "out.part: cannot be written: Input/output error");
}

TEST_CASE("part file: a limit on the size of files is said") {
  const TempFolder folder;
  PartFile file(folder / "out", "test", Existing::refuse);
  const FileSizeLimit limit(100);
  const std::string bytes(1000, 'x');
  CHECK(complaint([&] { file.put(bytes.data(), bytes.size(), 0); }) ==
        folder /
            "out.part: cannot be written: File too large. No file may be larger here: raise the "
            "limit (ulimit -f), or write to another file system (option path of the test node)");
}

TEST_CASE("part file: an update that was interrupted, with another file in its place") {
  const TempFolder folder;
  const std::string target = folder.write("out", "old content");
  {
    const UniqueFd fd(::open(target.c_str(), O_RDWR));
    UndoFile::write(target, fd.get(), 3, 8, 11);
  }
  std::filesystem::rename(target, folder / "out.part");
  folder.write("out", "a copy from elsewhere");
  const std::string message = complaint([&] { make(target, Existing::replace); });
  CHECK(message.starts_with(target + ": this file exists, and so does " + target + ".part"));
  CHECK(read_bytes(target) == "a copy from elsewhere");
  CHECK(read_bytes(folder / "out.part") == "old content");
  CHECK(std::filesystem::exists(folder / "out.undo"));
  std::filesystem::remove(target);
  PartFile::recover(target);
  CHECK(read_bytes(target) == "old content");
}

TEST_CASE("undo file: one whose numbers are not what was written is refused, even where they fit") {
  const TempFolder folder;
  const std::string target = folder.write("out", "old content");
  const UniqueFd fd(::open(target.c_str(), O_RDWR));
  UndoFile::write(target, fd.get(), 3, 8, 11);
  std::string undo = read_bytes(target + ".undo");
  const std::size_t head = 16, tail = 24;  // bytes before these numbers
  ++undo[head];
  ++undo[tail];  // changes a number, not the size
  folder.write("out.undo", undo);
  CHECK(complaint([&] {
          UndoFile::apply(target, fd.get());
        }).starts_with(target + ".undo: this file is damaged"));
  CHECK(read_bytes(target) == "old content");
}

TEST_CASE("undo file: no more memory is asked for than the file has") {
  const TempFolder folder;
  const std::string target = folder.write("out", "old content");
  const UniqueFd fd(::open(target.c_str(), O_RDWR));
  UndoFile::write(target, fd.get(), 3, 8, 11);
  std::filesystem::resize_file(target + ".undo", std::uintmax_t{1} << 40);
  CHECK(complaint([&] {
          UndoFile::apply(target, fd.get());
        }).starts_with(target + ".undo: this file is damaged"));
}

}  // namespace melflow::test::part_file_test
