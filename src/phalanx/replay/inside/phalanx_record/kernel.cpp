/* Passes collectives on as `dispatch.py` does, without Python: the calls that came by before, with the same tensors from the same line.
 *
 * A call that is new goes to the recorder's Python by way of an operator of its own, is recorded there, and Python teaches what its
 * line in the log is made of. The next one like it is numbered, fingerprinted and written here: the same bytes, a tenth of the
 * time. What is odd (other devices, tensors in pieces, lists) is never taught. Compiled against the installed PyTorch; see `compiled.py`. */

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

/* Where the ring's next record goes: `segments.py`. */
struct Cursor {
    int64_t stretch, base, at, end;
};

/* What both sides know: the same fields in `quick.py`. */
struct Shared {
    int64_t log, step, stopped, is_ring, looks, smallest, calls, calls_here, bytes_of_log, bytes_kept, bytes_read;
    Cursor *cursor;
    long (*line)(int, const char *, size_t, const uint64_t *, size_t, int, unsigned char *, uint64_t *, uint64_t, int);
    void (*copy)(unsigned char *, const unsigned char *, size_t);
    void (*failed)(int64_t error);
    void (*odd)(int64_t operation, int64_t step);
    void (*grow)(int64_t bytes);
};
Shared *shared = nullptr;

enum { ALIGNED = 64, HEADER = 32, RESULT = 2, MOST_PLANS = 4096 };

/* What Python teaches of a call. */
struct Taught {
    int64_t series, gives, begin, end, of, is_own, width;
    uint64_t exponents;
};

struct Plan {
    Taught taught;
    int64_t operation;
    std::string text;
    std::atomic<bool> has_future{true};
    c10::weak_intrusive_ptr<torch::CustomClassHolder> group; /* while this is held no other group comes to lie there */
    Plan(Taught given, int64_t number, std::string words, const c10::intrusive_ptr<torch::CustomClassHolder> &real)
        : taught(given), operation(number), text(std::move(words)), group(real) {}
};

using Key = std::vector<int64_t>;
struct Hash {
    size_t operator()(const Key &key) const {
        uint64_t sum = 0;
        for (int64_t one : key) sum = (sum ^ (uint64_t)one) * 0x9E3779B97F4A7C15u, sum ^= sum >> 29;
        return sum;
    }
};

/* None of what follows is destroyed at the end: threads of the backend may still be at work then. */
std::mutex &numbers = *new std::mutex; /* guards the next three, and the number of calls */
auto &plans = *new std::unordered_map<Key, std::unique_ptr<Plan>, Hash>;
auto &series_known = *new std::map<std::string, int64_t>;
auto &series_counts = *new std::vector<int64_t>;

std::mutex &ring = *new std::mutex; /* guards the cursor, and all that is written by it */

struct Pending {
    Key key;
    int64_t operation = 0;
    c10::intrusive_ptr<torch::CustomClassHolder> group;
};
thread_local Pending *pending = nullptr;

/* Python's own functions, found in the running process: its headers are not needed. */
struct Python {
    int (*ensure)();
    void (*release)(int);
    void *(*frame)();
    void *(*back)(void *);
    void *(*code)(void *);
    int (*instruction)(void *);
    void (*forget)(void *);
} python;
auto &codes = *new std::unordered_map<void *, bool>; /* whether it is the user's; guarded by the interpreter's lock */

bool find_python() {
    auto find = [](const char *name, auto &target) {
        void *found = dlsym(RTLD_DEFAULT, name);
        memcpy(&target, &found, sizeof found);
        return found != nullptr;
    };
    return find("PyGILState_Ensure", python.ensure) && find("PyGILState_Release", python.release) &&
           find("PyEval_GetFrame", python.frame) && find("PyFrame_GetBack", python.back) && find("PyFrame_GetCode", python.code) &&
           find("PyFrame_GetLasti", python.instruction) && find("Py_DecRef", python.forget);
}

/* The innermost place in the user's own code; false where a function on the way is not known yet. */
bool place_of_user(Key &key) {
    int state = python.ensure();
    bool is_known = true, is_found = false;
    void *frame = python.frame(), *held = nullptr;
    while (frame) {
        void *code = python.code(frame);
        auto known = codes.find(code);
        python.forget(code); /* the frame holds it */
        is_known = known != codes.end();
        is_found = is_known && known->second;
        if (is_found) {
            key.push_back((int64_t)(intptr_t)code);
            key.push_back(python.instruction(frame));
        }
        if (!is_known || is_found) break;
        void *back = python.back(frame);
        if (held) python.forget(held);
        frame = held = back;
    }
    if (held) python.forget(held);
    python.release(state);
    if (!is_found) key.insert(key.end(), {0, 0});
    return is_known;
}

/* In this processor's memory, dense, in one piece, and meaning the bytes that are there. */
bool is_plain(const at::Tensor &tensor) {
    using c10::DispatchKey;
    static const auto usual =
        c10::DispatchKeySet({DispatchKey::CPU, DispatchKey::AutogradCPU, DispatchKey::AutocastCPU, DispatchKey::ADInplaceOrView});
    return tensor.defined() && usual.has_all(tensor.key_set()) && tensor.is_contiguous() && tensor.nbytes() > 0;
}

at::Tensor one_tensor(const c10::IValue &value) {
    if (value.isTensor()) return value.toTensor();
    if (!value.isTensorList()) return {};
    auto list = value.toTensorList();
    return list.size() == 1 ? list.get(0) : at::Tensor();
}

void describe(const at::Tensor &tensor, Key &key) {
    key.push_back((int64_t)tensor.scalar_type());
    key.push_back(tensor.dim());
    for (int64_t size : tensor.sizes()) key.push_back(size);
}

void add(int64_t &to, int64_t value) { __atomic_fetch_add(&to, value, __ATOMIC_RELAXED); }
bool is_stopped() { return __atomic_load_n(&shared->stopped, __ATOMIC_ACQUIRE); }

bool wrote(long written) {
    if (written < 0) {
        shared->failed(-written);
        return false;
    }
    add(shared->bytes_of_log, written);
    return true;
}

long append(const char *text, size_t length) {
    for (size_t passed = 0; passed < length;) {
        ssize_t now = write((int)shared->log, text + passed, length - passed);
        if (now < 0 && errno == EINTR) continue;
        if (now < 0) return -errno;
        passed += (size_t)now;
    }
    return (long)length;
}

int64_t aligned(int64_t size) { return (size + ALIGNED - 1) / ALIGNED * ALIGNED; }

/* One call between its two lines in the log. */
struct Call {
    const Plan *plan;
    int64_t number;
    uint64_t told[2]; /* the fingerprint of what is handed in, and whether a number in it is not finite */
    at::Tensor got;

    /* The collective is complete; called once, by whichever thread completed it. */
    void leave() const {
        if (is_stopped()) return;
        char head[96];
        int length = snprintf(head, sizeof head, "\"k\":\"done\",\"n\":%lld,\"out\":[", (long long)number);
        if (!shared->is_ring)
            put(head, length, nullptr, nullptr, 0);
        else
            keep(head, length);
    }

    const unsigned char *share() const { return (const unsigned char *)got.const_data_ptr() + plan->taught.begin; }

    bool put(const char *head, int length, unsigned char *copy, uint64_t *found, int width) const {
        const Taught &taught = plan->taught;
        size_t size = (size_t)(taught.end - taught.begin);
        if (taught.is_own) {
            if (copy) shared->copy(copy, share(), size);
            char text[160];
            int whole = snprintf(text, sizeof text, "{%.*s\"%016llx\"]}\n", length, head, (unsigned long long)told[0]);
            return wrote(append(text, (size_t)whole));
        }
        uint64_t memory[2] = {(uint64_t)(uintptr_t)share(), size};
        add(shared->bytes_read, (int64_t)size);
        return wrote(shared->line((int)shared->log, head, (size_t)length, memory, 1, 0, copy, found, taught.exponents, width));
    }

    /* The same, and the bytes go to the ring. A snapshot waits meanwhile: it begins a stretch over an older one's memory. */
    void keep(const char *head, int length) const {
        const Taught &taught = plan->taught;
        char text[128];
        int words = snprintf(text, sizeof text, "{\"n\":%lld,\"share\":[%lld,%lld],\"of\":%lld}", (long long)number,
                             (long long)taught.begin, (long long)taught.end, (long long)taught.of);
        int64_t size = taught.end - taught.begin, before = aligned(HEADER + words), need = before + aligned(size);
        uint64_t found[2] = {0, 0};
        for (;; shared->grow(need)) {
            std::lock_guard<std::mutex> guard(ring);
            if (is_stopped()) return;
            Cursor &cursor = *shared->cursor;
            if (cursor.at + need + ALIGNED > cursor.end) continue;
            auto *address = (unsigned char *)(uintptr_t)(cursor.base + cursor.at);
            cursor.at += need;
            memcpy(address + HEADER, text, (size_t)words);
            bool is_written = put(head, length, address + before, found, shared->looks ? (int)taught.width : 0);
            if (!is_written) return;
            uint64_t header[4] = {(uint64_t)cursor.stretch, RESULT | (uint64_t)words << 32, (uint64_t)size, 0};
            memcpy(address, header, sizeof header);
            add(shared->bytes_kept, size);
            break;
        }
        if (shared->looks && taught.width && (found[1] || told[1])) shared->odd(plan->operation, shared->step);
    }
};

/* A Work that is complete once the call has been left; all else is the real one's. */
struct Followed final : c10d::Work {
    c10::intrusive_ptr<c10d::Work> real;
    c10::intrusive_ptr<c10::ivalue::Future> future; /* null where the real one has none: then whoever waits first leaves */
    Call call;
    std::once_flag left;

    Followed(c10::intrusive_ptr<c10d::Work> work, Call given) : Work(-1, work->retrieveOpType()), real(std::move(work)), call(std::move(given)) {}

    bool wait(std::chrono::milliseconds timeout) override {
        bool result = real->wait(timeout);
        if (!result) return false;
        if (future)
            future->wait();
        else
            std::call_once(left, [this] { call.leave(); });
        return true;
    }
    bool isCompleted() override { return real->isCompleted() && (!future || future->completed()); }
    bool isSuccess() const override { return real->isSuccess(); }
    std::exception_ptr exception() const override { return real->exception(); }
    int sourceRank() const override { return real->sourceRank(); }
    std::vector<at::Tensor> result() override { return real->result(); }
    void synchronize() override { real->synchronize(); }
    void blockCurrentStream() override { real->blockCurrentStream(); }
    void abort() override { real->abort(); }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future ? future : real->getFuture(); }
    c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override { return real->getFutureResult(); }
    float getDuration() const override { return real->getDuration(); }
    uint64_t getSequencenumber() const override { return real->getSequencenumber(); }
};

c10::intrusive_ptr<c10::ivalue::Future> future_of(Plan &plan, c10d::Work &work) {
    if (plan.has_future) try {
            return work.getFuture();
        } catch (const std::exception &) { /* Gloo's reduce-scatter has none */
            plan.has_future = false;
        }
    return nullptr;
}

struct Kernel final : c10::OperatorKernel {
    int64_t number, gives, gets, group; /* where these stand among the arguments */
    c10::OperatorHandle fallback;
    c10::DispatchKeySet below{c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::BackendSelect};

    Kernel(int64_t number, int64_t gives, int64_t gets, int64_t group, c10::OperatorHandle fallback)
        : number(number), gives(gives), gets(gets), group(group), fallback(std::move(fallback)) {}

    void operator()(const c10::OperatorHandle &handle, c10::DispatchKeySet keys, torch::jit::Stack *stack) {
        if (is_stopped()) return handle.redispatchBoxed(keys & below, stack);
        Pending now;
        now.operation = number;
        at::Tensor given, got;
        Plan *plan = read(handle, *stack, now, given, got) ? find(now.key) : nullptr;
        if (plan && shared->is_ring && (plan->taught.of <= shared->smallest || !shared->step)) plan = nullptr; /* kept on disk, by Python */
        if (!plan) {
            pending = &now;
            struct Forget {
                ~Forget() { pending = nullptr; }
            } forget;
            return fallback.redispatchBoxed(keys, stack);
        }
        Call call{plan, 0, {0, 0}, got};
        bool is_entered = enter(*plan, given, call);
        handle.redispatchBoxed(keys & below, stack);
        if (!is_entered) return;
        if (!stack->back().isCustomClass()) return call.leave();
        auto work = stack->back().toCustomClass<c10d::Work>();
        auto followed = c10::make_intrusive<Followed>(work, call);
        if (auto future = future_of(*plan, *work)) {
            followed->future = future->then(
                [call](c10::ivalue::Future &done) {
                    c10::IValue value = done.value(); /* raises what the collective failed with */
                    call.leave();
                    return value;
                },
                future->elementType());
        }
        stack->back() = c10::IValue(c10::static_intrusive_pointer_cast<c10d::Work>(std::move(followed)));
    }

    bool read(const c10::OperatorHandle &handle, const torch::jit::Stack &stack, Pending &now, at::Tensor &given, at::Tensor &got) {
        size_t count = handle.schema().arguments().size();
        if (stack.size() < count) return false;
        const c10::IValue *arguments = &stack[stack.size() - count];
        given = one_tensor(arguments[gives]);
        got = gets == gives ? given : one_tensor(arguments[gets]);
        if (!is_plain(given) || !is_plain(got) || !arguments[group].isObject()) return false;
        now.group = arguments[group].toObjectRef().getSlot(0).toCapsule();
        Key &key = now.key;
        key.reserve(32);
        key.push_back(number);
        key.push_back((int64_t)(intptr_t)now.group.get());
        bool is_known = place_of_user(key);
        describe(given, key);
        if (gets != gives) describe(got, key);
        for (size_t at = 0; at < count; at++)
            if (arguments[at].isInt()) key.push_back(arguments[at].toInt());
        if (!is_known) key.clear(); /* Python learns who is on the way first */
        return is_known;
    }

    static Plan *find(const Key &key) {
        std::lock_guard<std::mutex> guard(numbers);
        auto found = plans.find(key);
        return found == plans.end() ? nullptr : found->second.get();
    }

    static bool enter(const Plan &plan, const at::Tensor &given, Call &call) {
        int64_t place;
        {
            std::lock_guard<std::mutex> guard(numbers);
            call.number = shared->calls++;
            shared->calls_here++;
            place = series_counts[plan.taught.series]++;
        }
        char text[1024];
        int length = snprintf(text, sizeof text, "\"k\":\"call\",\"n\":%lld,\"q\":%lld,\"s\":%lld,%s", (long long)call.number,
                              (long long)place, (long long)shared->step, plan.text.c_str());
        uint64_t memory[2] = {(uint64_t)(uintptr_t)given.const_data_ptr(), given.nbytes()};
        size_t count = plan.taught.gives ? 1 : 0;
        if (count) add(shared->bytes_read, (int64_t)memory[1]);
        int width = shared->looks ? (int)plan.taught.width : 0;
        return wrote(shared->line((int)shared->log, text, (size_t)length, memory, count, 1, nullptr, call.told, plan.taught.exponents, width));
    }
};

auto &registered = *new std::vector<c10::RegistrationHandleRAII>;

} // namespace

/* Returns 1, or 0 where this Python is not one we know. */
extern "C" int phalanx_kernel_begin(Shared *given) {
    shared = given;
    return find_python();
}

/* Stand between callers and `c10d::name`; what is new goes to `phalanx_record::name`. Returns 1 or 0. */
extern "C" int phalanx_kernel_stand(int64_t number, const char *name, int64_t gives, int64_t gets, int64_t group) {
    try {
        auto &dispatcher = c10::Dispatcher::singleton();
        auto fallback = dispatcher.findSchemaOrThrow((std::string("phalanx_record::") + name).c_str(), "");
        auto boxed = c10::BoxedKernel::makeFromFunctor(std::make_unique<Kernel>(number, gives, gets, group, std::move(fallback)));
        registered.push_back(dispatcher.registerImpl(c10::OperatorName(std::string("c10d::") + name, ""), c10::DispatchKey::BackendSelect,
                                                     c10::KernelFunction::makeFromBoxedKernel(std::move(boxed)), std::nullopt, nullptr,
                                                     "phalanx"));
        return 1;
    } catch (const std::exception &) {
        return 0;
    }
}

extern "C" void phalanx_kernel_step_aside() { registered.clear(); }

/* Called with the interpreter's lock held. */
extern "C" void phalanx_kernel_code(void *code, int is_users) { codes[code] = is_users != 0; }

/* 1 where the call that Python is handling could be taught, 2 where only those on the way to it are not known, else 0. */
extern "C" int phalanx_kernel_pending() { return !pending ? 0 : pending->group == nullptr ? 0 : pending->key.empty() ? 2 : 1; }

extern "C" void phalanx_kernel_teach(const Taught *taught, const char *text, size_t length) {
    if (!pending || pending->key.empty() || length > 800) return;
    std::lock_guard<std::mutex> guard(numbers);
    if (plans.size() < MOST_PLANS)
        plans.emplace(pending->key, std::make_unique<Plan>(*taught, pending->operation, std::string(text, length), pending->group));
}

extern "C" int64_t phalanx_kernel_series(const char *name) {
    std::lock_guard<std::mutex> guard(numbers);
    auto found = series_known.emplace(name, (int64_t)series_counts.size());
    if (found.second) series_counts.push_back(0);
    return found.first->second;
}

extern "C" void phalanx_kernel_next(int64_t series, int64_t *numbers_of_call) {
    std::lock_guard<std::mutex> guard(numbers);
    numbers_of_call[0] = shared->calls++;
    numbers_of_call[1] = series_counts[(size_t)series]++;
}

extern "C" void phalanx_kernel_lock() { ring.lock(); }
extern "C" void phalanx_kernel_unlock() { ring.unlock(); }
