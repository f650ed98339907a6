/* SPDX-License-Identifier: Apache-2.0 */
/* Each construct of OpenMP's tasks once; record_test.py states and compares the same program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int x, y, z;

static void depend(void)
{
#pragma omp task depend(out : x)
    x++;
#pragma omp task depend(in : x) depend(out : y)
    y += x;
#pragma omp task depend(in : x)
    z++;
#pragma omp task depend(mutexinoutset : x)
    x++;
#pragma omp task depend(mutexinoutset : x)
    x++;
#pragma omp task depend(inout : y)
    {
#pragma omp task depend(out : x)
        z++;
#pragma omp task depend(in : x)
        z++;
    }
#pragma omp taskwait depend(in : x)
#pragma omp task depend(in : x, y)
    z++;
#pragma omp taskwait
}

static void at_once(int no)
{
#pragma omp task
    x++;
#pragma omp task if (no)
    {
#pragma omp task
        y++;
    }
#pragma omp task depend(out : z)
    z++;
#pragma omp task if (no) depend(in : z)
    x++;
#pragma omp task final(1)
    {
#pragma omp task
        y++;
        y++;
    }
#pragma omp task untied
    y++;
#pragma omp taskwait
}

static void groups(void)
{
#pragma omp task
    x++;
#pragma omp taskgroup
    {
#pragma omp task
        {
#pragma omp task
            y++;
        }
#pragma omp taskgroup
        {
#pragma omp task
            z++;
        }
#pragma omp taskwait
#pragma omp task
        y++;
    }
#pragma omp task
    z++;
#pragma omp taskloop num_tasks(3)
    for (int i = 0; i < 6; i++)
        y++;
#pragma omp task
    {
#pragma omp parallel num_threads(1)
        {
#pragma omp task
            y++;
        }
#pragma omp task
        y++;
    }
}

int main(int argc, char **argv)
{
    const char *end = argc > 1 ? argv[1] : "";
#pragma omp parallel num_threads(2)
    {
#pragma omp task
        x++;
#pragma omp barrier
#pragma omp task
        y++;
    }
#pragma omp parallel
#pragma omp single
    {
        depend();
        at_once(argc > 100);
        groups();
        if (strcmp(end, "kill") == 0)
            raise(SIGKILL);
        if (strcmp(end, "exit") == 0)
            exit(0);
    }
    return 0;
}
