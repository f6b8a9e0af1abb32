// Calls of Python functions from stages: through melflow/calls.py.
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/program.h"
#include "apps/python/arrays.h"
#include "apps/python/process.h"
#include "apps/python/text_caster.h"
#include "pipeline/base/problem.h"
#include "stages/python/python_functions.h"

using namespace melflow;

namespace {

// The class Call of melflow/calls.py.
nb::object& class_of_calls() {
  static auto* type = new nb::object;  // outlives Python
  return *type;
}

std::string text_of(const nb::python_error& error) {
  return nb::cast<std::string>(nb::str(error.value()));
}

class Function final : public PythonFunction {
 public:
  explicit Function(nb::object call)
      : call_(std::move(call)),
        function_(call_.attr("function")),
        hash_(nb::cast<std::string>(call_.attr("source_hash"))) {}
  ~Function() override {
    if (const WithinPython python; python) {
      call_.reset();
      function_.reset();
    } else {
      (void)call_.release();
      (void)function_.release();
    }
  }

  [[nodiscard]] std::string source_hash() const override { return hash_; }

  [[nodiscard]] PythonAnswer call(const float* values, const std::vector<std::size_t>& shape,
                                  int sample_rate) const override {
    std::size_t count = 1;
    for (const std::size_t n : shape) count *= n;
    // The function may keep or change the array.
    auto owner = std::make_unique<std::vector<float>>(values, values + count);
    const WithinPython python;
    if (!python) return {PythonAnswer::Outcome::failed, "Python is shutting down", {}, {}};
    try {
      float* data = owner->data();
      return answer(
          function_(array(std::move(owner), data, shape, nb::dtype<float>()), sample_rate));
    } catch (const nb::python_error& error) {
      return {PythonAnswer::Outcome::failed, text_of(error), {}, {}};
    }
  }

 private:
  using Array = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

  static PythonAnswer answer(const nb::object& given) {
    const auto parts = nb::cast<nb::tuple>(given);
    const auto outcome = nb::cast<std::string>(parts[0]);
    PythonAnswer out;
    out.outcome = outcome == "made"      ? PythonAnswer::Outcome::made
                  : outcome == "skipped" ? PythonAnswer::Outcome::skipped
                                         : PythonAnswer::Outcome::failed;
    out.reason = nb::cast<std::string>(parts[1]);
    for (const nb::handle one : nb::cast<nb::list>(parts[2])) {
      const auto result = nb::cast<Array>(one);
      PythonArray& to = out.results.emplace_back();
      for (std::size_t i = 0; i < result.ndim(); ++i) to.shape.push_back(result.shape(i));
      to.values.assign(result.data(), result.data() + result.size());
    }
    out.notes = nb::cast<std::vector<std::string>>(parts[3]);
    return out;
  }

  nb::object call_, function_;
  std::string hash_;
};

class Host final : public PythonHost {
 public:
  std::shared_ptr<const PythonFunction> open(const PythonCall& call) override {
    const WithinPython python;
    if (!python) throw RunError("Python is shutting down");
    try {
      return std::make_shared<Function>(class_of_calls()(call.function, call.arguments, call.gives,
                                                         call.processes, call.timeout_seconds));
    } catch (const nb::python_error& error) {
      throw RunError(text_of(error));
    }
  }
  std::string export_rows(const std::string& arguments) override {
    const WithinPython python;
    if (!python) throw RunError("Python is shutting down");
    try {
      const auto of_verb = nb::module_::import_("melflow.exports").attr("of_verb");
      return nb::cast<std::string>(of_verb(arguments));
    } catch (const nb::python_error& error) {
      throw RunError(text_of(error));
    }
  }
};

// The program, within Python: for `python3 -m melflow`.
int main_of(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const nb::gil_scoped_release free;
  return run_program(static_cast<int>(arguments.size()), pointers.data());
}

}  // namespace

void bind_host(nb::module_& m);
void bind_host(nb::module_& m) {
  m.def("set_calls", [](nb::object type) { class_of_calls() = std::move(type); });
  m.def("main", &main_of, nb::arg("arguments"));
  static Host host;
  set_python_host(&host);
}
