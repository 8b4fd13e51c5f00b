// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace kvscope::test {

/// True in a build with AddressSanitizer or ThreadSanitizer: code runs several times slower there and freed memory is
/// kept for a while, so what a test says of milliseconds and of resident memory holds in the other builds only.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

} // namespace kvscope::test
