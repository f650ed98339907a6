/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of tasks, data and messages are found again. */
#include "nodes/nodes.h"

#include <assert.h>

static void test_tasks(void)
{
    OWNED(duet__log_fini) struct duet__node_log log;
    duet__log_init(&log, true);
    duet__log_task(&log, 2, 7); /* nothing comes of it */
    duet__log_task(&log, 2, 8); /* becomes 3, and submits 4 */
    duet__log_task(&log, 4, 11);
    assert(duet__log_turn(&log, 2) == 0 && duet__log_turn(&log, 3) == 8);
    assert(duet__log_turn(&log, 4) == 8 && duet__log_turn(&log, 5) == 11);
    duet__log_reset(&log);
    assert(duet__log_turn(&log, 5) == 0);
}

/* Data stays known when a measurement begins anew. */
static void test_data(void)
{
    OWNED(duet__log_fini) struct duet__node_log log;
    duet__log_init(&log, true);
    for (uint64_t handle = 1000; handle > 0; handle--)
        duet__log_datum(&log, handle, 1000 + handle);
    duet__log_reset(&log);
    assert(log.datum_count == 1000 && !log.lost);
    assert(log.data[0].handle == 1000 && log.data[0].tag == 2000 && log.data[999].handle == 1);
}

/* Counters are kept without records, too. */
static void test_messages(void)
{
    const struct duet__logged_message in = {.tag = 3, .bytes = 10, .from = 1, .arrives = true},
                                      out = {.tag = 4, .bytes = 20, .to = 1},
                                      none = {.tag = 5, .bytes = 40, .to = 1, .failed = true};
    for (int records = 0; records < 2; records++) {
        OWNED(duet__log_fini) struct duet__node_log log;
        duet__log_init(&log, records);
        duet__log_message(&log, &in);
        duet__log_message(&log, &out);
        duet__log_message(&log, &none);
        assert(log.messages_out == 1 && log.bytes_out == 20);
        assert(log.message_count == (records ? 3 : 0));
        assert(!records || (log.messages[1].tag == 4 && log.messages[2].failed));
        duet__log_reset(&log);
        assert(!log.message_count && !log.bytes_out);
    }
}

TEST_MAIN(test_tasks, test_data, test_messages)
