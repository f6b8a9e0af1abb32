// Calls of Python functions from stages: through melflow/calls.py.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/program.h"
#include "apps/python/arrays.h"
#include "apps/python/process.h"
#include "apps/python/text_caster.h"
#include "apps/report/printing.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"
#include "stages/containers/web_address.h"
#include "stages/containers/web_limits.h"
#include "stages/corpus/kaldi_folder.h"
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

// Looks every 20 ms from the first call on whether Python's lock is held while a call is under way.
class LockSampler final : public EndsWithPython {
 public:
  ~LockSampler() {
    const WithoutLockIfHeld free;
    stop();
  }
  class Call {
   public:
    explicit Call(LockSampler* sampler) : sampler_(sampler) {
      if (sampler_ != nullptr && sampler_->under_way_++ == 0) sampler_->start();
    }
    ~Call() {
      if (sampler_ != nullptr) --sampler_->under_way_;
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    LockSampler* const sampler_;
  };
  [[nodiscard]] LockLooks looks() const { return {looks_, held_}; }

  void stop() override {
    std::unique_lock lock(mutex_);
    is_over_ = true;
    changed_->notify_all();
    std::thread thread = std::move(thread_);
    lock.unlock();
    if (!thread.joinable()) return;
    if (is_forked_off())
      thread.detach();  // a forked process does not have it
    else
      thread.join();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kBetween = std::chrono::milliseconds(20);
  static constexpr auto kFree = std::chrono::microseconds(50);  // a lock nobody has takes less

  void start() {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable() && !is_over_) thread_ = std::thread([this] { look(); });
  }
  void look() {
    name_this_thread(thread_name("lock", 1));
    std::unique_lock lock(mutex_);
    while (!changed_->wait_for(lock, kBetween, [this] { return is_over_; })) {
      lock.unlock();
      ++looks_;
      if (under_way_ > 0) {
        const Clock::time_point asked = Clock::now();
        const WithinPython python;
        if (python && Clock::now() - asked > kFree) ++held_;
      }
      lock.lock();
    }
  }

  std::mutex mutex_;  // guards `is_over_` and `thread_`
  Condition changed_{new std::condition_variable};
  bool is_over_ = false;
  std::thread thread_;
  std::atomic<int> under_way_ = 0;
  std::atomic<std::size_t> looks_ = 0, held_ = 0;
};

using GivenArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

PythonAnswer failed(std::string why) {
  return {PythonAnswer::Outcome::failed, std::move(why), {}, {}};
}

nb::list list_of(std::vector<PythonArray> arrays) {
  nb::list out;
  for (PythonArray& one : arrays) {
    auto owner = std::make_unique<std::vector<float>>(std::move(one.values));
    float* data = owner->data();
    out.append(array(std::move(owner), data, one.shape, nb::dtype<float>()));
  }
  return out;
}

// Converts an Answer of melflow/call_results.py, with results of `type`.
PythonAnswer answer(const nb::handle& given, NumberType type) {
  const auto parts = nb::cast<nb::tuple>(given);
  const auto outcome = nb::cast<std::string>(parts[0]);
  PythonAnswer out;
  out.outcome = outcome == "made"      ? PythonAnswer::Outcome::made
                : outcome == "skipped" ? PythonAnswer::Outcome::skipped
                                       : PythonAnswer::Outcome::failed;
  out.reason = nb::cast<std::string>(parts[1]);
  out.results.type = type;
  for (const nb::handle one : nb::cast<nb::list>(parts[2])) {
    const auto result = nb::cast<GivenArray>(one);
    std::vector<std::size_t>& shape = out.results.shapes.emplace_back();
    for (std::size_t i = 0; i < result.ndim(); ++i) shape.push_back(result.shape(i));
    if (result.dtype() != dtype_of(type))
      throw std::logic_error("a result of another type than that of its node");
    const auto* from = static_cast<const std::byte*>(result.data());
    out.results.values.insert(out.results.values.end(), from, from + result.nbytes());
  }
  out.notes = nb::cast<std::vector<std::string>>(parts[3]);
  return out;
}

// An object of the class Stream of melflow/callers.py.
class Stream final : public PythonStream {
 public:
  // `sampler` belongs to the function, which outlives the stream.
  Stream(nb::object stream, LockSampler* sampler) : stream_(std::move(stream)), sampler_(sampler) {}
  ~Stream() override {
    if (const WithinPython python; python)
      stream_.reset();
    else
      (void)stream_.release();
  }
  PythonAnswer call(std::vector<PythonArray> blocks, int sample_rate, bool is_last) override {
    const LockSampler::Call under_way(sampler_);
    const WithinPython python;
    if (!python || !stream_.is_valid()) return failed("Python is shutting down");
    try {
      return answer(stream_(list_of(std::move(blocks)), sample_rate, is_last), NumberType::float32);
    } catch (const nb::python_error& error) {
      return failed(text_of(error));
    }
  }

 private:
  nb::object stream_;
  LockSampler* const sampler_;
};

class Function final : public PythonFunction {
 public:
  Function(nb::object call, bool is_here, NumberType type)
      : type_(type),
        call_(std::move(call)),
        function_(call_.attr("function")),
        hash_(nb::cast<std::string>(call_.attr("source_hash"))),
        sampler_(is_here ? std::make_unique<LockSampler>() : nullptr) {}
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
  [[nodiscard]] LockLooks lock_looks() const override {
    return sampler_ ? sampler_->looks() : LockLooks{};
  }

  [[nodiscard]] std::vector<PythonAnswer> call(std::vector<PythonArray> arrays,
                                               int sample_rate) const override {
    const std::size_t count = arrays.size();
    const LockSampler::Call under_way(sampler_.get());
    const WithinPython python;
    if (!python) return {count, failed("Python is shutting down")};
    try {
      std::vector<PythonAnswer> out;
      for (const nb::handle one :
           nb::cast<nb::list>(function_(list_of(std::move(arrays)), sample_rate)))
        out.push_back(answer(one, type_));
      return out;
    } catch (const nb::python_error& error) {
      return {count, failed(text_of(error))};
    }
  }

  [[nodiscard]] std::unique_ptr<PythonStream> open_stream() const override {
    const WithinPython python;
    if (!python) return std::make_unique<Stream>(nb::object(), nullptr);
    return std::make_unique<Stream>(function_.attr("stream")(), sampler_.get());
  }

  [[nodiscard]] CallsTaken calls_taken() const override {
    const WithinPython python;
    if (!python) return {};
    const auto taken = nb::cast<nb::tuple>(function_.attr("taken")());
    return {nb::cast<int>(taken[0]), nb::cast<double>(taken[1]), nb::cast<double>(taken[2]),
            nb::cast<double>(taken[3])};
  }

 private:
  const NumberType type_;  // of its results
  nb::object call_, function_;
  std::string hash_;
  const std::unique_ptr<LockSampler> sampler_;  // null: other processes are called
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
                     .columns = {},
                     .size = nb::cast<std::int64_t>(parts[2]),
                     .modified = nb::cast<std::int64_t>(parts[3]),
                     .file = nb::cast<std::string>(parts[4]),
                     .problem = nb::cast<std::string>(parts[5])};
      for (const nb::handle column : nb::cast<nb::list>(parts[1]))
        out.columns.push_back(nb::cast<std::string>(column));
      return out;
    } catch (const nb::python_error& error) {
      throw RunError(text_of(error));
    }
  }
  [[nodiscard]] Result<std::string> cell(const std::string& column) const override {
    const WithinPython python;
    if (!python) throw RunError("Python is shutting down");
    try {
      auto [text, problem] =
          nb::cast<std::pair<std::string, std::string>>(items_.attr("cell")(column));
      if (problem.empty()) return std::move(text);
      return ItemError::failed(std::move(problem));
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
    if (!python) return failed("Python is shutting down");
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
      const std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> held(&bytes, PyBuffer_Release);
      const nb::gil_scoped_release free;
      take({static_cast<const std::byte*>(bytes.buf), static_cast<std::size_t>(bytes.len)});
      return {};
    } catch (const nb::python_error& error) {
      return failed(text_of(error));
    }
  }

 private:
  nb::object items_;
};

class Host final : public PythonHost {
 public:
  std::shared_ptr<PythonItems> open_items(const std::string& function, const std::string& arguments,
                                          const WebLimits& web) override {
    const WithinPython python;
    if (!python) throw RunError("Python is shutting down");
    try {
      return std::make_shared<Items>(class_of_items()(
          function, arguments, web.largest.count, web.least_speed.count, web.patience, web.time));
    } catch (const nb::python_error& error) {
      throw RunError(text_of(error));
    }
  }
  std::shared_ptr<const PythonFunction> open(const PythonCall& call) override {
    const WithinPython python;
    if (!python) throw RunError("Python is shutting down");
    try {
      return std::make_shared<Function>(
          class_of_calls()(call.function, call.arguments, call.gives, call.processes,
                           call.timeout_seconds, call.batch, call.has_blocks, call.columns,
                           to_text(call.type)),
          call.processes == 0, call.type);
    } catch (const nb::python_error& error) {
      throw RunError(text_of(error));
    }
  }
  PythonVerb run_verb(const std::string& module, const std::string& arguments) override {
    const WithinPython python;
    if (!python) throw RunError("Python is shutting down");
    try {
      const auto of_verb = nb::module_::import_(("melflow." + module).c_str()).attr("of_verb");
      const auto ended = nb::cast<nb::tuple>(of_verb(arguments));
      return {nb::cast<int>(ended[0]), nb::cast<std::string>(ended[1]),
              nb::cast<std::string>(ended[2])};
    } catch (const nb::python_error& error) {
      throw RunError(text_of(error));
    }
  }
};

// The utterances of a data folder of Kaldi whose commands may be run, for melflow/kaldi.py.
class KaldiRows {
 public:
  explicit KaldiRows(const std::string& path)
      : folder_(opened(path), {}, KaldiFolder::OtherCommands::keep) {}
  // The cells of the next line by their columns, and what is wrong with it, or "".
  nb::tuple next() {
    std::string problem;
    try {
      if (!folder_.next()) throw nb::stop_iteration();
    } catch (const BadLine& e) {
      problem = e.what();
    }
    nb::dict row;
    for (const std::string& column : folder_.columns()) row[column.c_str()] = folder_.cell(column);
    return nb::make_tuple(row, problem);
  }

 private:
  static const std::string& opened(const std::string& path) {
    if (KaldiFolder::is_one(path)) return path;
    throw RunError(
        path + ": commands: allow is only for data folders of Kaldi, with a wav.scp; remove it");
  }
  KaldiFolder folder_;
};

// The program, within Python: for `python3 -m melflow`.
int main_of(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  keep_output_apart();
  const nb::gil_scoped_release free;
  return run_program(static_cast<int>(arguments.size()), pointers.data());
}

}  // namespace

void bind_host(nb::module_& m);
void bind_host(nb::module_& m) {
  m.def("set_calls", [](nb::object type) { class_of_calls() = std::move(type); });
  m.def("set_items", [](nb::object type) { class_of_items() = std::move(type); });
  nb::class_<KaldiRows>(m, "KaldiRows")
      .def(nb::init<const std::string&>(), nb::arg("path"))
      .def("__iter__", [](nb::object self) { return self; })
      .def("__next__", &KaldiRows::next);
  m.def("main", &main_of, nb::arg("arguments"));
  m.def("is_private_address", &is_private_address, nb::arg("text"));
  m.def("end_with_parent", &end_with_parent, nb::arg("parent"));
  static Host host;
  set_python_host(&host);
}
