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
    CHECK(before->memory_bytes() > 2 * sizeof(Archive::Member));
    for (const std::string& at : {path, folder.path()})
      CHECK(archive_memory(whole_root(at)) == before->memory_bytes());
    CHECK(archive_memory(whole_root(folder / "other")) == 0);
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

TEST_CASE("backslashes in a zip of Windows are between folders") {
  const TempFolder folder;
  // Names as .NET before 4.6.1 writes them, of MS-DOS (0) or Unix (3); one in Shift JIS, where the
  // second byte of a letter is a backslash.
  const std::string make = fmt::format(
      "cd {} && python3 -c \"import zipfile\n"
      "def add(z, name, system, flags=0):\n"
      "  i = zipfile.ZipInfo('x'); i.filename = name; i.orig_filename = name; i.create_system = "
      "system\n"
      "  i.flag_bits = flags; z.writestr(i, b'' if name[-1] == chr(92) else name.encode())\n"
      "b = chr(92)\n"
      "with zipfile.ZipFile('x.zip', 'w') as z:\n"
      "  for n in ('cat' + b, 'cat' + b + 'a.wav', chr(252) + b + 'a.wav', 'a/b' + b + 'c.wav'): "
      "add(z, n, 0)\n"
      "  add(z, 'unix' + b + 'a.wav', 3)\n"
      "data = open('x.zip', 'rb').read()\n"
      "open('y.zip', 'wb').write(data[:data.index(b'PK' + bytes([1, 2]))])\"",
      folder.path());
  if (std::system(make.c_str()) != 0) {
    MESSAGE("skipped: no program makes it");
    return;
  }
  const auto names = [&](const std::string& name) {
    std::vector<std::string> out;
    const Archive archive(folder / name);
    for (std::size_t i = 0; i < archive.size(); ++i) out.emplace_back(archive.name(i));
    return out;
  };
  CHECK(names("x.zip") ==
        std::vector<std::string>{"a/b\\c.wav", "cat/a.wav", "unix\\a.wav", "\xC3\xBC/a.wav"});
  // Without its directory a zip does not say which system made it.
  CHECK(names("y.zip") ==
        std::vector<std::string>{"a/b\\c.wav", "cat/a.wav", "unix/a.wav", "\xC3\xBC/a.wav"});
}

TEST_CASE("what says nothing in the name of a member is left out of it") {
  const TempFolder folder;
  write(folder / "a.bin", "of a");
  const std::string make = fmt::format(
      "cd {} && python3 -c \"import tarfile,io\n"
      "t=tarfile.open('x.tar','w')\n"
      "for n in ('./a.bin','b/./c//d.bin','/e.bin','f/../g.bin'):\n"
      "  i=tarfile.TarInfo(n); i.size=1; t.addfile(i,io.BytesIO(b'x'))\n"
      "t.close()\"",
      folder.path());
  if (std::system(make.c_str()) != 0) {
    MESSAGE("skipped: no program makes it");
    return;
  }
  const Archive archive(folder / "x.tar");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < archive.size(); ++i) names.emplace_back(archive.name(i));
  CHECK(names == std::vector<std::string>{"a.bin", "b/c/d.bin", "e.bin", "f/../g.bin"});
}

TEST_CASE("an archive that ends in its last member is told, and no number is below 0") {
  const TempFolder folder;
  const auto expected = made(folder, "tar cf ../x.tar *");
  REQUIRE_FALSE(expected.empty());
  std::string bytes = read_bytes(folder / "x.tar");
  bytes.resize(bytes.find_last_not_of('\0') + 1);  // in the padding of the last member
  write(folder / "y.tar", bytes);
  CHECK(Archive(folder / "y.tar").remarks() ==
        std::vector<std::string>{folder / "y.tar: has no end mark; it may be cut off, and members "
                                          "missing"});
}

TEST_CASE("zeros behind a packed tar pad it, and more than that is damage") {
  const TempFolder folder;
  if (made(folder, "tar czf ../x.tgz * && cp ../x.tgz ../y.tgz").empty()) {
    MESSAGE("skipped: no program makes it");
    return;
  }
  const std::string whole = read_bytes(folder / "x.tgz");
  const std::size_t members = Archive(folder / "x.tgz").size();
  CHECK(members == 24);
  for (const std::size_t zeros : {std::size_t{1}, std::size_t{10'240}, std::size_t{3} << 20}) {
    write(folder / "y.tgz", whole + std::string(zeros, '\0'));
    const Archive padded(folder / "y.tgz");
    CHECK(padded.damages().empty());
    CHECK(padded.size() == members);
  }
  write(folder / "y.tgz", whole + std::string(100, '\0') + "x");
  const Archive damaged(folder / "y.tgz");
  CHECK(damaged.damages().size() == 1);
  CHECK(damaged.remarks().at(0) ==
        fmt::format("{0}: is damaged at byte {1} or before; members may be wrong, and what follows "
                    "is missing; copy the archive {0} again, or pack it again",
                    folder / "y.tgz", whole.size() + 101));
}

TEST_CASE("what is packed otherwise than its name says is named") {
  const TempFolder folder;
  const auto refusal = [&](const std::string& name, const std::string& bytes) {
    write(folder / name, bytes);
    try {
      const Archive archive(folder / name);
    } catch (const RunError& e) {
      std::string text = e.what();
      for (std::size_t at; (at = text.find(folder.path() + "/")) != text.npos;)
        text.erase(at, folder.path().size() + 1);
      return text;
    }
    return std::string();
  };
  REQUIRE_FALSE(made(folder, "tar cf ../x.tar *").empty());
  const std::string tar = read_bytes(folder / "x.tar");
  CHECK(refusal("a.tar", "\x1F\x8B and so on") ==
        "a.tar: is not a tar archive but a file packed by gzip; name it x.tar.gz");
  CHECK(refusal("b.tar", "BZh91AY&SY and so on") ==
        "b.tar: is not a tar archive but a file packed by bzip2; unpack it (bunzip2 -k b.tar) and "
        "name what is in it");
  CHECK(refusal("c.tar", "PK\3\4 and so on") ==
        "c.tar: is not a tar archive but a zip archive; name it x.zip");
  CHECK(refusal("d.zip", tar) == "d.zip: is not a zip archive but a tar archive; name it x.tar");
  CHECK(refusal("e.tgz", tar) ==
        "e.tgz: is not a file packed by gzip but a tar archive; name it x.tar");
  CHECK(refusal("f.tar", "text") == "f.tar: is not a tar archive, or all of it is damaged");
  CHECK(refusal("g.zip", "PK\3\4 and so on") ==
        "g.zip: is not a zip archive, or all of it is damaged");
  CHECK(refusal("h.tar.gz", "") == "h.tar.gz: is empty (0 bytes)");
}

TEST_CASE("names that no system takes are not kept, and their members fail") {
  const TempFolder folder;
  const std::string make = fmt::format(
      "cd {} && python3 -c \"import tarfile, io\n"
      "t = tarfile.open('x.tar', 'w', format=tarfile.GNU_FORMAT)\n"
      "for i in range(50):\n"
      "  m = tarfile.TarInfo(str(i).zfill(3) + '/' + 'n' * (4092 if i == 0 else 40000)); m.size = "
      "1\n"
      "  t.addfile(m, io.BytesIO(b'x'))\n"
      "t.close()\"",
      folder.path());
  if (std::system(make.c_str()) != 0) {
    MESSAGE("skipped: no program makes it");
    return;
  }
  const Archive archive(folder / "x.tar");
  REQUIRE(archive.size() == 50);
  CHECK(archive.name(0).size() == 4096);
  CHECK(archive.problem(0) == "");
  std::size_t bytes = 0;
  for (std::size_t i = 1; i < archive.size(); ++i) {
    bytes += archive.name(i).size();
    CHECK(archive.problem(i) ==
          "its name has 40004 bytes, and 4096 is the most that a system takes");
  }
  CHECK(bytes < 50 * 128);
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
