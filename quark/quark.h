/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QUARK's interface over duet: programs written for QUARK 2 (PLASMA 2.x) compile with this header
 * and link with libduet-quark (docs/quark.md). Names, argument orders and values are QUARK's.
 */
#ifndef QUARK_H
#define QUARK_H

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUARK_SUCCESS 0
#define QUARK_ERR (-1)
#define QUARK_ERR_UNEXPECTED (-1)
#define QUARK_ERR_NOT_SUPPORTED (-2)

/* Regions of a datum: arguments of one address depend on each other where their regions meet. */
#define QUARK_REGION_BITMASK 0x0000FF
#define QUARK_REGION_ALL 0x0FF
typedef enum {
    QUARK_REGION_0 = 1 << 0,
    QUARK_REGION_1 = 1 << 1,
    QUARK_REGION_2 = 1 << 2,
    QUARK_REGION_3 = 1 << 3,
    QUARK_REGION_4 = 1 << 4,
    QUARK_REGION_5 = 1 << 5,
    QUARK_REGION_6 = 1 << 6,
    QUARK_REGION_7 = 1 << 7
} quark_data_region_t;
/* Lower triangle, diagonal and upper triangle of a tile. */
typedef enum {
    QUARK_REGION_L = QUARK_REGION_0 | QUARK_REGION_1 | QUARK_REGION_2,
    QUARK_REGION_D = QUARK_REGION_3 | QUARK_REGION_4,
    QUARK_REGION_U = QUARK_REGION_5 | QUARK_REGION_6 | QUARK_REGION_7
} quark_ldu_region_t;

/* Kinds of arguments. INPUT, OUTPUT and INOUT order tasks; VALUE is copied; NODEP is a pointer that
   orders nothing; SCRATCH is memory that exists while the task runs, if its pointer is NULL. */
#define QUARK_DIRECTION_BITMASK 0x000F00
typedef enum {
    QINPUT = 0x100,
    OUTPUT = 0x200,
    INOUT = 0x300,
    VALUE = 0x400,
    NODEP = 0x500,
    SCRATCH = 0x600
} quark_direction_t;
#define INPUT 0x100

#define QUARK_VALUE_FLAGS_BITMASK 0xFFF000
#define LOCALITY (1 << 12) /* a hint, not passed on: policies see all data */
#define NOLOCALITY 0x00
#define ACCUMULATOR (1 << 13) /* writers that follow each other may be reordered */
#define NOACCUMULATOR 0x00
#define GATHERV (1 << 14) /* writers that follow each other may run at the same time */
#define NOGATHERV 0x00
#define TASK_LABEL (1 << 15) /* char *: name of the kernel */
#define TASKLABEL TASK_LABEL
#define TASK_COLOR (1 << 16) /* ignored */
#define TASKCOLOR TASK_COLOR
#define TASK_PRIORITY (1 << 17)                   /* int */
#define TASK_LOCK_TO_THREAD (1 << 18)             /* refused: policies place tasks */
#define TASK_SEQUENCE (1 << 19)                   /* Quark_Sequence * */
#define TASK_THREAD_COUNT (1 << 20)               /* int */
#define THREAD_SET_TO_MANUAL_SCHEDULING (1 << 21) /* refused */
#define TASK_LOCK_TO_THREAD_MASK (1 << 22)        /* refused */
#define TASK_START_CODE (1 << 23)                 /* ignored, as TASK_STOP_CODE */
#define TASK_STOP_CODE (1 << 24)

#define QUARK_TASK_MIN_PRIORITY 0
#define QUARK_TASK_MAX_PRIORITY INT_MAX

typedef struct quark_s Quark;
typedef struct quark_task_s Quark_Task;
typedef struct Quark_sequence_s Quark_Sequence;

struct quark_task_flags_s {
    int task_priority;
    int task_lock_to_thread;
    char *task_color;
    char *task_label;
    void *task_sequence;
    int start_code, stop_code;
    int task_thread_count;
    int thread_set_to_manual_scheduling;
    unsigned char *task_lock_to_thread_mask;
};
typedef struct quark_task_flags_s Quark_Task_Flags;
#define Quark_Task_Flags_Initializer                                                               \
    {                                                                                              \
        0, -1, NULL, NULL, NULL, 0, 0, 1, -1, NULL                                                 \
    }

Quark *QUARK_Setup(int num_threads);
Quark *QUARK_New(int num_threads);
void QUARK_Worker_Loop(Quark *quark, int thread_rank);
void QUARK_Barrier(Quark *quark);
void QUARK_Waitall(Quark *quark);
void QUARK_Delete(Quark *quark);
void QUARK_Free(Quark *quark);

/* The arguments of a task follow as int, void *, int (size, address, flags), and end with 0. */
unsigned long long QUARK_Insert_Task(Quark *quark, void (*function)(Quark *),
                                     Quark_Task_Flags *task_flags, ...);
unsigned long long QUARK_Execute_Task(Quark *quark, void (*function)(Quark *),
                                      Quark_Task_Flags *task_flags, ...);
Quark_Task *QUARK_Task_Init(Quark *quark, void (*function)(Quark *), Quark_Task_Flags *task_flags);
void QUARK_Task_Pack_Arg(Quark *quark, Quark_Task *task, int arg_size, void *arg_ptr,
                         int arg_flags);
unsigned long long QUARK_Insert_Task_Packed(Quark *quark, Quark_Task *task);
unsigned long long QUARK_Execute_Task_Packed(Quark *quark, Quark_Task *task);
int QUARK_Cancel_Task(Quark *quark, unsigned long long taskid);

void *QUARK_Args_List(Quark *quark);
void *QUARK_Args_Pop(void *args_list, void **last_arg);
int QUARK_Thread_Rank(Quark *quark);
int QUARK_Get_RankInTask(Quark *quark);
char *QUARK_Get_Task_Label(Quark *quark);
Quark_Sequence *QUARK_Get_Sequence(Quark *quark);
int QUARK_Get_Priority(Quark *quark);
Quark_Task_Flags *QUARK_Task_Flag_Set(Quark_Task_Flags *flags, int flag, intptr_t val);
intptr_t QUARK_Task_Flag_Get(Quark *quark, int flag);

Quark_Sequence *QUARK_Sequence_Create(Quark *quark);
int QUARK_Sequence_Cancel(Quark *quark, Quark_Sequence *sequence);
Quark_Sequence *QUARK_Sequence_Destroy(Quark *quark, Quark_Sequence *sequence);
int QUARK_Sequence_Wait(Quark *quark, Quark_Sequence *sequence);

void QUARK_DOT_DAG_Enable(Quark *quark, int boolean_value);

/* Bits of a set of threads, the first of which is the highest of the first byte. */
static inline int QUARK_Bit_Get(const unsigned char *set, int number)
{
    return set[number / 8] >> (7 - number % 8) & 1;
}
static inline void QUARK_Bit_Set(unsigned char *set, int number, int value)
{
    const int bit = 1 << (7 - number % 8), others = set[number / 8] & ~bit;
    memset(&set[number / 8], value ? others | bit : others, 1);
}

/* Copies the arguments of the calling task, in their order, to variables of their types. */
#define QUARK_UNPACK(quark, pops)                                                                  \
    {                                                                                              \
        void *quark_args = QUARK_Args_List(quark), *quark_last = NULL;                             \
        pops                                                                                       \
    }
#define QUARK_POP_1(arg) memcpy(&(arg), QUARK_Args_Pop(quark_args, &quark_last), sizeof(arg));
#define QUARK_POP_2(arg, ...) QUARK_POP_1(arg) QUARK_POP_1(__VA_ARGS__)
#define QUARK_POP_3(arg, ...) QUARK_POP_1(arg) QUARK_POP_2(__VA_ARGS__)
#define QUARK_POP_4(arg, ...) QUARK_POP_1(arg) QUARK_POP_3(__VA_ARGS__)
#define QUARK_POP_5(arg, ...) QUARK_POP_1(arg) QUARK_POP_4(__VA_ARGS__)
#define QUARK_POP_6(arg, ...) QUARK_POP_1(arg) QUARK_POP_5(__VA_ARGS__)
#define QUARK_POP_7(arg, ...) QUARK_POP_1(arg) QUARK_POP_6(__VA_ARGS__)
#define QUARK_POP_8(arg, ...) QUARK_POP_1(arg) QUARK_POP_7(__VA_ARGS__)
#define QUARK_POP_9(arg, ...) QUARK_POP_1(arg) QUARK_POP_8(__VA_ARGS__)
#define QUARK_POP_10(arg, ...) QUARK_POP_1(arg) QUARK_POP_9(__VA_ARGS__)
#define QUARK_POP_11(arg, ...) QUARK_POP_1(arg) QUARK_POP_10(__VA_ARGS__)
#define QUARK_POP_12(arg, ...) QUARK_POP_1(arg) QUARK_POP_11(__VA_ARGS__)
#define QUARK_POP_13(arg, ...) QUARK_POP_1(arg) QUARK_POP_12(__VA_ARGS__)
#define QUARK_POP_14(arg, ...) QUARK_POP_1(arg) QUARK_POP_13(__VA_ARGS__)
#define QUARK_POP_15(arg, ...) QUARK_POP_1(arg) QUARK_POP_14(__VA_ARGS__)
#define QUARK_POP_16(arg, ...) QUARK_POP_1(arg) QUARK_POP_15(__VA_ARGS__)
#define QUARK_POP_17(arg, ...) QUARK_POP_1(arg) QUARK_POP_16(__VA_ARGS__)
#define QUARK_POP_18(arg, ...) QUARK_POP_1(arg) QUARK_POP_17(__VA_ARGS__)
#define QUARK_POP_19(arg, ...) QUARK_POP_1(arg) QUARK_POP_18(__VA_ARGS__)
#define QUARK_POP_20(arg, ...) QUARK_POP_1(arg) QUARK_POP_19(__VA_ARGS__)
#define QUARK_POP_21(arg, ...) QUARK_POP_1(arg) QUARK_POP_20(__VA_ARGS__)
#define QUARK_POP_22(arg, ...) QUARK_POP_1(arg) QUARK_POP_21(__VA_ARGS__)
#define QUARK_POP_23(arg, ...) QUARK_POP_1(arg) QUARK_POP_22(__VA_ARGS__)
#define QUARK_POP_24(arg, ...) QUARK_POP_1(arg) QUARK_POP_23(__VA_ARGS__)
#define QUARK_POP_25(arg, ...) QUARK_POP_1(arg) QUARK_POP_24(__VA_ARGS__)
#define quark_unpack_args_1(quark, ...) QUARK_UNPACK(quark, QUARK_POP_1(__VA_ARGS__))
#define quark_unpack_args_2(quark, ...) QUARK_UNPACK(quark, QUARK_POP_2(__VA_ARGS__))
#define quark_unpack_args_3(quark, ...) QUARK_UNPACK(quark, QUARK_POP_3(__VA_ARGS__))
#define quark_unpack_args_4(quark, ...) QUARK_UNPACK(quark, QUARK_POP_4(__VA_ARGS__))
#define quark_unpack_args_5(quark, ...) QUARK_UNPACK(quark, QUARK_POP_5(__VA_ARGS__))
#define quark_unpack_args_6(quark, ...) QUARK_UNPACK(quark, QUARK_POP_6(__VA_ARGS__))
#define quark_unpack_args_7(quark, ...) QUARK_UNPACK(quark, QUARK_POP_7(__VA_ARGS__))
#define quark_unpack_args_8(quark, ...) QUARK_UNPACK(quark, QUARK_POP_8(__VA_ARGS__))
#define quark_unpack_args_9(quark, ...) QUARK_UNPACK(quark, QUARK_POP_9(__VA_ARGS__))
#define quark_unpack_args_10(quark, ...) QUARK_UNPACK(quark, QUARK_POP_10(__VA_ARGS__))
#define quark_unpack_args_11(quark, ...) QUARK_UNPACK(quark, QUARK_POP_11(__VA_ARGS__))
#define quark_unpack_args_12(quark, ...) QUARK_UNPACK(quark, QUARK_POP_12(__VA_ARGS__))
#define quark_unpack_args_13(quark, ...) QUARK_UNPACK(quark, QUARK_POP_13(__VA_ARGS__))
#define quark_unpack_args_14(quark, ...) QUARK_UNPACK(quark, QUARK_POP_14(__VA_ARGS__))
#define quark_unpack_args_15(quark, ...) QUARK_UNPACK(quark, QUARK_POP_15(__VA_ARGS__))
#define quark_unpack_args_16(quark, ...) QUARK_UNPACK(quark, QUARK_POP_16(__VA_ARGS__))
#define quark_unpack_args_17(quark, ...) QUARK_UNPACK(quark, QUARK_POP_17(__VA_ARGS__))
#define quark_unpack_args_18(quark, ...) QUARK_UNPACK(quark, QUARK_POP_18(__VA_ARGS__))
#define quark_unpack_args_19(quark, ...) QUARK_UNPACK(quark, QUARK_POP_19(__VA_ARGS__))
#define quark_unpack_args_20(quark, ...) QUARK_UNPACK(quark, QUARK_POP_20(__VA_ARGS__))
#define quark_unpack_args_21(quark, ...) QUARK_UNPACK(quark, QUARK_POP_21(__VA_ARGS__))
#define quark_unpack_args_22(quark, ...) QUARK_UNPACK(quark, QUARK_POP_22(__VA_ARGS__))
#define quark_unpack_args_23(quark, ...) QUARK_UNPACK(quark, QUARK_POP_23(__VA_ARGS__))
#define quark_unpack_args_24(quark, ...) QUARK_UNPACK(quark, QUARK_POP_24(__VA_ARGS__))
#define quark_unpack_args_25(quark, ...) QUARK_UNPACK(quark, QUARK_POP_25(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
