// C++ exceptions, as code of this target has them: none can be caught, so one ends the instance, with a reason.

#include <cstdio>
#include <cstdlib>
#include <new>

extern "C" void *__cxa_allocate_exception(std::size_t) {
    std::fputs("a C++ exception was thrown, which this WebAssembly cannot catch\n", stderr);
    std::abort();
}

extern "C" void __cxa_throw(void *, void *, void (*)(void *)) { std::abort(); }

extern "C" void __cxa_free_exception(void *) {}

extern "C" void *__cxa_begin_catch(void *) { std::abort(); }

extern "C" void __cxa_end_catch() {}

extern "C" void __cxa_rethrow() { std::abort(); }

// `operator new` asks for it. Nothing here sets one.
std::new_handler std::get_new_handler() noexcept { return nullptr; }
