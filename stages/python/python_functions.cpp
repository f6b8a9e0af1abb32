#include "stages/python/python_functions.h"

namespace melflow {
std::string shown_call(const std::string& call) {
  if (!call.starts_with('@')) return call;
  const std::string name = call.substr(1, call.find_first_of("-:") - 1);
  const std::size_t inner = name.rfind('.');
  return inner == name.npos ? name : name.substr(inner + 1);
}

namespace {

PythonHost* present = nullptr;

}  // namespace

void set_python_host(PythonHost* host) { present = host; }
PythonHost* python_host() { return present; }

}  // namespace melflow
