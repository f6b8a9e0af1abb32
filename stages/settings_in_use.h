// The settings of a stage whose options without an effect are not recorded.
#pragma once

#include "pipeline/options/schema.h"

namespace melflow {

template <class Options>
Value settings_in_use(Options options) {
  Schema s;
  options.describe(s);
  const Value all = s.echo();
  Value out = Value::map({});
  for (const Field& f : s.fields())
    if (f.is_used() && !f.is_tuning) out.set(f.name, *all.find(f.name));
  return out;
}

}  // namespace melflow
