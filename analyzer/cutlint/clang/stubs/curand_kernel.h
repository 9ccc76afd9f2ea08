// The names of cuRAND that the launchers' headers mention, in code that runs on the GPU only.
#pragma once
struct curandState_t {};
typedef curandState_t curandState;
typedef curandState_t curandStateXORWOW_t;
struct curandStatePhilox4_32_10_t {};
