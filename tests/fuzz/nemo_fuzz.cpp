// Feeds any bytes as a manifest of NeMo, for libFuzzer (long/fuzz.sh), through the columns that
// `columns_are` may name: the first byte says which.
#include <memory>
#include <string>

#include "pipeline/base/problem.h"
#include "tests/fuzz/read_table.h"

using namespace melflow;
using namespace melflow::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned how = data[0];
  write_files({reinterpret_cast<const char*>(data + 1), size - 1}, {"manifest.json"});
  const std::string path = folder() / "manifest.json";
  try {
    TableFormat format;
    std::vector<std::string> required{"path"};
    if ((how & 1U) != 0)
      format.columns_are.list.push_back({"end", "duration", {"", "duration", ""}});
    if ((how & 2U) != 0) {
      const ColumnsAre::Source source{"wavs/", "audio_filepath", ".wav"};
      format.columns_are.list.push_back({"path", "wavs/{audio_filepath}.wav", source});
    }
    if ((how & 4U) != 0) required.insert(required.end(), {"start", "duration"});
    const std::unique_ptr<TableReader> table = open_table(path, required, format, folder() / "");
    if ((how & 8U) != 0) static_cast<void>(table->find_column("text"));
    if ((how & 16U) != 0) static_cast<void>(table->find_column("start"));
    read_all(*table);
    static_cast<void>(table->remarks({0, 1}));
  } catch (const RunError&) {
    // An unreadable manifest is reported.
  }
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return write_seeds([](const auto& seed) {
    const std::string lines =
        R"({"audio_filepath":"a.wav","duration":1.5,"text":"some words"})"
        "\n"
        R"({"audio_filepath":"b.wav","duration":2,"offset":0.25,"lang":"en","channel":[0,1]})"
        "\n";
    for (const char how : {'\0', '\1', '\7', '\37'})
      seed("lines_" + std::to_string(int{how}), how + lines);
    seed("late",
         '\30' + std::string(
                     "{\"audio_filepath\":\"a.wav\"}\n{\"text\":\"\\u00e9\",\"offset\":null}\n"));
  });
}
