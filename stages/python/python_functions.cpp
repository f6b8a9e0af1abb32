#include "stages/python/python_functions.h"

namespace melflow {
namespace {

PythonHost* present = nullptr;

}  // namespace

void set_python_host(PythonHost* host) { present = host; }
PythonHost* python_host() { return present; }

}  // namespace melflow
