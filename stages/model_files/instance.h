// A class of another library with its arguments, as some file has them.
#pragma once

#include <string>
#include <vector>

#include "pipeline/base/value.h"

namespace melflow {

struct FrontEndFamily;

struct ModelInstance {
  const FrontEndFamily* family = nullptr;
  std::string class_name;
  Mark mark;   ///< of the class
  Value keys;  ///< a map; each value with its place in the file
};

}  // namespace melflow
