#include "pipeline/stage/stage_abilities.h"

#include "pipeline/stage/paired_inputs.h"

namespace melflow {

StageFaces::StageFaces(Stage& stage)
    : source(dynamic_cast<SourceStage*>(&stage)),
      items(dynamic_cast<ItemStage*>(&stage)),
      combine(dynamic_cast<CombineStage*>(&stage)),
      engine(dynamic_cast<HasEngine*>(&stage)),
      filling(dynamic_cast<FillingPass*>(&stage)),
      holds(dynamic_cast<HoldsItems*>(&stage)),
      left_out(dynamic_cast<NotesLeftOut*>(&stage)),
      resumes(dynamic_cast<Resumes*>(&stage)),
      passes(dynamic_cast<PassesAny*>(&stage)),
      keeps(dynamic_cast<KeepsMemory*>(&stage)),
      ahead(dynamic_cast<MakesAhead*>(&stage)),
      unites(dynamic_cast<UnitesSources*>(&stage)),
      paired(dynamic_cast<PairedInputs*>(&stage)) {}

}  // namespace melflow
