// What a probe asks of a kernel type. Each question has an answer for every type: -1 where there is no such member.
#pragma once
#include <type_traits>

namespace cutlint_probe {

using Number = long long;

#define CUTLINT_ASK(NAME, EXPRESSION)                          \
  template <class T, class = void>                             \
  struct NAME {                                                \
    static constexpr Number value = -1;                        \
  };                                                           \
  template <class T>                                           \
  struct NAME<T, std::void_t<decltype(EXPRESSION)>> {          \
    static constexpr Number value = static_cast<Number>(EXPRESSION); \
  };

CUTLINT_ASK(mainloop, sizeof(typename T::CollectiveMainloop::SharedStorage))
CUTLINT_ASK(mainloop_tensors, sizeof(typename T::CollectiveMainloop::TensorStorage))
CUTLINT_ASK(epilogue, sizeof(typename T::CollectiveEpilogue::SharedStorage))
CUTLINT_ASK(epilogue_tensors, sizeof(typename T::CollectiveEpilogue::TensorStorage))
CUTLINT_ASK(threads, T::MaxThreadsPerBlock)
CUTLINT_ASK(stages, T::CollectiveMainloop::DispatchPolicy::Stages)
CUTLINT_ASK(stages_ab, T::CollectiveMainloop::DispatchPolicy::LoadABPipelineStageCount)
CUTLINT_ASK(stages_sf, T::CollectiveMainloop::DispatchPolicy::LoadSFPipelineStageCount)
CUTLINT_ASK(stages_c, T::CollectiveEpilogue::DispatchPolicy::StagesC)
CUTLINT_ASK(stages_d, T::CollectiveEpilogue::DispatchPolicy::StagesD)
CUTLINT_ASK(epilogue_tile_m, cute::size<0>(typename T::CollectiveEpilogue::EpilogueTile{}))
CUTLINT_ASK(epilogue_tile_n, cute::size<1>(typename T::CollectiveEpilogue::EpilogueTile{}))
CUTLINT_ASK(thread_count, T::kThreadCount)
CUTLINT_ASK(kernel_stages, T::kStages)

#undef CUTLINT_ASK

// The record that a kernel's shared memory holds.
template <class T, class = void>
struct storage {
  using type = typename T::SharedStorage;
};

// The fused Sm80 kernel runs with its own tile or with one of 16 rows, and takes the larger of the two.
template <class T>
struct storage<T, std::void_t<typename T::BaseKernelTraits::SharedStorage, typename T::BaseKernelTraits_m16::SharedStorage>> {
  using Whole = typename T::BaseKernelTraits::SharedStorage;
  using Narrow = typename T::BaseKernelTraits_m16::SharedStorage;
  using type = std::conditional_t<(T::kSmemSize > sizeof(Whole)), Narrow, Whole>;
};

}  // namespace cutlint_probe
