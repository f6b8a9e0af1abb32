// Lists as Kaldi, NeMo and Lhotse have them, and what any table may have.
#include <doctest/doctest.h>

#include <string>

#include <fmt/format.h>

#include "tests/stage/list_entries.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::list_formats_test {

TEST_CASE("Kaldi: a data folder without segments, and with them") {
  const TempFolder folder;
  folder.write("data/wav.scp", "r1 a.wav\nr2 flac -dc b.flac |\nr3 sox c.wav -t wav - |\n");
  folder.write("data/utt2spk", "r1 ann\nr2 bob\nr3 eve\n");
  const std::string options = "root: @, manifest: @/data, columns: [utterance, speaker]";
  List whole(of(folder, options));
  CHECK(entries(whole)[0] == "-: a.wav|r1|ann");
  CHECK(entries(whole)[1] == "-: b.flac|r2|bob");
  CHECK(entries(whole)[2].starts_with("-: r3 ["));
  CHECK(entries(whole)[2].ends_with("]|r3|eve"));
  CHECK(warnings(whole).size() == 1);
  List as_utterances(of(folder, options + ", utterances: {}"));
  CHECK(as_utterances.paths() == Texts{"a.wav#t=0", "b.flac#t=0", "r3#t=0"});
  folder.write("data/segments", "u1 r2 1 2.5\nu2 r2 0 1\n");
  folder.write("data/utt2spk", "u1 ann\nu2 bob\n");
  List parts(of(folder, options + ", utterances: {}"));
  CHECK(entries(parts) == Texts{"-: b.flac#t=0,1|u2|bob", "-: b.flac#t=1,2.5|u1|ann"});
  CHECK(warnings(parts).empty());
  // Each split may be a folder.
  folder.write("test/wav.scp", "r4 d.wav\n");
  List splits(of(folder, "root: @, manifest: {test: @/test, train: @/data}, utterances: {}"));
  CHECK(entries(splits) ==
        Texts{"train: b.flac#t=0,1", "train: b.flac#t=1,2.5", "test: d.wav#t=0"});
}

TEST_CASE("Kaldi: what is wrong is named with its file and line, and the utterance") {
  const TempFolder folder;
  folder.write("data/wav.scp", "r1 a.wav\nr2 b.wav\n");
  folder.write("data/segments", "\nu1 r1 0 1\nu2 r1 x 2\nu3 r2 1 1\nu4 r2 2 3\n");
  folder.write("data/reco2dur", "\nr1 6\nr2 six\n");
  const std::string options = "root: @, manifest: @/data, columns: [utterance], utterances: {}";
  const std::string data = folder / "data";
  List list(of(folder, options));
  CHECK(entries(list) ==
        Texts{"-: a.wav#t=0,1|u1",
              "-: " + data + "/segments:3: u2#t=0 [" + data +
                  "/segments:3: u2: start is 'x', which is not a number from 0 up]|u2",
              "-: " + data + "/segments:4: u3#t=0 [" + data +
                  "/segments:4: u3: the utterance ends at 1, and starts at 1; an empty end is the "
                  "end of the recording]|u3",
              "-: b.wav#t=2,3|u4"});
  CHECK(warnings(list) ==
        Texts{data +
                  "/segments: 2 of 4 lines cannot be used and fail alone; the "
                  "first: " +
                  data +
                  "/segments:3: u2: start is 'x', which is not a number from "
                  "0 up",
              data + "/reco2dur: 1 of 2 lengths are not numbers of seconds above 0 "
                     "(line 3: six); these recordings are not compared with their "
                     "length"});
  folder.write("data/segments", "u1 r1 0 1\nu4 r2 2 3\n");
  List targets(of(folder, options + ", targets: [recording_duration]"));
  CHECK(targets.manifest().problem(0).empty());
  CHECK(std::string(targets.manifest().problem(1))
            .starts_with(data + "/reco2dur:3: u4: recording_duration is 'six', which is not a "
                                "number; "));
}

TEST_CASE("NeMo: audio_filepath and offset are known") {
  const TempFolder folder;
  folder.write("train.json",
               "{\"audio_filepath\": \"b.wav\", \"duration\": 3.5, \"text\": \"one\"}\n"
               "{\"audio_filepath\": \"a.wav\", \"offset\": 1.5, \"duration\": 0.25, \"text\": "
               "\"two\", \"speaker\": \"s\"}\n");
  List list(
      of(folder, "root: @, manifest: @/train.json, columns: [text, speaker], utterances: {}"));
  CHECK(entries(list) == Texts{"-: b.wav#t=0,3.5|one|", "-: a.wav#t=1.5,1.75|two|s"});
  folder.write("whole.jsonl", "{\"audio_filepath\": \"b.wav\", \"duration\": 3.5}\n");
  List whole(of(folder, "root: @, manifest: @/whole.jsonl"));
  CHECK(whole.paths() == Texts{"b.wav"});
  CHECK(warnings(whole).empty());  // the duration is compared with the recording's
  // What columns_are say comes first.
  List other(of(folder, "root: @, manifest: @/train.json, columns_are: {path: '{text}.wav'}"));
  CHECK(other.paths() == Texts{"one.wav", "two.wav"});
}

TEST_CASE("a channel of its file for each line") {
  const TempFolder folder;
  folder.write("calls.csv",
               "file,side,who,zero\nx/1.wav,1,agent,0\nx/1.wav,2,caller,1\nx/2.wav,,both,\n"
               "x/3.wav,0,nobody,-1\nx/3.wav,b,nobody,1024\nno,2,none,1\n");
  const std::string options =
      "root: @, manifest: @/calls.csv, columns: {who: who}, columns_are: {path: file, channel";
  const auto bad = [&](const char* what, const char* advice) {
    return fmt::format(
        "-: x/3.wav [{}:{}: the channel is '{}', which is not a number from 1 to 1024{}]|nobody",
        folder / "calls.csv", *advice == 0 ? 6 : 5, what, advice);
  };
  List list(of(folder, options + ": side}"));
  CHECK(entries(list) ==
        Texts{"-: x/1#channel=1.wav|agent", "-: x/1#channel=2.wav|caller", "-: x/2.wav|both",
              bad("0", "; where channels are counted from 0, write channel_from_0"), bad("b", ""),
              "-: no#channel=2|none"});
  List from_0(of(folder, options + "_from_0: zero}"));
  CHECK(entries(from_0).at(1) == "-: x/1#channel=2.wav|caller");
}

TEST_CASE("Lhotse: recordings, supervisions and cuts; what is no part of one file fails alone") {
  const TempFolder folder;
  const auto recording = [](const std::string& id, const std::string& more = "",
                            const std::string& type = "file") {
    return "{\"id\": \"" + id + "\", \"sources\": [{\"type\": \"" + type +
           "\", \"channels\": [0], \"source\": \"" + id +
           ".wav\"}], \"sampling_rate\": 16000, \"num_samples\": 64000, \"duration\": 4.0, "
           "\"channel_ids\": [0]" +
           more + "}";
  };
  folder.write("x_recordings_train.jsonl",
               recording("r1") + "\n" + recording("r2", "", "url") + "\n" +
                   recording("r3", ", \"transforms\": [{\"name\": \"Speed\"}]") + "\n");
  const std::string columns = ", columns: [utterance, text, speaker], utterances: {}";
  List recordings(of(folder, "root: @, manifest: @/x_recordings_train.jsonl" + columns));
  CHECK(
      entries(recordings) ==
      Texts{"-: r1.wav#t=0|r1||",
            fmt::format("-: r2#t=0 [{}:2: r2 has a source of type url, which is not read; save it "
                        "as a file]|r2||",
                        folder / "x_recordings_train.jsonl"),
            fmt::format("-: r3#t=0 [{}:3: r3 has transforms, which are not applied; save "
                        "the changed audio]|r3||",
                        folder / "x_recordings_train.jsonl")});
  const auto supervision = [](const std::string& id, const std::string& of, double start,
                              double duration, int channel = 0) {
    return fmt::format(
        "{{\"id\": \"{}\", \"recording_id\": \"{}\", \"start\": {}, \"duration\": {}, "
        "\"channel\": {}, \"text\": \"text of {}\", \"speaker\": \"ann\"}}",
        id, of, start, duration, channel, id);
  };
  folder.write("x_supervisions_train.jsonl", supervision("s1", "r1", 0.5, 1) + "\n" +
                                                 supervision("s2", "r1", 2, 1, 1) + "\n" +
                                                 supervision("s3", "r9", 0, 1) + "\n");
  const std::string list = folder / "x_supervisions_train.jsonl";
  List supervisions(of(folder, "root: @, manifest: @/x_supervisions_train.jsonl" + columns));
  CHECK(entries(supervisions) ==
        Texts{"-: r1.wav#t=0.5,1.5|s1|text of s1|ann",
              fmt::format("-: r1.wav#t=2,3 [{}:2: s2 is channel 1 of a file with the channels 0; "
                          "save that channel as a file and name it]|s2|text of s2|ann",
                          list),
              fmt::format("-: s3#t=0 [{}:3: s3 is in the recording 'r9', which the recordings "
                          "lack]|s3|text of s3|ann",
                          list)});
  const auto cut = [&](const std::string& id, double start, double duration,
                       const std::string& inner) {
    return fmt::format(
        "{{\"id\": \"{}\", \"start\": {}, \"duration\": {}, \"channel\": 0, \"supervisions\": "
        "[{}], \"recording\": {}, \"type\": \"MonoCut\"}}",
        id, start, duration, inner, recording("r1"));
  };
  folder.write("cuts.jsonl",
               cut("c1", 0, 4, supervision("a", "r1", 0, 1) + "," + supervision("b", "r1", 1, 1)) +
                   "\n" + cut("c2", 1.25, 0.5, "") + "\n" +
                   "{\"id\": \"c3\", \"tracks\": [], \"type\": \"MixedCut\"}\nno json\n");
  List cuts(of(folder, "root: @, manifest: @/cuts.jsonl" + columns));
  CHECK(entries(cuts) ==
        Texts{"-: r1.wav#t=0|c1|text of a text of b|ann", "-: r1.wav#t=1.25,1.75|c2||",
              fmt::format(
                  "-: c3#t=0 [{0}:3: c3 is a MixedCut, which is no part of one file; save its "
                  "audio (save_audio) and name that]|c3||",
                  folder / "cuts.jsonl"),
              fmt::format("-: {0}:4#t=0 [{0}:4: this is no JSON object; one per line is "
                          "expected]|||",
                          folder / "cuts.jsonl")});
  // Without utterances the parts are not what is taken.
  List whole(of(folder, "root: @, manifest: @/cuts.jsonl"));
  bool is_told = false;
  for (const std::string& warning : warnings(whole))
    is_told = is_told || warning == folder / "cuts.jsonl" +
                                        ": the whole recording is taken for each entry; for its "
                                        "part write utterances: {}";
  CHECK(is_told);
  CHECK(complaint(folder, of(folder, "root: @, manifest: @/cuts.jsonl, columns: [custom]")) ==
        "@/cuts.jsonl: there is no column 'custom', which columns asks for; it has path, start, "
        "duration, utterance, recording, channel, text, speaker, language, gender");
  folder.write("supervisions.jsonl", supervision("s1", "r1", 0.5, 1) + "\n");
  CHECK(complaint(folder, of(folder, "root: @, manifest: @/supervisions.jsonl")) ==
        "@/supervisions.jsonl: these are supervisions, which need the list of their recordings "
        "beside them, and @/recordings.jsonl is not there");
}

TEST_CASE("Lhotse: a channel that is no whole number is no channel of the file") {
  const TempFolder folder;
  const auto cut = [](const std::string& channel) {
    return R"({"id": "c", "start": 0.5, "duration": 1, "channel": )" + channel +
           R"(, "supervisions": [], "recording": {"id": "r", "sources": [{"type": "file", )"
           R"("channels": [0, 1], "source": "r.wav"}], "sampling_rate": 16000, "duration": 4.0}, )"
           R"("type": "MonoCut"})"
           "\n";
  };
  folder.write("c.jsonl", cut("1") + cut("1.5") + cut("4294967296") + cut("\"1\"") + cut("1.0"));
  List list(of(folder, "manifest: @/c.jsonl, utterances: {}"));
  const auto refused = [&](int line, const std::string& channel) {
    return fmt::format(
        "-: r.wav#t=0.5,1.5 [{}:{}: c is channel {} of a file with the channels 0, 1; save that "
        "channel as a file and name it]",
        folder / "c.jsonl", line, channel);
  };
  CHECK(entries(list) == Texts{"-: r#channel=2.wav#t=0.5,1.5", "-: r#channel=2.wav#t=0.5,1.5",
                               refused(2, "1.5"), refused(3, "4294967296"), refused(4, "1")});
}

TEST_CASE("a header whose last name ends in '...' gives that column the rest of the line") {
  const TempFolder folder;
  folder.write("s/1/a.wav", "x");
  folder.write("s/2/b.wav", "x");
  folder.write("S.TXT", ";ID | NAME\n1 | Ann | of | York\n2 | Bob\n");
  List list(of(folder,
               "root: @/s, columns: {speaker: parent_dir}, join: {table: @/S.TXT, delimiter: '|', "
               "comment: ';', header: [id, name...], on: speaker, columns: [name]}"));
  CHECK(entries(list) == Texts{"-: 1/a.wav|1|Ann | of | York", "-: 2/b.wav|2|Bob"});
  CHECK(warnings(list).empty());
}

TEST_CASE("lists packed by gzip are read as they are, and damaged ones refused") {
  const TempFolder folder;
  // Two members: printf 'path,label\na.wav,x\n' | gzip -n; printf 'b.wav,y\n' | gzip -n
  const unsigned char packed[] = {
      0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x2b, 0x48, 0x2c, 0xc9,
      0xd0, 0xc9, 0x49, 0x4c, 0x4a, 0xcd, 0xe1, 0x4a, 0xd4, 0x2b, 0x4f, 0x2c, 0xd3, 0xa9,
      0xe0, 0x02, 0x00, 0xf0, 0x1a, 0x55, 0xbd, 0x13, 0x00, 0x00, 0x00, 0x1f, 0x8b, 0x08,
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x4b, 0xd2, 0x2b, 0x4f, 0x2c, 0xd3, 0xa9,
      0xe4, 0x02, 0x00, 0x8f, 0x32, 0x30, 0xbb, 0x08, 0x00, 0x00, 0x00};
  const std::string all(reinterpret_cast<const char*>(packed), sizeof packed);
  List list(of(folder, "manifest: '" + folder.write("l.csv.gz", all) + "', labels: manifest"));
  CHECK(entries(list) == Texts{"-: a.wav=x", "-: b.wav=y"});
  const std::string padded = all + std::string(20'000, '\0');
  List zeros(of(folder, "manifest: '" + folder.write("z.csv.gz", padded) + "', labels: manifest"));
  CHECK(entries(zeros) == Texts{"-: a.wav=x", "-: b.wav=y"});
  const std::string first = all.substr(0, 30);
  CHECK(complaint(folder, of(folder, "manifest: '" + folder.write("a.csv.gz", first) + "'"))
            .starts_with("@/a.csv.gz: this file packed by gzip ends too early"));
  CHECK(complaint(folder,
                  of(folder, "manifest: '" + folder.write("b.csv.gz", first + "\xff\xff") + "'"))
            .starts_with("@/b.csv.gz: this file packed by gzip is damaged"));
}

}  // namespace melflow::test::list_formats_test
