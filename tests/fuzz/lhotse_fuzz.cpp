// Feeds any bytes as a manifest of Lhotse, for libFuzzer (long/fuzz.sh): U+0001 is between the
// supervisions, or cuts, and the recordings beside them.
#include <string>

#include "pipeline/base/problem.h"
#include "stages/corpus/lhotse_manifest.h"
#include "tests/fuzz/read_table.h"

using namespace melflow;
using namespace melflow::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  write_files({reinterpret_cast<const char*>(data), size},
              {"x_supervisions_train.jsonl", "x_recordings_train.jsonl.gz"});
  const std::string path = folder() / "x_supervisions_train.jsonl";
  try {
    const bool is_one = LhotseManifest::is_one(path);
    LhotseManifest table(path, {});
    read_all(table);
    if (is_one) static_cast<void>(table.remarks({0}));
  } catch (const RunError&) {
    // An unreadable manifest is reported.
  }
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return write_seeds([](const auto& seed) {
    const std::string
        recording =
            R"({"id":"r1","sources":[{"type":"file","channels":[0,1],"source":"a.wav"}],"sampling_rate":16000,"num_samples":32000,"duration":2.0})",
        supervision =
            R"({"id":"s1","recording_id":"r1","start":0.5,"duration":1.0,"channel":0,"text":"some words","language":"en","speaker":"s","gender":"f","custom":{"a":[1,{"b":null}]}})";
    seed("recordings", recording + '\n' + recording + '\n');
    seed("supervisions", supervision + "\n\n" + supervision + "\n\1" + recording + '\n');
    seed("cuts",
         R"({"id":"c1","start":0,"duration":2.0,"channel":[0,1],"type":"MultiCut","recording":)" +
             recording + R"(,"supervisions":[)" + supervision + "," + supervision + "]}\n" +
             R"({"id":"c2","type":"MixedCut","tracks":[]})" + '\n');
    seed("odd",
         R"({"id":{"a":["é"]},"recording_id":[1],"start":"x","duration":1e400,"channel":[[0]]})" +
             std::string("\n\1") + R"({"id":7,"sources":[],"sampling_rate":0,"transforms":[1]})");
  });
}
