// SPDX-License-Identifier: Apache-2.0
#include "core/trace/event.h"

#include <cassert>

namespace kvatlas::trace {

namespace {

constexpr EventKind kKindOfAlternative[] = {
#define KVATLAS_EVENT(id, Type, name, class) EventKind::Type,
#include "core/trace/event_kinds.def"
#undef KVATLAS_EVENT
};

} // namespace

EventKind Event::kind() const {
    assert(body.index() < std::size(kKindOfAlternative));
    return kKindOfAlternative[body.index()];
}

std::string_view nameOf(EventKind kind) {
    switch (kind) {
#define KVATLAS_EVENT(id, Type, name, class)                                                                           \
    case EventKind::Type:                                                                                              \
        return name;
#include "core/trace/event_kinds.def"
#undef KVATLAS_EVENT
    }
    return {};
}

EventClass classOf(EventKind kind) {
    switch (kind) {
#define KVATLAS_EVENT(id, Type, name, class)                                                                           \
    case EventKind::Type:                                                                                              \
        return EventClass::class;
#include "core/trace/event_kinds.def"
#undef KVATLAS_EVENT
    }
    return EventClass::State;
}

} // namespace kvatlas::trace
