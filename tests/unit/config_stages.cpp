#include "tests/unit/config_stages.h"
#include "tests/support/problems.h"

#include <sstream>

#include "tests/support/plan_node.h"

namespace {
using namespace melflow;

// Three stages over numbers, with an option of every kind.
struct Number {
  static constexpr const char* kName = "number";
  [[nodiscard]] static std::size_t bytes() { return 8; }
  [[nodiscard]] static std::size_t rows() { return 1; }
};

enum class Mode { soft, hard };

struct ListOptions {
  std::string root;
  std::vector<std::string> include{"**/*"};
  void describe(Schema& s) {
    s.field("root", root, "where | to look");
    s.field("include", include, "patterns");
  }
};
class List final : public Source<Number> {
 public:
  explicit List(const ListOptions&) {}
  std::size_t count() const override { return 0; }
  SourceItem item(std::size_t) override { return {}; }
  std::string name(std::size_t) const override { return {}; }
};

struct SpanOptions {
  int length = 0;
  std::optional<int> hop;
  void describe(Schema& s) {
    s.field("length", length, "samples").range(1, 100);
    s.field("hop", hop, "samples").at_least(1);
  }
};

}  // namespace

template <>
struct melflow::EnumNames<Mode> {
  static constexpr std::pair<const char*, Mode> values[] = {{"soft", Mode::soft},
                                                            {"hard", Mode::hard}};
};

namespace {

struct ScaleOptions {
  double gain = 1;
  Bytes block{1024};
  Mode mode = Mode::soft;
  bool strict = false;
  std::optional<SpanOptions> span;
  void describe(Schema& s) {
    s.field("gain", gain, "gain [dB]").range(-60, 60);
    s.field("block", block, "bytes").at_least(16).tuning();
    s.field("mode", mode, "how");
    s.field("strict", strict, "whether");
    s.group("span", span, "windows");
  }
};
class Scale final : public Transform<Number, Number> {
 public:
  explicit Scale(ScaleOptions options) : options_(options) {}
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    if (options_.gain == 7) check.error("gain", "7 does not go with it");
    if (options_.gain == 6) check.warning("gain", "6 is unusual");
    return given;
  }
  std::size_t output_bound(const SourceInfo&, std::size_t) const override { return 1 << 10; }
  Result<std::shared_ptr<const Number>> process(std::shared_ptr<const Number> in,
                                                ItemContext&) const override {
    return in;
  }

 private:
  ScaleOptions options_;
};

struct KeepOptions {
  std::string path;
  void describe(Schema& s) { s.field("path", path, "where to"); }
};
class Keep final : public Sink<Number> {
 public:
  explicit Keep(const KeepOptions&) {}
  std::optional<ItemError> consume(std::shared_ptr<const Number>, ItemContext&) override {
    return {};
  }
};

template <class S, class Options>
StageInfo info(const char* name, const char* summary) {
  struct Config final : StageConfig {
    Config() { options.describe(bound); }
    const Schema& schema() const override { return bound; }
    std::unique_ptr<Stage> make() const override { return std::make_unique<S>(options); }
    Options options;
    Schema bound;
  };
  StageInfo out;
  out.name = name;
  out.summary = summary;
  out.traits = S(Options{}).traits();
  out.configure = [] { return std::make_unique<Config>(); };
  return out;
}

}  // namespace

namespace melflow::test {

const Registry& config_registry() {
  static const Registry all = [] {
    Registry r;
    r.add(info<List, ListOptions>("list", "Lists numbers."));
    r.add(info<Scale, ScaleOptions>("scale", "Scales numbers."));
    r.add(info<Keep, KeepOptions>("keep", "Keeps numbers."));
    return r;
  }();
  return all;
}

std::string with_scale(const std::string& scale, const std::string& top) {
  return top +
         "\n"
         "graph:\n"
         "  files: {stage: list, root: here}\n" +
         scale +
         "\n"
         "  out: {stage: keep, from: scale, path: out.h5}\n";
}
Plan load(const std::string& text, const LoadOptions& options) {
  return load_plan_text(text, "t.yaml", options, config_registry());
}

std::string problems_of(const std::string& text, const LoadOptions& options) {
  return problems_in([&] { return load(text, options); });
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::string option(const Plan& plan, const std::string& node, const std::string& name) {
  const Value echo = test::node_of(plan, node)->config->schema().echo();
  const Value* at = &echo;
  std::size_t begin = 0;
  while (at != nullptr) {
    const std::size_t dot = name.find('.', begin);
    at = at->find(name.substr(begin, dot - begin));
    if (dot == std::string::npos) break;
    begin = dot + 1;
  }
  return at == nullptr ? "(none)" : to_json(*at);
}

}  // namespace melflow::test
