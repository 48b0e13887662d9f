#include "communicator.hpp"

#include "gil.hpp"

#include <kith/error.hpp>

#include <utility>

namespace kith::python {
namespace {

// A view of memory that the callee reads or fills, and does not keep.
nb::object bytes_of(const void* data, int64_t bytes) {
  auto* const memory = const_cast<char*>(static_cast<const char*>(data));
  PyObject* const view = PyMemoryView_FromMemory(memory, static_cast<Py_ssize_t>(bytes), PyBUF_WRITE);
  if (view == nullptr) nb::raise_python_error();
  return nb::steal<nb::object>(view);
}

}  // namespace

PythonCommunicator::PythonCommunicator(nb::object comm)
    : comm_(std::move(comm)),
      rank_(nb::cast<int>(comm_.attr("Get_rank")())),
      size_(nb::cast<int>(comm_.attr("Get_size")())) {
  for (const char* const method : {"Send", "Recv", "Bcast", "Barrier"}) (void)comm_.attr(method);
  if (rank_ < 0 || rank_ >= size_) throw InvalidArgument("comm: its rank is none of its ranks");
}

// After an error nothing more is sent: the others do not know of it.
template <typename Work>
void PythonCommunicator::call_back(const Work& work) {
  const WithGil gil;
  if (!error_) {
    try {
      return work();
    } catch (nb::python_error& error) {
      error_.emplace(std::move(error));
    }
  }
  throw Error("a method of comm has raised an exception");
}

void PythonCommunicator::raise_kept_error() {
  if (!error_) return;
  nb::python_error error = std::move(*error_);
  error_.reset();
  throw error;
}

void PythonCommunicator::barrier() {
  call_back([&] { comm_.attr("Barrier")(); });
}

void PythonCommunicator::send_piece(int to, const void* data, int64_t bytes) {
  call_back([&] { comm_.attr("Send")(bytes_of(data, bytes), nb::arg("dest") = to); });
}

void PythonCommunicator::receive_piece(int from, void* data, int64_t bytes) {
  call_back([&] { comm_.attr("Recv")(bytes_of(data, bytes), nb::arg("source") = from); });
}

void PythonCommunicator::broadcast_piece(int root, void* data, int64_t bytes) {
  call_back([&] { comm_.attr("Bcast")(bytes_of(data, bytes), nb::arg("root") = root); });
}

}  // namespace kith::python
