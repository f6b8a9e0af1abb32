// repeat: yields every recording several times, for later stages that vary it (speed, random).
//
// In, out: RawBytes, the same each time. Each copy is decoded separately, so that recordings of any
// length fit the memory budget: no samples are kept for the next copy.

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/items.h"

namespace melflow {
namespace {

struct RepeatOptions {
  int times = 2;
  void describe(Schema& s) {
    s.field("times", times, "how many results each recording has; they are numbered from 0")
        .range(1, 1000);
  }
};

class Repeat final : public OneToMany<RawBytes, RawBytes> {
 public:
  explicit Repeat(RepeatOptions options) : options_(options) {}

  Properties plan(const Properties& given, const Requirements&, PlanCheck&) override {
    Properties out = given;
    out.set(property::kRepeated, {this, options_.times});
    return out;
  }
  [[nodiscard]] StageResources resources() const override { return {.passes_on = true}; }

  Result<Many> process(std::shared_ptr<const RawBytes> in, ItemContext&) const override {
    return Many(static_cast<std::size_t>(options_.times), in);
  }

 private:
  RepeatOptions options_;
};

const RegisterStage<Repeat, RepeatOptions> register_repeat{
    "repeat", "Gives every recording several times, each of which is decoded by itself.", true};

}  // namespace
}  // namespace melflow
