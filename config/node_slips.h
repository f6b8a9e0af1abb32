// Slips in writing nodes that YAML takes for something else: an option without a space behind its
// ':', and a node whose options are not indented.
#pragma once

#include <string>
#include <vector>

#include "pipeline/problem.h"
#include "pipeline/value.h"

namespace melflow {

/// Reports entries such as "hop:160" in { }, which are keys without a value, and makes them what was
/// meant, in the maps inside of `options`, too. Messages begin with `name`.
void mend_spaces(const std::string& name, Value& options, Problems& problems);

/// The entries of a graph as they were meant; every slip is reported, so that nothing which only
/// follows from it need be. `graph` is a map.
std::vector<Value::Entry> mend_slips(const Value& graph, Problems& problems);

}  // namespace melflow
