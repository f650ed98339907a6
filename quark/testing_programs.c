/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of QUARK: `quark_programs CASE THREADS [SEED]` ends with 0 if all was as QUARK says. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include <quark.h>

#define ASSERT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int threads;
static unsigned drawn; /* last number drawn, the seed at first */

static int below(unsigned bound)
{
    drawn = drawn * 1664525 + 1013904223;
    return (int)((drawn >> 8) % bound);
}

static const char *refused; /* what the case `refused` asks for */

/* ------------------------------------------------------------------------------------------- */
/* A tiled Cholesky factorisation                                                               */

enum { TILES = 6, EDGE = 8, N = TILES * EDGE };

static double a[TILES][TILES][EDGE * EDGE]; /* tile, column-major */

static double *at(int i, int j)
{
    return &a[i / EDGE][j / EDGE][i % EDGE + j % EDGE * EDGE];
}

void potrf(Quark *quark);
void potrf(Quark *quark)
{
    int n;
    double *t;
    quark_unpack_args_2(quark, n, t);
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            for (int k = 0; k < j; k++)
                t[i + j * n] -= t[i + k * n] * t[j + k * n];
            t[i + j * n] = i == j ? sqrt(t[i + j * n]) : t[i + j * n] / t[j + j * n];
        }
}

static void trsm(Quark *quark)
{
    int n;
    double *l, *b;
    quark_unpack_args_3(quark, n, l, b);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < j; k++)
                b[i + j * n] -= b[i + k * n] * l[j + k * n];
            b[i + j * n] /= l[j + j * n];
        }
}

static void gemm(Quark *quark)
{
    int n;
    double *x, *y, *c;
    quark_unpack_args_4(quark, n, x, y, c);
    for (int j = 0; j < n; j++)
        for (int k = 0; k < n; k++)
            for (int i = 0; i < n; i++)
                c[i + j * n] -= x[i + k * n] * y[j + k * n];
}

static void cholesky(Quark *quark)
{
    const int n = EDGE, bytes = sizeof a[0][0];
    Quark_Sequence *sequence = QUARK_Sequence_Create(quark);
    Quark_Task_Flags flags = Quark_Task_Flags_Initializer, updates = flags;
    QUARK_Task_Flag_Set(&updates, TASK_SEQUENCE, (intptr_t)sequence);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            *at(i, j) = 1.0 / (1 + abs(i - j)) + (i == j ? N : 0);
    QUARK_Task_Flag_Set(&flags, TASK_LABEL, (intptr_t) "a label");
    QUARK_Task_Flag_Set(&flags, TASK_COLOR, (intptr_t) "blue");
    for (int k = 0; k < TILES; k++) {
        QUARK_Insert_Task(quark, potrf, NULL, sizeof(int), &n, VALUE, bytes, a[k][k],
                          INOUT | LOCALITY, 0);
        for (int i = k + 1; i < TILES; i++)
            QUARK_Insert_Task(quark, trsm, &flags, sizeof(int), &n, VALUE, bytes, a[k][k],
                              INPUT | QUARK_REGION_L | QUARK_REGION_D, bytes, a[i][k], INOUT, 0);
        for (int i = k + 1; i < TILES; i++)
            for (int j = k + 1; j <= i; j++)
                QUARK_Insert_Task(quark, gemm, &updates, sizeof(int), &n, VALUE, bytes, a[i][k],
                                  INPUT, bytes, a[j][k], INPUT, bytes, a[i][j], INOUT | ACCUMULATOR,
                                  0);
    }
    ASSERT(QUARK_Sequence_Wait(quark, sequence) == QUARK_SUCCESS); /* and tasks may be none now */
    ASSERT(QUARK_Sequence_Destroy(quark, sequence) == NULL);
    QUARK_Barrier(quark);
    for (int i = 0; i < N && !getenv("DUET_SIMULATE"); i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;
            for (int k = 0; k <= j; k++)
                sum += *at(i, k) * *at(j, k);
            ASSERT(fabs(sum - (1.0 / (1 + abs(i - j)) + (i == j ? N : 0))) < 1e-9);
        }
}

/* ------------------------------------------------------------------------------------------- */
/* Random tasks, each of which knows what it has to find                                        */

enum { DATA = 5, REGIONS = 8, MOST = 4, TASKS = 3000 };

/* A region of a datum: `value` grows with each writer; `together` counts those of GATHERV, which
 * run at the same time, and `writing` says that one that does not is at work. */
static struct cell {
    long value, expected;
    atomic_long together;
    long expected_together;
    atomic_int writing;
} cells[DATA][REGIONS];

struct use {
    int datum, flags;
    long value[REGIONS], together[REGIONS];
};

static atomic_int ran;

static void look(Quark *quark)
{
    int count;
    struct use uses[MOST];
    double *scratch;
    quark_unpack_args_3(quark, count, uses, scratch);
    for (int i = 0; i < count; i++)
        for (int r = 0; r < REGIONS; r++) {
            struct cell *cell = &cells[uses[i].datum][r];
            const int flags = uses[i].flags, kind = flags & QUARK_DIRECTION_BITMASK;
            if (kind == NODEP || (flags & QUARK_REGION_BITMASK && !(flags >> r & 1)))
                continue;
            ASSERT(flags & ACCUMULATOR || cell->value == uses[i].value[r]);
            ASSERT(flags & GATHERV || cell->together == uses[i].together[r]);
            if (flags & GATHERV) {
                cell->together++;
            } else if (kind != INPUT) {
                ASSERT(atomic_fetch_add(&cell->writing, 1) == 0);
                scratch[i] = 1;
                cell->value++;
                cell->writing--;
            }
        }
    ran++;
}

/* Draws how a task uses a datum, and says what it is to find. */
static struct use draw(int datum)
{
    static const int kinds[] =
        {INPUT, INPUT, OUTPUT, INOUT, INOUT | GATHERV, INOUT | ACCUMULATOR, OUTPUT | GATHERV,
         NODEP};
    static const int regions[] = {0,
                                  0,
                                  QUARK_REGION_ALL,
                                  QUARK_REGION_L,
                                  QUARK_REGION_D | QUARK_REGION_U,
                                  QUARK_REGION_L | QUARK_REGION_D,
                                  QUARK_REGION_U,
                                  QUARK_REGION_5};
    struct use use = {.datum = datum, .flags = kinds[below(8)]};
    const int part = below(4) ? 0 : regions[below(8)];
    if (use.flags != NODEP)
        use.flags |= part;
    for (int r = 0; r < REGIONS; r++) {
        struct cell *cell = &cells[datum][r];
        use.value[r] = cell->expected;
        use.together[r] = cell->expected_together;
        if (part && !(part >> r & 1))
            continue;
        if (use.flags & GATHERV)
            cell->expected_together++;
        else if ((use.flags & QUARK_DIRECTION_BITMASK) != INPUT && use.flags != NODEP)
            cell->expected++;
    }
    return use;
}

static void random_tasks(Quark *quark)
{
    for (int t = 0; t < TASKS; t++) {
        struct use uses[MOST] = {{0}};
        int count = 1 + below(MOST), first = below(DATA);
        Quark_Task_Flags flags = Quark_Task_Flags_Initializer;
        if (!below(10))
            QUARK_Task_Flag_Set(&flags, TASK_PRIORITY, below(1000));
        Quark_Task *task = QUARK_Task_Init(quark, look, &flags);
        for (int i = 0; i < count; i++)
            uses[i] = draw((first + i) % DATA);
        QUARK_Task_Pack_Arg(quark, task, sizeof count, &count, VALUE);
        QUARK_Task_Pack_Arg(quark, task, sizeof uses, uses, VALUE);
        QUARK_Task_Pack_Arg(quark, task, sizeof(double[MOST]), NULL, SCRATCH);
        for (int i = 0; i < count; i++)
            QUARK_Task_Pack_Arg(quark, task, 64, cells[uses[i].datum], uses[i].flags);
        if (below(100))
            ASSERT(QUARK_Insert_Task_Packed(quark, task) != 0);
        else
            ASSERT(QUARK_Execute_Task_Packed(quark, task) == 0);
        if (!below(500))
            QUARK_Barrier(quark);
    }
    QUARK_Barrier(quark);
    ASSERT(ran == TASKS);
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks that run at the same time                                                              */

static atomic_int met, open_gate;

static void meet(Quark *quark)
{
    int count;
    quark_unpack_args_1(quark, count);
    const int rank = QUARK_Get_RankInTask(quark);
    ASSERT(rank >= 0 && rank < count);
    ASSERT(!(atomic_fetch_or(&met, 1 << rank) & 1 << rank));
    while (met != (1 << count) - 1)
        sched_yield();
}

static void met_all(Quark *quark)
{
    int count;
    quark_unpack_args_1(quark, count);
    ASSERT(met == (1 << count) - 1);
    met = 0;
}

static void team(Quark *quark)
{
    static int data[2];
    for (int round = 0; round < 20; round++) {
        int count = 1 + round % (threads < 4 ? threads : 4);
        QUARK_Insert_Task(quark, meet, NULL, sizeof count, &count, VALUE, sizeof count, &count,
                          VALUE | TASK_THREAD_COUNT, 4, &data[0], INPUT, 4, &data[1], INOUT, 0);
        QUARK_Insert_Task(quark, met_all, NULL, sizeof count, &count, VALUE, 4, &data[1], INOUT, 0);
    }
    QUARK_Waitall(quark);
}

static void join_two(Quark *quark)
{
    met++;
    while (met < 2)
        sched_yield();
}

static void gather(Quark *quark)
{
    static int datum, round;
    for (round = 0; round < 20 && threads > 1; round++) {
        for (int i = 0; i < 2; i++)
            QUARK_Insert_Task(quark, join_two, NULL, 4, &datum, INOUT | GATHERV, 0);
        QUARK_Barrier(quark);
        met = 0;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Sequences, cancelling, what tasks can ask                                                    */

static void wait_gate(Quark *quark)
{
    met = 1;
    while (!open_gate)
        sched_yield();
}

static void count_task(Quark *quark)
{
    ran++;
}

static void cancel_all(Quark *quark)
{
    ASSERT(QUARK_Sequence_Cancel(quark, QUARK_Get_Sequence(quark)) == QUARK_SUCCESS);
}

static void sequences(Quark *quark)
{
    static int datum;
    Quark_Sequence *sequence = QUARK_Sequence_Create(quark), *other = QUARK_Sequence_Create(quark);
    Quark_Task_Flags flags = Quark_Task_Flags_Initializer;
    QUARK_Task_Flag_Set(&flags, TASK_SEQUENCE, (intptr_t)sequence);
    QUARK_Insert_Task(quark, count_task, &flags, 4, &datum, INOUT, 0);
    QUARK_Insert_Task(quark, cancel_all, &flags, 4, &datum, INOUT, 0);
    for (int i = 0; i < 10; i++)
        QUARK_Insert_Task(quark, count_task, &flags, 4, &datum, INOUT, 0);
    QUARK_Insert_Task(quark, count_task, NULL, 4, &datum, INOUT, sizeof(void *), &other,
                      VALUE | TASK_SEQUENCE, 0);
    ASSERT(QUARK_Sequence_Wait(quark, sequence) == QUARK_SUCCESS);
    ASSERT(QUARK_Sequence_Wait(quark, other) == QUARK_SUCCESS);
    ASSERT(ran == 2);
    ASSERT(QUARK_Insert_Task(quark, count_task, &flags, 4, &datum, INOUT, 0) ==
           (unsigned long long)QUARK_ERR);
    ASSERT(QUARK_Sequence_Destroy(quark, sequence) == NULL);
    ASSERT(QUARK_Sequence_Destroy(quark, other) == NULL && ran == 2);
    ASSERT(QUARK_Sequence_Cancel(quark, NULL) == QUARK_ERR);
}

static void cancelling(Quark *quark)
{
    static int datum;
    unsigned long long first = QUARK_Insert_Task(quark, wait_gate, NULL, 4, &datum, INOUT, 0);
    unsigned long long second = QUARK_Insert_Task(quark, count_task, NULL, 4, &datum, INOUT, 0);
    QUARK_Insert_Task(quark, count_task, NULL, 4, &datum, INPUT, 0);
    while (!met)
        sched_yield();
    ASSERT(QUARK_Cancel_Task(quark, second) == 1);
    ASSERT(QUARK_Cancel_Task(quark, second) == -2);
    ASSERT(QUARK_Cancel_Task(quark, first) == -2);
    open_gate = 1;
    QUARK_Barrier(quark);
    ASSERT(ran == 1);
    ASSERT(QUARK_Cancel_Task(quark, first) == -1);
    ASSERT(QUARK_Cancel_Task(quark, (unsigned long long)QUARK_ERR) == -1);
}

struct mixed {
    char text[11];
    double number;
};

static void ask(Quark *quark)
{
    char c;
    struct mixed mixed;
    int *own, *none, *fresh, rank = QUARK_Thread_Rank(quark);
    void *last = NULL, *list = QUARK_Args_List(quark);
    quark_unpack_args_5(quark, c, mixed, own, none, fresh);
    ASSERT(c == 'x' && mixed.number == 2.5 && !strcmp(mixed.text, "ten bytes!"));
    ASSERT(*own == 7 && none == own + 1);
    memset(fresh, 1, 1000);
    for (int i = 0; i < 5; i++)
        ASSERT(QUARK_Args_Pop(list, &last));
    ASSERT(!QUARK_Args_Pop(list, &last));
    ASSERT(rank >= 0 && rank < threads);
    ASSERT(!strcmp(QUARK_Get_Task_Label(quark), "asks") && QUARK_Get_Priority(quark) == 9);
    ASSERT(QUARK_Task_Flag_Get(quark, TASK_PRIORITY) == 9 && QUARK_Get_Sequence(quark) == NULL);
    ASSERT(QUARK_Task_Flag_Get(quark, TASK_LOCK_TO_THREAD) == -1);
    ASSERT(QUARK_Task_Flag_Get(quark, 1) == -9 && QUARK_Get_RankInTask(quark) == 0);
    ran++;
}

static void asking(Quark *quark)
{
    static int data[2] = {7};
    int priority = 9;
    char c = 'x';
    struct mixed mixed = {"ten bytes!", 2.5};
    unsigned char mask[2] = {0};
    QUARK_Execute_Task(quark, ask, NULL, 1, &c, VALUE, sizeof mixed, &mixed, VALUE, 4, data,
                       SCRATCH, 4, data + 1, NODEP, 1000, NULL, SCRATCH, 5, "asks",
                       VALUE | TASK_LABEL, 4, "red", VALUE | TASK_COLOR, sizeof priority, &priority,
                       VALUE | TASK_PRIORITY, 0);
    ASSERT(ran == 1 && QUARK_Thread_Rank(quark) == 0 && QUARK_Get_Task_Label(quark) == NULL);
    QUARK_Bit_Set(mask, 9, 1);
    ASSERT(QUARK_Bit_Get(mask, 9) == 1 && QUARK_Bit_Get(mask, 8) == 0 && mask[1] == 64);
}

static int order[100];

static void note(Quark *quark)
{
    order[ran++] = QUARK_Get_Priority(quark);
}

static void priorities(Quark *quark) /* with one worker, DUET_HOLD and a policy that looks */
{
    Quark_Task_Flags flags = Quark_Task_Flags_Initializer;
    for (int i = 0; i < 100; i++) {
        QUARK_Task_Flag_Set(&flags, TASK_PRIORITY, i * 37 % 100);
        QUARK_Insert_Task(quark, note, &flags, 0);
    }
    QUARK_Barrier(quark);
    for (int i = 0; i < 100; i++)
        ASSERT(order[i] == 99 - i);
}

static void *own_thread(void *quark)
{
    for (int i = 0; i < 2; i++, met++)
        QUARK_Worker_Loop(quark, 1);
    return NULL;
}

static void worker_loop(Quark *quark)
{
    pthread_t thread;
    pthread_create(&thread, NULL, own_thread, quark);
    for (int i = 0; i < 2; i++) {
        QUARK_Insert_Task(quark, count_task, NULL, 0);
        QUARK_Waitall(quark); /* lets the thread go, also if it comes later */
        while (met <= i)
            sched_yield();
        ASSERT(ran == i + 1);
    }
    pthread_join(thread, NULL);
}

static void nests(Quark *quark)
{
    QUARK_Insert_Task(quark, count_task, NULL, 0);
}

static void refusals(Quark *quark)
{
    static int one = 1, many = 1000;
    static unsigned char mask[8] = {1};
    static const struct {
        const char *name;
        int size;
        void *value;
        int flags;
    } arguments[] = {{"thread", 4, &one, VALUE | TASK_LOCK_TO_THREAD},
                     {"mask", sizeof mask, mask, VALUE | TASK_LOCK_TO_THREAD_MASK},
                     {"manual", 4, &one, VALUE | THREAD_SET_TO_MANUAL_SCHEDULING},
                     {"count", 4, &many, VALUE | TASK_THREAD_COUNT},
                     {"kind", 4, &one, LOCALITY},
                     {"value", 4, &one, VALUE | GATHERV},
                     {"scratch", -4, NULL, SCRATCH}};
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        if (!strcmp(refused, arguments[i].name))
            QUARK_Insert_Task(quark, count_task, NULL, arguments[i].size, arguments[i].value,
                              arguments[i].flags, 0);
    if (!strcmp(refused, "dag"))
        QUARK_DOT_DAG_Enable(quark, 1);
    QUARK_Insert_Task(quark, strcmp(refused, "nested") ? count_task : nests, NULL, 0);
    QUARK_Barrier(quark);
    ASSERT(ran == 1);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(Quark *quark);
    } cases[] = {{"cholesky", cholesky}, {"random", random_tasks},   {"team", team},
                 {"gather", gather},     {"sequences", sequences},   {"cancelling", cancelling},
                 {"asking", asking},     {"priorities", priorities}, {"worker_loop", worker_loop},
                 {"refused", refusals}};
    ASSERT(argc > 2);
    const int wanted = (int)strtol(argv[2], NULL, 10);
    threads = wanted ? wanted : 2; /* 0: as QUARK_NUM_THREADS says */
    refused = argc > 3 ? argv[3] : "";
    drawn = (unsigned)strtol(refused, NULL, 10);
    Quark *quark = !strcmp(argv[1], "worker_loop") ? QUARK_Setup(threads) : QUARK_New(wanted);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        if (!strcmp(cases[c].name, argv[1]))
            cases[c].run(quark);
    QUARK_Delete(quark);
    return 0;
}
