// A tool that NVTX loads ($NVTX_INJECTION64_PATH): writes every range into the file
// $MELFLOW_NVTX_LOG.
//
//   push THREAD DOMAIN COLOR NAME      pop THREAD
//   start ID DOMAIN COLOR NAME         end ID

#include <nvtx3/nvToolsExt.h>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>

namespace {

std::FILE* g_log = nullptr;

// Handles are addresses of these strings.
const std::string& kept(const char* text) {
  static std::mutex mutex;
  static std::deque<std::string> texts;
  const std::lock_guard lock(mutex);
  return texts.emplace_back(text);
}

template <class Handle>
Handle handle_of(const char* text) {
  return reinterpret_cast<Handle>(const_cast<std::string*>(&kept(text)));
}
template <class Handle>
const char* text_of(Handle handle) {
  return reinterpret_cast<const std::string*>(handle)->c_str();
}

void write_range(const char* what, unsigned long long number, nvtxDomainHandle_t domain,
                 const nvtxEventAttributes_t* event) {
  const bool is_registered = event->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  std::fprintf(g_log, "%s %llu %s %08x %s\n", what, number, text_of(domain), event->color,
               is_registered ? text_of(event->message.registered) : event->message.ascii);
}

nvtxDomainHandle_t create_domain(const char* name) { return handle_of<nvtxDomainHandle_t>(name); }
nvtxStringHandle_t register_string(nvtxDomainHandle_t, const char* text) {
  return handle_of<nvtxStringHandle_t>(text);
}
int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  write_range("push", static_cast<unsigned long long>(gettid()), domain, event);
  return 0;
}
int pop(nvtxDomainHandle_t) {
  std::fprintf(g_log, "pop %d\n", gettid());
  return 0;
}
nvtxRangeId_t start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  static std::atomic<nvtxRangeId_t> last{0};
  const nvtxRangeId_t id = ++last;
  write_range("start", id, domain, event);
  return id;
}
void end(nvtxDomainHandle_t, nvtxRangeId_t id) {
  std::fprintf(g_log, "end %llu\n", static_cast<unsigned long long>(id));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  const char* path = std::getenv("MELFLOW_NVTX_LOG");
  if (path == nullptr || (g_log = std::fopen(path, "w")) == nullptr) return 0;
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0)
    return 0;
  const auto set = [table](NvtxCallbackIdCore2 id, auto* function) {
    *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  };
  set(NVTX_CBID_CORE2_DomainCreateA, create_domain);
  set(NVTX_CBID_CORE2_DomainRegisterStringA, register_string);
  set(NVTX_CBID_CORE2_DomainRangePushEx, push);
  set(NVTX_CBID_CORE2_DomainRangePop, pop);
  set(NVTX_CBID_CORE2_DomainRangeStartEx, start);
  set(NVTX_CBID_CORE2_DomainRangeEnd, end);
  return 1;
}
