// The table of the mel options: each row is checked, read and stored consistently.

#include "stages/features/mel/mel_option_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "stages/features/mel/mel_presets.h"
#include "stages/features/mel_stage_options.h"
#include "stages/output/formats/feature_fingerprint.h"

namespace melflow::mel_option_table_test {
namespace {

using O = MelOptions;

bool is_whole(const MelOptionRow& row) {
  return std::holds_alternative<int O::*>(row.member) ||
         std::holds_alternative<std::optional<int> O::*>(row.member);
}

// Sets a member that is a number; leaves others unchanged.
void set_number(MelStageOptions& stage, const MelOptionRow& row, double value) {
  std::visit(
      [&](auto member) {
        auto& target = stage.mel.*member;
        using T = std::decay_t<decltype(target)>;
        if constexpr (std::is_same_v<T, int> || std::is_same_v<T, std::optional<int>>)
          target = static_cast<int>(value);
        else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>)
          target = value;
        else if constexpr (std::is_same_v<T, O::Reference>)
          target.value = value;
        else if constexpr (std::is_same_v<T, std::vector<double>>)
          target = {value};
        else if constexpr (std::is_same_v<T, O::WindowValues>)
          target.numbers = {value};
        else if constexpr (std::is_same_v<T, O::Filters>)
          target = {{value}, 1, 1, ""};
      },
      row.member);
  stage.set(MelOptions(stage.mel));
}

bool check_names(const MelOptionRow& row, const MelStageOptions& stage) {
  const auto problems = check(stage.mel);
  return std::any_of(problems.begin(), problems.end(), [&](const MelOptionProblem& p) {
    return p.option == row.name && p.message.find(" but must be ") != std::string::npos;
  });
}

// Returns the message for a configuration with this option as in `stage`.
std::string complaint(const MelOptionRow& row, MelStageOptions stage) {
  const std::string name(row.name);
  Schema written, read;
  stage.describe(written);
  Value map = Value::map({});
  map.set(name, *written.echo().find(name));
  MelStageOptions fresh;
  fresh.describe(read);
  Problems problems;
  read.read(map, "", problems);
  return problems.str();
}

TEST_CASE("mel option table: a range holds in configurations and in check()") {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  int ends = 0;
  for (const MelOptionRow& row : mel_option_table()) {
    CAPTURE(row.name);
    for (const double outside : {-kInfinite, kInfinite}) {
      const double end = outside < 0 ? row.range.lowest : row.range.highest;
      if (!std::isfinite(end)) continue;
      CAPTURE(end);
      ++ends;
      MelStageOptions stage;
      const double beyond = is_whole(row) ? end + (outside > 0 ? 1 : -1)
                            : row.range.excludes_lowest && outside < 0
                                ? end
                                : std::nextafter(end, outside);
      set_number(stage, row, beyond);
      CHECK(check_names(row, stage));
      // Lists, and options that are a number or max, are checked together with all options.
      const bool is_checked_later = std::holds_alternative<std::vector<double> O::*>(row.member) ||
                                    std::holds_alternative<O::WindowValues O::*>(row.member) ||
                                    std::holds_alternative<O::Filters O::*>(row.member) ||
                                    std::holds_alternative<O::Reference O::*>(row.member);
      CHECK((complaint(row, stage).find("out of range") != std::string::npos) != is_checked_later);
      set_number(stage, row, is_whole(row) ? end : std::nextafter(beyond, -outside));
      if (!row.range.has(end)) set_number(stage, row, std::nextafter(end, kInfinite));
      CHECK(complaint(row, stage) == "");
      const auto problems = check(stage.mel);  // other problems concern other options, too
      for (const MelOptionProblem& p : problems)
        if (p.option == row.name) CHECK(p.message.find("must be from") == std::string::npos);
    }
  }
  CHECK(ends >= 40);
}

TEST_CASE("mel option table: every row is an option of the stage, in this order") {
  MelStageOptions stage;
  Schema schema;
  stage.describe(schema);
  std::vector<std::string> names{"preset"};
  for (const MelOptionRow& row : mel_option_table()) names.emplace_back(row.name);
  names.emplace_back("preset_of");
  CHECK(schema.names() == names);
}

TEST_CASE("mel option table: null unsets every option, whatever a preset sets it to") {
  const auto echo_of = [](const Value& written) {
    MelStageOptions stage;
    Schema schema;
    stage.describe(schema);
    Problems problems;
    schema.read(written, "", problems);
    CHECK(problems.str() == "");
    return schema.echo();
  };
  const Value unset = echo_of(Value::map({}));
  for (const MelPreset& preset : mel_presets()) {
    const Value name = Value::scalar(std::string(preset.name));
    const Value whole = echo_of(Value::map({{"preset", name, {}}}));
    for (const MelOptionRow& row : mel_option_table()) {
      CAPTURE(preset.name);
      CAPTURE(row.name);
      const std::string option(row.name);
      const Value echo = echo_of(Value::map({{option, Value{}, {}}, {"preset", name, {}}}));
      for (const Value::Entry& e : echo.entries()) {
        const Value& expected = e.key == option ? unset : whole;
        CHECK(to_json(e.value) == to_json(*expected.find(e.key)));
      }
    }
  }
}

// Existing outputs must keep their hash, or an update would recompute them. A new option is not
// recorded where it has its earlier implicit value.
TEST_CASE("mel option table: presets have the canonical form that they always had") {
  const std::pair<const char*, const char*> table[] = {
      {"librosa", "b2f407f04f8ca8408272d5740bfc91c9"},
      {"torchaudio", "b8ee10f7cde5f576fa97ec3eb7371ed9"},
      {"kaldi", "ec16ed64eff111055c386df34b57e39e"},
      {"kaldi_htk", "1b5469e2c642ce019eec6cbd46fb81a3"},
      {"whisper", "383ee692babc1476648dd83a45cd0787"},
      {"whisper_large_v3", "40f72be17cfc18354abc5831ae5cd79c"},
      {"nemo", "b12a91a60a51af21a33de8cbb43d05d9"},
      {"speechbrain", "7f4fb8f36ffc20912da7d4a0f7e2c22b"},
      {"hifigan", "140ed41b78c73e984fe2a667f150965b"},
      {"ast", "a47502fec3106b6fa0ca9c141c569617"},
  };
  for (const auto& row : table) {
    CAPTURE(row.first);
    const Value canonical = MelStageOptions::canonical(find_preset(row.first)->options);
    CAPTURE(to_json(canonical));
    CHECK(feature_fingerprint(canonical) == row.second);
  }
}

}  // namespace
}  // namespace melflow::mel_option_table_test
