// Feeds any bytes as files of numpy.save or npy_write, for libFuzzer (long/fuzz.sh). Even first
// byte: the rest is an array. Odd: the lengths of rows and index follow, as two uint16, then rows,
// index and document: an accepted output is consistent, and all of its rows can be read.
#include <string>

#include "pipeline/base/problem.h"
#include "stages/files/npy_array.h"
#include "stages/output/formats/npy_header.h"
#include "stages/output/formats/npy_layout.h"
#include "stages/output/formats/npy_reader.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace melflow;
using namespace melflow::fuzz;

void read_array(const std::string& path, std::string_view bytes) {
  write_file(path, bytes);
  try {
    const NpyArray array = read_npy_array(path);
    std::uint64_t values = 1;
    for (const std::uint64_t axis : array.shape) values *= axis;
    require(values == array.values.size());
    require(array.shape.size() != 1 || read_npy_vector(path).size() == values);
  } catch (const RunError& e) {
    require(std::string(e.what()).starts_with(path));
  }
}

void read_output(const std::string& path, Input& in) {
  const std::size_t rows = in.take<std::uint16_t>(), index = in.take<std::uint16_t>();
  const std::string_view bytes = in.bytes(rows);
  write_file(path, bytes);
  write_file(npy_index_path(path), in.bytes(index));
  write_file(npy_document_path(path), in.rest());
  try {
    static_cast<void>(is_npy(path));
    const FeatureContents contents = read_npy(path, bytes.size());
    const FeatureData& data = contents.data;
    check_contents(data);
    require(data.rows() == 0 || data.rows() * data.values_per_row() <= bytes.size());
    for (const FeatureData::Entry& e : data.files)
      if (e.count > 0)
        require(
            contents.rows
                ->read(static_cast<std::uint64_t>(e.offset), static_cast<std::uint64_t>(e.count))
                .size() == static_cast<std::uint64_t>(e.count) * data.values_per_row());
  } catch (const RunError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const std::string path = folder() / "out.npy";
  if (in.flag())
    read_output(path, in);
  else
    read_array(path, in.rest());
  folder().clear();
  return 0;
}

// Further seeds are the .npy files in the folder that the variable MELFLOW_FUZZ_OUTPUTS names.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return write_seeds([](const auto& seed) {
    const std::uint64_t shape[] = {2, 3};
    seed("array", std::string(1, '\0') + npy_header("'<f4'", shape) + std::string(24, '\1'));
    seed("vector", std::string(1, '\0') + npy_header("'<f8'", {shape, 1}) + std::string(16, '\2'));
    const char* outputs = std::getenv("MELFLOW_FUZZ_OUTPUTS");
    if (outputs == nullptr) return;
    for (const auto& file : std::filesystem::directory_iterator(outputs)) {
      const std::string path = file.path().string();
      if (!path.ends_with(kNpyEnding) || path.ends_with(".index.npy")) continue;
      const std::string rows = read_file(path), index = read_file(npy_index_path(path));
      std::string bytes = "\1";
      for (const std::string* part : {&rows, &index}) {
        bytes += static_cast<char>(part->size() & 0xFF);
        bytes += static_cast<char>(part->size() >> 8);
      }
      seed(file.path().filename().string(),
           bytes + rows + index + read_file(npy_document_path(path)));
    }
  });
}
