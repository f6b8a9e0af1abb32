// The index of archives. They are made by the program tar and by Python's zipfile.
#include "stages/containers/archive.h"

#include <sys/stat.h>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/problem.h"
#include "stages/audio/reading/file_reader.h"
#include "tests/support/temp_folder.h"

using namespace melflow;
using melflow::test::read_bytes;
using melflow::test::TempFolder;

namespace {

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// What members hold, by name; and whether the index says that something is wrong.
struct Read {
  std::map<std::string, std::string> members;
  bool is_warned = false;
};

Read read(const std::string& path, const std::string& bytes) {
  Read out;
  try {
    const Archive archive(path);
    out.is_warned = !archive.damages().empty() || !archive.remarks().empty();
    for (std::size_t i = 0; i < archive.size(); ++i) {
      const std::string name(archive.name(i));
      std::string& content = out.members[name];
      if (!archive.problem(i).empty()) {
        out.is_warned = true;
        continue;
      }
      FileRef file;
      archive.locate(name, file);
      REQUIRE(file.part);
      const FilePart& part = *file.part;
      if (part.begin > bytes.size() || part.stored > bytes.size() - part.begin) continue;
      const auto* packed = reinterpret_cast<const std::byte*>(bytes.data()) + part.begin;
      content.resize(file.size);
      if (!part.is_deflated)
        content.assign(bytes, part.begin, part.stored);
      else if (!inflate_member(packed, part.stored, reinterpret_cast<std::byte*>(content.data()),
                               content.size()))
        content = "";
      if (part.crc && crc_of(0, reinterpret_cast<const std::byte*>(content.data()),
                             content.size()) != *part.crc)
        content = "";
    }
  } catch (const RunError&) {
    out.is_warned = true;
  }
  return out;
}

// Makes 24 files of up to 3000 bytes, and an archive of them by a command of the shell.
std::map<std::string, std::string> made(const TempFolder& folder, const std::string& command) {
  std::map<std::string, std::string> out;
  std::mt19937 random(1);
  for (int i = 0; i < 24; ++i) {
    std::string content(static_cast<std::size_t>(random() % 3000 + 1), '\0');
    for (char& c : content) c = static_cast<char>(random() % (i % 2 == 0 ? 4 : 256));
    const std::string name = fmt::format("{}/{:02}.bin", i % 3 == 0 ? "a" : "b", i);
    out[name] = content;
    REQUIRE(std::system(
                fmt::format("mkdir -p {}/in/{}", folder.path(), name.substr(0, 1)).c_str()) == 0);
    write(folder / ("in/" + name), content);
  }
  if (std::system(fmt::format("cd {}/in && {}", folder.path(), command).c_str()) != 0) return {};
  return out;
}

constexpr const char* kZip =
    "python3 -c \"import zipfile,sys,glob;z=zipfile.ZipFile('../x.zip','w',zipfile.ZIP_DEFLATED);"
    "[z.write(n) for n in sorted(glob.glob('*/*'))];z.close()\"";

}  // namespace

TEST_CASE("an index has all members with their bytes") {
  for (const auto& [name, command] : std::map<std::string, std::string>{
           {"x.tar", "tar cf ../x.tar *"},
           {"y.tar", "tar --format=ustar -cf ../y.tar *"},
           {"z.tar", "tar --format=pax -b 1 -cf ../z.tar *"},
           {"w.tar", "tar cf ../w.tar a && tar cf ../v.tar b && cat ../v.tar >> ../w.tar"},
           {"x.zip", kZip}}) {
    CAPTURE(name);
    const TempFolder folder;
    const auto expected = made(folder, command);
    if (expected.empty()) {
      MESSAGE("skipped: no program makes it");
      continue;
    }
    const Read found = read(folder / name, read_bytes(folder / name));
    CHECK(found.members == expected);
    CHECK(found.is_warned == (name == "w.tar"));  // two archives in one
  }
}

TEST_CASE("an archive that was replaced by one of the same size and time is another one") {
  const TempFolder folder;
  const auto make = [&](const std::string& name, const std::string& order) {
    return std::system(fmt::format("cd {} && tar --mtime=@0 -cf {} {} && touch -d @0 {}",
                                   folder.path(), name, order, name)
                           .c_str()) == 0;
  };
  write(folder / "a.bin", "of a");
  write(folder / "b.bin", "of b");
  const std::string path = folder / "x.tar";
  const FileReader reader({.buffer = 4096, .whole = 4096});
  BufferPool pool(0);
  const auto text_of = [&](const std::shared_ptr<const FileRef>& file) {
    const auto read = reader.read(file, pool);
    return read ? std::string(reinterpret_cast<const char*>((*read)->data.data()), (*read)->size)
                : read.error().reason;
  };
  for (const char* command : {"mv", "cp -p"}) {
    CAPTURE(std::string(command));
    REQUIRE(make("x.tar", "a.bin b.bin"));
    struct stat x {
    }, y{};
    do {  // until the clock of the file system goes on
      REQUIRE(make("y.tar", "b.bin a.bin"));
      REQUIRE((stat(path.c_str(), &x) == 0 && stat((folder / "y.tar").c_str(), &y) == 0));
    } while (x.st_ctim.tv_sec == y.st_ctim.tv_sec && x.st_ctim.tv_nsec == y.st_ctim.tv_nsec);
    REQUIRE(x.st_size == y.st_size);
    const auto listed = std::make_shared<const FileRef>(located(path + "/a.bin"));
    CHECK(text_of(listed) == "of a");
    const auto before = archive_at(path);
    CHECK(before->is_current());
    CHECK(archive_at(path) == before);
    REQUIRE(std::system(fmt::format("cd {} && {} y.tar x.tar", folder.path(), command).c_str()) ==
            0);
    CHECK_FALSE(before->is_current());
    CHECK(text_of(listed) == "its archive has changed since it was listed");
    CHECK(text_of(std::make_shared<const FileRef>(located(path + "/a.bin"))) == "of a");
  }
}

TEST_CASE("bytes that look like headers of a zip do not take more memory than they are") {
  const TempFolder folder;
  constexpr int kHeaders = 20'000;
  std::string bytes;
  for (int i = 0; i < kHeaders; ++i)  // each claims a name of 0xf10 bytes
    bytes += fmt::format("PK\3\4{:022}\x10\x0f\1\1", i);
  const std::string path = folder / "a.zip";
  write(path, bytes);
  const Archive archive(path);
  std::size_t names = 0;
  for (std::size_t i = 0; i < archive.size(); ++i) names += archive.name(i).size();
  CHECK(names > 0);
  CHECK(names <= bytes.size());
}

TEST_CASE("no member of a damaged archive is missing without a warning") {
  for (const auto& [name, command] :
       std::map<std::string, std::string>{{"x.tar", "tar cf ../x.tar *"}, {"x.zip", kZip}}) {
    const TempFolder folder;
    const auto expected = made(folder, command);
    if (expected.empty()) continue;
    const std::string whole = read_bytes(folder / name);
    const char* given = std::getenv("MELFLOW_DAMAGED_ARCHIVES");
    const int count = given != nullptr ? std::atoi(given) : 300;
    std::mt19937 random(7);
    for (int i = 0; i < count; ++i) {
      CAPTURE(name);
      CAPTURE(i);
      std::string bytes = whole;
      const std::size_t at = random() % bytes.size();
      const std::size_t length = std::min<std::size_t>(bytes.size() - at, (i % 4 < 2    ? 1
                                                                           : i % 4 == 2 ? 512
                                                                                        : 4096) *
                                                                              (1 + random() % 3));
      switch (i % 5) {
        case 0:
          bytes.resize(at);
          break;
        case 1:
          bytes.replace(at / 1024 * 512, length, length, '\0');
          break;  // not up to the end
        case 2:
          bytes.erase(at, length | 1);
          break;  // whole blocks leave an archive that is right
        case 3:
          bytes.insert(at, length, 'x');
          break;
        default:
          for (std::size_t k = 0; k < length; ++k) bytes[at + k] = static_cast<char>(random());
      }
      const std::string path = folder / ("damaged" + name.substr(1));
      write(path, bytes);
      const Read found = read(path, bytes);
      for (const auto& [member, content] : expected) {
        CAPTURE(member);
        CHECK((found.members.contains(member) || found.is_warned));
      }
    }
  }
}
