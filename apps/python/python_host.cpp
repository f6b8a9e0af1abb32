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

// The class Items of melflow/items.py.
nb::object& class_of_items() {
  static auto* type = new nb::object;  // outlives Python
  return *type;
}

class Items final : public PythonItems {
 public:
  explicit Items(nb::object items) : items_(std::move(items)) {}
  ~Items() override {
    if (const WithinPython python; python)
      items_.reset();
    else
      (void)items_.release();
  }

  std::optional<PythonItem> next() override {
    const WithinPython python;
    if (!python) throw RunError("Python is shutting down");
    try {
      const nb::object given = items_.attr("next")();
      if (given.is_none()) return std::nullopt;
      const auto parts = nb::cast<nb::tuple>(given);
      PythonItem out{.path = nb::cast<std::string>(parts[0]),
                     .cells = {},
                     .size = nb::cast<std::int64_t>(parts[2]),
                     .modified = nb::cast<std::int64_t>(parts[3]),
                     .file = nb::cast<std::string>(parts[4]),
                     .problem = nb::cast<std::string>(parts[5])};
      for (const nb::handle cell : nb::cast<nb::list>(parts[1])) {
        const auto pair = nb::cast<nb::tuple>(cell);
        out.cells.emplace_back(nb::cast<std::string>(pair[0]), nb::cast<std::string>(pair[1]));
      }
      return out;
    } catch (const nb::python_error& error) {
      throw RunError(text_of(error));
    }
  }
  [[nodiscard]] bool has_paths() const override {
    const WithinPython python;
    return python && nb::cast<bool>(items_.attr("has_paths"));
  }
  PythonAnswer read(const std::string& path,
                    const std::function<void(std::span<const std::byte>)>& take) const override {
    const WithinPython python;
    if (!python) return {PythonAnswer::Outcome::failed, "Python is shutting down", {}, {}};
    try {
      const auto parts = nb::cast<nb::tuple>(items_.attr("read")(path));
      if (parts[0].is_none())
        return {nb::cast<bool>(parts[2]) ? PythonAnswer::Outcome::skipped
                                         : PythonAnswer::Outcome::failed,
                nb::cast<std::string>(parts[1]),
                {},
                {}};
      Py_buffer bytes;
      if (PyObject_GetBuffer(parts[0].ptr(), &bytes, PyBUF_SIMPLE) != 0) throw nb::python_error();
      {
        const nb::gil_scoped_release free;
        take({static_cast<const std::byte*>(bytes.buf), static_cast<std::size_t>(bytes.len)});
      }
      PyBuffer_Release(&bytes);
      return {};
    } catch (const nb::python_error& error) {
      return {PythonAnswer::Outcome::failed, text_of(error), {}, {}};
    }
  }

 private:
  nb::object items_;
};

class Host final : public PythonHost {
 public:
  std::shared_ptr<PythonItems> open_items(const std::string& function,
                                          const std::string& arguments) override {
    const WithinPython python;
    if (!python) throw RunError("Python is shutting down");
    try {
      return std::make_shared<Items>(class_of_items()(function, arguments));
    } catch (const nb::python_error& error) {
      throw RunError(text_of(error));
    }
  }
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
  m.def("set_items", [](nb::object type) { class_of_items() = std::move(type); });
  m.def("main", &main_of, nb::arg("arguments"));
  static Host host;
  set_python_host(&host);
}
