#include "pipeline/options/schema.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace melflow::schema_test {
namespace {

enum class Colour { red, green, blue };

struct Inner {
  int length = 1024;
  int hop = 512;
  void describe(Schema& s) {
    s.field("length", length, "samples").range(1, 1 << 20);
    s.field("hop", hop, "samples").at_least(1).tuning();
  }
};

struct Everything {
  int count = 3;
  std::uint16_t small = 7;
  std::uint64_t large = 9;
  double ratio = 0.5;
  float gain = 0.1F;
  bool flag = false;
  std::string text = "abc";
  Bytes size{65536};
  Colour colour = Colour::green;
  std::optional<int> maybe;
  std::optional<double> limit = 80;
  std::vector<std::string> names{"x"};
  std::vector<int> numbers;
  std::optional<Inner> inner;
  int threads = 2;

  void describe(Schema& s) {
    s.field("count", count, "how many").range(1, 64);
    s.field("small", small, "a small one");
    s.field("large", large, "a large one");
    s.field("ratio", ratio, "a share").greater_than(0);
    s.field("gain", gain, "[dB]").range(-60, 60);
    s.field("flag", flag, "on or off");
    s.field("text", text, "a text");
    s.field("size", size, "a size").range(4096, 1 << 30);
    s.field("colour", colour, "a colour");
    s.field("maybe", maybe, "may be missing").range(1, 10);
    s.field("limit", limit, "may be missing").at_least(0);
    s.field("names", names, "several");
    s.field("numbers", numbers, "several");
    s.group("inner", inner, "a group");
    s.field("threads", threads, "speed only").tuning();
  }
};

Mark at(int line, int column) {
  return {std::make_shared<const std::string>("s.yaml"), line, column};
}

// Reads one key and returns the problems as text.
std::string read(Everything& options, const std::string& key, Value value) {
  Schema schema;
  options.describe(schema);
  Problems problems;
  value.set_mark(at(2, 9));
  schema.read(Value::map({{key, std::move(value), at(2, 3)}}), "node.", problems);
  return problems.str();
}
std::string read(const std::string& key, const std::string& text, bool quoted = false) {
  Everything options;
  return read(options, key, Value::scalar(text, {}, quoted));
}

}  // namespace

}  // namespace melflow::schema_test

template <>
struct melflow::EnumNames<melflow::schema_test::Colour> {
  static constexpr std::pair<const char*, melflow::schema_test::Colour> values[] = {
      {"red", melflow::schema_test::Colour::red},
      {"green", melflow::schema_test::Colour::green},
      {"blue", melflow::schema_test::Colour::blue}};
};

namespace melflow::schema_test {

TEST_CASE("schema: every type reads its own texts") {
  Everything o;
  CHECK(read(o, "count", Value::scalar("64")).empty());
  CHECK(o.count == 64);
  CHECK(read(o, "count", Value::scalar("+5")).empty());
  CHECK(o.count == 5);
  CHECK(read(o, "large", Value::scalar("9223372036854775807")).empty());
  CHECK(o.large == 9223372036854775807ULL);
  CHECK(read(o, "ratio", Value::scalar("1e-3")).empty());
  CHECK(o.ratio == 1e-3);
  CHECK(read(o, "gain", Value::scalar("-60")).empty());
  CHECK(o.gain == -60.0F);
  for (const char* yes : {"true", "True", "TRUE", "yes", "on"}) {
    o.flag = false;
    CHECK(read(o, "flag", Value::scalar(yes)).empty());
    CHECK(o.flag);
  }
  for (const char* no : {"false", "False", "no", "off"}) {
    o.flag = true;
    CHECK(read(o, "flag", Value::scalar(no)).empty());
    CHECK_FALSE(o.flag);
  }
  CHECK(read(o, "text", Value::scalar("12", {}, true)).empty());
  CHECK(o.text == "12");
  CHECK(read(o, "colour", Value::scalar("blue")).empty());
  CHECK(o.colour == Colour::blue);
  CHECK(read(o, "maybe", Value::scalar("4")).empty());
  CHECK(read(o, "maybe", Value::scalar("auto", {}, true)).empty());  // as written by JSON
  CHECK(o.maybe == std::nullopt);
  CHECK(read(o, "maybe", Value::scalar("4")).empty());
  CHECK(o.maybe == 4);
  for (const char* none : {"none", "auto", "null"}) {
    o.limit = 1;
    CHECK(read(o, "limit", Value::scalar(none)).empty());
    CHECK_FALSE(o.limit.has_value());
  }
  o.limit = 1;
  CHECK(read(o, "limit", Value{}).empty());
  CHECK_FALSE(o.limit.has_value());
  CHECK(read(o, "names", Value::list({Value::scalar("a"), Value::scalar("b")})).empty());
  CHECK(o.names == std::vector<std::string>{"a", "b"});
  CHECK(read(o, "names", Value::scalar("one")).empty());
  CHECK(o.names == std::vector<std::string>{"one"});
}

TEST_CASE("schema: sizes take units, decimal and binary, whole and broken") {
  struct Row {
    const char* text;
    std::uint64_t bytes;
  };
  for (const Row& row : {Row{"4096", 4096},
                         {"4096B", 4096},
                         {"64KiB", 65536},
                         {"64 KiB", 65536},
                         {"64kB", 64000},
                         {"64KB", 64000},
                         {"1.5MiB", 1572864},
                         {"10MB", 10000000},
                         {"1GiB", 1 << 30},
                         {"0.25GB", 250000000}}) {
    Everything o;
    CAPTURE(std::string(row.text));
    CHECK(read(o, "size", Value::scalar(row.text)).empty());
    CHECK(o.size.count == row.bytes);
  }
  for (const char* bad : {"", "KiB", "4 KiB x", "4xib", "four", "nan", "inf"}) {
    CAPTURE(std::string(bad));
    CHECK(read("size", bad) ==
          "s.yaml:2:9: node.size: '" + std::string(bad) +
              "' is not a size such as 65536, 64KiB or 1.5GiB; allowed: 4KiB to 1GiB");
  }
  CHECK(
      read("size", "-4KiB") ==
      "s.yaml:2:9: node.size: '-4KiB' is less than 0; write a size such as 65536, 64KiB or 1.5GiB; "
      "allowed: 4KiB to 1GiB");
  for (const auto& row : {std::pair("4kib", "4KiB"), std::pair("512Mb", "512MiB"),
                          std::pair("1.5g", "1.5GiB"), std::pair("2T", "2TiB")}) {
    const char* const written = row.first;
    const char* const meant = row.second;
    CAPTURE(std::string(written));
    CHECK(
        read("size", written) ==
        fmt::format("s.yaml:2:9: node.size: '{}' is not a size such as 65536, 64KiB or 1.5GiB. Did "
                    "you mean '{}'? Allowed: 4KiB to 1GiB",
                    written, meant));
  }
  CHECK(read("size", "99999999TiB") ==
        "s.yaml:2:9: node.size: 99999999TiB is too large; allowed: 4KiB to 1GiB");
}

TEST_CASE("schema: a size as text reads back as the same size") {
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{1023},
        std::uint64_t{1024}, std::uint64_t{1536}, std::uint64_t{1} << 20,
        (std::uint64_t{1} << 20) + 1, std::uint64_t{3} << 29, std::uint64_t{1} << 40,
        std::uint64_t{5} << 50}) {
    CAPTURE(bytes);
    Bytes back;
    CHECK(OptionType<Bytes>::parse(Value::scalar(fmt::format("{}", Bytes{bytes})), back).empty());
    CHECK(back.count == bytes);
  }
  CHECK(fmt::format("{}", Bytes{512ULL << 20}) == "512MiB");
  CHECK(fmt::format("{}", Bytes{1536ULL << 20}) == "1536MiB");
  CHECK(fmt::format("{}", Bytes{100}) == "100B");
}

TEST_CASE("schema: a value of another type is refused with what was found and what is expected") {
  struct Row {
    const char* key;
    const char* text;
    bool quoted;
    const char* message;
  };
  for (const Row& row : {
           Row{"count", "12x", false, "'12x' is not an integer; allowed: 1 to 64"},
           {"count", "1.5", false, "'1.5' is not an integer; allowed: 1 to 64"},
           {"count", "12", true, "'12' is text because of its quotes; remove the quotes"},
           {"count", "", false, "'' is not an integer; allowed: 1 to 64"},
           {"count", "+-5", false, "'+-5' is not an integer; allowed: 1 to 64"},
           {"count", "99999999999999999999", false,
            "99999999999999999999 is too large; allowed: 1 to 64"},
           {"count", "3000000000", false, "3000000000 is too large; allowed: 1 to 64"},
           {"count", "-99999999999999999999", false,
            "-99999999999999999999 is too small; allowed: 1 to 64"},
           {"small", "65536", false, "65536 is too large"},
           {"small", "-1", false, "-1 is too small"},
           {"large", "-1", false, "-1 is too small"},
           {"ratio", "half", false, "'half' is not a number; allowed: more than 0"},
           {"ratio", "inf", false, "'inf' is not a number; allowed: more than 0"},
           {"ratio", "nan", false, "'nan' is not a number; allowed: more than 0"},
           {"ratio", "0.5", true, "'0.5' is text because of its quotes; remove the quotes"},
           {"flag", "1", false, "'1' is not true or false. Did you mean 'true'?"},
           {"flag", "true", true, "'true' is text because of its quotes; remove the quotes"},
           {"colour", "gren", false,
            "'gren' is not one of red, green, blue. Did you mean 'green'?"},
           {"colour", "7", false, "'7' is not one of red, green, blue"},
           {"maybe", "x", false, "'x' is not an integer; allowed: 1 to 10"},
           {"numbers", "x", false, "'x' is not an integer"},
           {"inner", "5", false, "'5' is not a map of options"},
       }) {
    CAPTURE(std::string(row.key));
    CAPTURE(std::string(row.text));
    CHECK(read(row.key, row.text, row.quoted) ==
          "s.yaml:2:9: node." + std::string(row.key) + ": " + row.message);
  }
  Everything o;
  CHECK(read(o, "count", Value::list({})) ==
        "s.yaml:2:9: node.count: a list is given where an integer is expected; allowed: 1 to 64; "
        "write one value, without the brackets");
  CHECK(read(o, "text", Value::map({})) ==
        "s.yaml:2:9: node.text: a map is given where a string is expected");
  CHECK(read(o, "text", Value::list({Value::scalar("a"), Value::scalar("b")})) ==
        "s.yaml:2:9: node.text: a list is given where a string is expected; write one value, "
        "without the brackets");
  const auto meant = [&](const char* key, const char* value) {
    const std::string all = read(o, key, Value::scalar(value));
    const std::size_t at = all.find(". Did you mean");
    return at == all.npos ? std::string() : all.substr(at);
  };
  CHECK(meant("count", "1,000") == ". Did you mean '1000'?");
  CHECK(meant("ratio", "1,5") == ". Did you mean '1.5'?");
  CHECK(meant("count", "1,2,3").empty());
  CHECK(meant("flag", "1") == ". Did you mean 'true'?");
  CHECK(meant("flag", "0") == ". Did you mean 'false'?");
}

TEST_CASE("schema: the range in the message is the range that help shows") {
  struct Row {
    const char* key;
    const char* text;
    const char* got;
    const char* allowed;
  };
  Everything o;
  Schema schema;
  o.describe(schema);
  for (const Row& row : {Row{"count", "0", "0", "1 to 64"},
                         {"count", "65", "65", "1 to 64"},
                         {"count", "-1", "-1", "1 to 64"},
                         {"ratio", "0", "0", "more than 0"},
                         {"ratio", "-0.25", "-0.25", "more than 0"},
                         {"gain", "60.5", "60.5", "-60 to 60 dB"},
                         {"size", "4095", "4095B", "4KiB to 1GiB"},
                         {"size", "2GiB", "2GiB", "4KiB to 1GiB"},
                         {"maybe", "11", "11", "1 to 10"},
                         {"limit", "-1", "-1", "at least 0"}}) {
    CAPTURE(std::string(row.key));
    CAPTURE(std::string(row.text));
    CHECK(read(row.key, row.text) == "s.yaml:2:9: node." + std::string(row.key) + ": " + row.got +
                                         " is out of range; allowed: " + row.allowed);
    for (const Field& f : schema.fields())
      if (f.name == row.key) CHECK(f.allowed() == row.allowed);
  }
  for (const char* edge : {"1", "64"}) CHECK(read("count", edge).empty());
  for (const char* edge : {"4KiB", "1GiB"}) CHECK(read("size", edge).empty());
}

TEST_CASE("schema: a refused value leaves the option as it was") {
  Everything o;
  read(o, "count", Value::scalar("1000"));
  read(o, "numbers", Value::list({Value::scalar("1"), Value::scalar("x")}));
  CHECK(o.count == 3);
  CHECK(o.numbers.empty());
}

TEST_CASE("schema: an unknown key is placed at the key, with the nearest name") {
  CHECK(read("cuont", "1") == "s.yaml:2:3: node.cuont: unknown option. Did you mean 'count'?");
  CHECK(read("zzzzzz", "1") ==
        "s.yaml:2:3: node.zzzzzz: unknown option; the options are count, small, large, ratio, "
        "gain, flag, text, size, colour, maybe, limit, names, numbers, inner, threads");
}

TEST_CASE("schema: another program's name of an option is explained, not taken") {
  constexpr OtherName names[] = {{"amount", "sox", "count"},
                                 {"loud", "", "gain", "6 for true, 0 for false"},
                                 {"counts", "", "names"}};
  Everything o;
  Schema s;
  o.describe(s);
  s.other_names(names);
  const auto complaint = [&](const char* key) {
    Problems problems;
    s.read(Value::map({{key, Value::scalar("5"), {}}}), "", problems);
    return problems.str();
  };
  CHECK(complaint("amount") ==
        "amount: unknown option; use 'count' instead (amount is the name in sox)");
  CHECK(complaint("loud") == "loud: unknown option; use 'gain' instead: 6 for true, 0 for false");
  CHECK(complaint("counts") == "counts: unknown option; use 'names' instead");  // not 'count'
  CHECK(o.count == 3);
  CHECK(advice_on("amuont", {&s}, {}) == "");
  Schema other;
  CHECK(advice_on("amount", {&other, &s}, {}, {"amounts"}) ==
        "; use 'count' instead (amount is the name in sox)");
  CHECK(advice_on("amounts", {&other}, {}, {"amount"}) == ". Did you mean 'amount'?");
}

TEST_CASE("schema: what an earlier version stored gets what it lacks and loses what is gone") {
  static constexpr OtherName kNames[] = {{"gone", "melflow 0.1", "", "remove it"},
                                         {"renamed", "melflow 0.1", "count"},
                                         {"elsewhere", "librosa", "", "write it elsewhere"}};
  int count = 3;
  std::string rule = "new";
  Schema schema;
  schema.field("count", count, "how many");
  schema.field("rule", rule, "how").was("old");
  schema.other_names(kNames);
  Value stored = Value::map({});
  for (const char* key : {"gone", "renamed", "elsewhere", "count"})
    stored.set(key, Value::scalar("7"));
  schema.update_stored(stored);
  CHECK(stored.find("gone") == nullptr);
  for (const char* key : {"renamed", "elsewhere", "count"}) CHECK(stored.find(key) != nullptr);
  REQUIRE(stored.find("rule") != nullptr);
  CHECK(stored.find("rule")->text() == "old");
}

TEST_CASE("schema: null is the default of an option of any type, and no value is none") {
  for (const char* key : {"count", "small", "large", "ratio", "gain", "flag", "text", "size",
                          "colour", "names", "numbers", "threads"}) {
    CAPTURE(key);
    Everything o;
    const auto echo = [&o] {
      Schema s;
      o.describe(s);
      return to_json(s.echo());
    };
    const std::string before = echo();
    CHECK(read(o, key, Value{}).empty());
    CHECK(echo() == before);
    CHECK(read(o, key, Value::missing()) != "");
  }
}

TEST_CASE("schema: a group reads its own options, reports its own problems, and null removes it") {
  Everything o;
  Value group = Value::map({{"length", Value::scalar("0", at(3, 13)), at(3, 5)},
                            {"hopp", Value::scalar("1", at(4, 13)), at(4, 5)},
                            {"hop", Value::scalar("256", at(5, 13)), at(5, 5)}});
  CHECK(read(o, "inner", group) ==
        "s.yaml:3:13: node.inner.length: 0 is out of range; allowed: 1 to 1048576\n"
        "s.yaml:4:5: node.inner.hopp: unknown option. Did you mean 'hop'?");
  REQUIRE(o.inner.has_value());
  CHECK(o.inner->hop == 256);
  CHECK(o.inner->length == 1024);
  CHECK(read(o, "inner", Value{}).empty());
  CHECK_FALSE(o.inner.has_value());
}

TEST_CASE("schema: help shows names, types, defaults and choices, also of a group") {
  Everything o;
  Schema s;
  o.describe(s);
  const auto field = [&](const std::string& name) -> const Field& {
    for (const Field& f : s.fields())
      if (f.name == name) return f;
    throw std::out_of_range(name);
  };
  CHECK(field("count").type == "integer");
  CHECK(field("count").default_text == "3");
  CHECK(field("gain").default_text == "0.1");
  CHECK(field("text").default_text == "\"abc\"");
  CHECK(field("size").default_text == "\"64KiB\"");
  CHECK(field("maybe").default_text == "null");
  CHECK(field("names").default_text == "[\"x\"]");
  CHECK(field("names").type == "list of text");
  CHECK(field("colour").choices == std::vector<std::string>{"red", "green", "blue"});
  CHECK(field("colour").allowed() == "red, green, blue");
  CHECK(field("text").allowed().empty());
  CHECK(field("inner").type == "group");
  REQUIRE(field("inner").children.size() == 2);
  CHECK(field("inner").children[0].default_text == "1024");
  CHECK(field("inner").children[0].allowed() == "1 to 1048576");
  CHECK(s.names().size() == s.fields().size());
}

TEST_CASE("schema: what is echoed reads back as the same options") {
  Everything o;
  o.count = 17;
  o.ratio = 1.0 / 3;
  o.gain = 0.1F;
  o.flag = true;
  o.text = "true";
  o.size = Bytes{1000000};
  o.colour = Colour::red;
  o.limit.reset();
  o.maybe = 5;
  o.names = {"a", "12", ""};
  o.numbers = {3, -1};
  o.inner = Inner{2048, 1};
  Schema s;
  o.describe(s);
  const Value echoed = s.echo();

  Everything back;
  Schema t;
  back.describe(t);
  Problems problems;
  t.read(echoed, "", problems);
  CHECK(problems.str().empty());
  CHECK(to_json(t.echo()) == to_json(echoed));
  CHECK(back.ratio == o.ratio);
  CHECK(back.gain == o.gain);
  CHECK(back.text == "true");
  CHECK(back.size == o.size);
  CHECK(back.names == o.names);
  CHECK(back.inner->length == 2048);
  CHECK_FALSE(back.limit.has_value());
}

TEST_CASE("schema: options that only change the speed are omitted from the features' echo") {
  Everything o;
  o.inner = Inner{};
  Schema s;
  o.describe(s);
  const Value features = s.echo(false);
  CHECK(features.find("threads") == nullptr);
  CHECK(features.find("count") != nullptr);
  REQUIRE(features.find("inner") != nullptr);
  CHECK(features.find("inner")->find("length") != nullptr);
  CHECK(features.find("inner")->find("hop") == nullptr);
  CHECK(s.echo().find("threads") != nullptr);
}

TEST_CASE("schema: a field that implies others is read first, wherever it stands") {
  struct Preset {
    int kind = 0, size = 1, weight = 2;
    void describe(Schema& s) {
      s.field("size", size, "how large");
      s.field("weight", weight, "how heavy");
      s.field("kind", kind, "sets the others").implies([this] { size = weight = 10 * kind; });
    }
  };
  for (const bool last : {true, false}) {
    CAPTURE(last);
    Preset p;
    Schema s;
    p.describe(s);
    Value map = Value::map({});
    if (!last) map.set("kind", Value::scalar("3"));
    map.set("size", Value::scalar("7"));
    if (last) map.set("kind", Value::scalar("3"));
    Problems problems;
    s.read(map, "", problems);
    CHECK(problems.empty());
    CHECK(p.kind == 3);
    CHECK(p.size == 7);
    CHECK(p.weight == 30);
  }
}

TEST_CASE("schema: what was written and has no effect is named, at its place") {
  struct Packing {
    std::string how = "none";
    int level = 1, like = 1;
    void describe(Schema& s) {
      s.field("level", level, "how hard").used_with("how: deflate", [this] {
        return how == "deflate";
      });
      s.field("how", how, "the way");
      s.field("like", like, "sets the level").implies([this] { level = like; });
    }
  };
  const auto remarks = [](const Value& map) {
    Packing p;
    Schema s;
    p.describe(s);
    Problems problems, unused;
    s.read(map, "", problems);
    REQUIRE(problems.empty());
    s.find_unused(map, "write.", unused);
    return unused.str();
  };
  const Value level = Value::scalar("6", at(3, 10));
  CHECK(remarks(Value::map({{"level", level, at(3, 3)}})) ==
        "s.yaml:3:3: write.level: has no effect without how: deflate; add that, or remove this");
  // Checked when all options are read.
  CHECK(remarks(Value::map({{"level", level, at(3, 3)}, {"how", Value::scalar("deflate"), {}}}))
            .empty());
  // Values implied by an option from outside of the file do not replace those in the file, which is
  // reported; a value that is also given outside is intended.
  const Mark outside{std::make_shared<const std::string>("--set"), 0, 1};
  const Value::Entry how{"how", Value::scalar("deflate"), {}};
  const Value::Entry like{"like", Value::scalar("2", outside), outside};
  CHECK(remarks(Value::map({{"level", level, at(3, 3)}, how, like})) ==
        "--set: write.like: 2 leaves what the node itself writes as it is: level is 6 and not 2; "
        "set these, too, or remove them from the node");
  CHECK(remarks(Value::map({{"level", Value::scalar("6", outside), outside}, how, like})).empty());
  CHECK(
      remarks(Value::map({{"level", Value::scalar("2", at(3, 10)), at(3, 3)}, how, like})).empty());
  CHECK(remarks(Value::map({{"level", level, at(3, 3)},
                            how,
                            {"like", Value::scalar("2", at(4, 9)), at(4, 3)}}))
            .empty());
  // Values that equal the default or the implied value.
  CHECK(remarks(Value::map({{"level", Value::scalar("1"), {}}})).empty());
  CHECK(remarks(Value::map({{"level", level, {}}, {"like", Value::scalar("6"), {}}})).empty());
  CHECK_FALSE(
      remarks(Value::map({{"level", level, {}}, {"like", Value::scalar("7"), {}}})).empty());
  // No remarks on options that the user did not write.
  CHECK(remarks(Value::map({{"how", Value::scalar("none"), {}}})).empty());
}

}  // namespace melflow::schema_test
