/* SPDX-License-Identifier: Apache-2.0 */
/* Treaps of strips, and of the rectangles in each of them. */
#include <stdlib.h>

#include <duet/random.h>

#include "core/plane.h"

/*
 * An interval of columns with a treap of its rectangles, or a rectangle: an interval of rows with
 * its owner.
 */
struct strip {
    uint64_t low, high; /* from low to below high; of a strip: the highest of its rectangles */
    uint64_t reach;     /* the largest `high` in its subtree */
    uint64_t priority;
    struct strip *left, *right, *inner;
    uint64_t end; /* column after the last of a rectangle */
    const void *owner;
};

enum { CHUNK = 15 };

struct chunk {
    struct chunk *next;
    struct strip strips[CHUNK];
};

static void treap_update(struct strip *node)
{
    node->reach = node->high;
    if (node->left && node->left->reach > node->reach)
        node->reach = node->left->reach;
    if (node->right && node->right->reach > node->reach)
        node->reach = node->right->reach;
}

/* Splits a treap into the nodes below `low`, and the rest. */
static void treap_split(struct strip *root, uint64_t low, struct strip **below, struct strip **rest)
{
    if (!root) {
        *below = *rest = NULL;
    } else if (root->low < low) {
        *below = root;
        treap_split(root->right, low, &root->right, rest);
        treap_update(root);
    } else {
        *rest = root;
        treap_split(root->left, low, below, &root->left);
        treap_update(root);
    }
}

static struct strip *treap_join(struct strip *left, struct strip *right)
{
    if (!left || !right)
        return left ? left : right;
    struct strip *root = left->priority > right->priority ? left : right;
    if (root == left)
        left->right = treap_join(left->right, right);
    else
        right->left = treap_join(left, right->left);
    treap_update(root);
    return root;
}

static void treap_insert(struct strip **root, struct strip *added)
{
    while (*root && added->priority <= (*root)->priority) {
        if ((*root)->reach < added->high)
            (*root)->reach = added->high;
        root = added->low < (*root)->low ? &(*root)->left : &(*root)->right;
    }
    treap_split(*root, added->low, &added->left, &added->right);
    treap_update(added);
    *root = added;
}

/* Returns the node that begins at `low`, or NULL. */
static struct strip *treap_at(struct strip *root, uint64_t low)
{
    while (root && root->low != low)
        root = low < root->low ? root->left : root->right;
    return root;
}

/* Removes the node from low to high, which exists, from the treap. */
static struct strip *treap_remove(struct strip **root, uint64_t low, uint64_t high)
{
    while ((*root)->low != low && (*root)->reach != high) /* nodes whose reach stays the same */
        root = low < (*root)->low ? &(*root)->left : &(*root)->right;
    struct strip *node = *root;
    if (node->low == low) {
        *root = treap_join(node->left, node->right);
        return node;
    }
    struct strip *taken = treap_remove(low < node->low ? &node->left : &node->right, low, high);
    treap_update(node);
    return taken;
}

/* Moves the end of a strip up to `high`. */
static void strip_grow(struct strip *root, struct strip *strip, uint64_t high)
{
    strip->high = high;
    treap_update(strip);
    for (; root && root != strip; root = strip->low < root->low ? root->left : root->right) {
        if (root->reach < strip->reach)
            root->reach = strip->reach;
    }
}

/* Returns a record from the plane's own memory. NULL: no memory. */
static struct strip *new_strip(struct plane *plane)
{
    if (!plane->spare) {
        struct chunk *chunk = malloc(sizeof *chunk);
        if (!chunk)
            return NULL;
        chunk->next = plane->chunks;
        plane->chunks = chunk;
        for (unsigned i = 0; i < CHUNK; i++) {
            chunk->strips[i].right = plane->spare;
            plane->spare = &chunk->strips[i];
        }
    }
    struct strip *strip = plane->spare;
    plane->spare = strip->right;
    return strip;
}

static void strip_return(struct plane *plane, struct strip *strip)
{
    strip->right = plane->spare;
    plane->spare = strip;
}

static void strip_enter(struct plane *plane, struct strip **root, struct strip *strip)
{
    strip->reach = strip->high;
    strip->priority = duet_random_next(&plane->rng);
    treap_insert(root, strip);
}

static const void *treap_find(const struct strip *root, uint64_t low, uint64_t high,
                              const struct rectangle *wanted)
{
    if (!root || root->reach <= low)
        return NULL;
    const void *found = treap_find(root->left, low, high, wanted);
    if (!found && root->low < high && root->high > low) {
        if (root->inner)
            found = treap_find(root->inner, wanted->row, wanted->row + wanted->rows, wanted);
        else if (root->end > wanted->col)
            found = root->owner;
    }
    return found || root->low >= high ? found : treap_find(root->right, low, high, wanted);
}

const void *duet__plane_find(const struct plane *plane, struct rectangle wanted)
{
    return treap_find(plane->strips, wanted.col, wanted.col + wanted.cols, &wanted);
}

bool duet__plane_add(struct plane *plane, struct rectangle added, const void *owner)
{
    struct strip *strip = treap_at(plane->strips, added.col), *node = new_strip(plane);
    uint64_t end = added.col + added.cols;
    if (!strip && node) {
        strip = new_strip(plane);
        if (strip) {
            *strip = (struct strip){.low = added.col, .high = end};
            strip_enter(plane, &plane->strips, strip);
        }
    }
    if (!strip || !node) {
        if (node)
            strip_return(plane, node);
        return false;
    }
    *node = (struct strip){.low = added.row,
                           .high = added.row + added.rows,
                           .end = end,
                           .owner = owner};
    strip_enter(plane, &strip->inner, node);
    if (strip->high < end)
        strip_grow(plane->strips, strip, end);
    return true;
}

void duet__plane_remove(struct plane *plane, struct rectangle removed)
{
    struct strip *strip = treap_at(plane->strips, removed.col);
    strip_return(plane, treap_remove(&strip->inner, removed.row, removed.row + removed.rows));
    if (!strip->inner)
        strip_return(plane, treap_remove(&plane->strips, removed.col, strip->high));
}

void duet__plane_fini(struct plane *plane)
{
    while (plane->chunks) {
        struct chunk *next = plane->chunks->next;
        free(plane->chunks);
        plane->chunks = next;
    }
    plane->strips = plane->spare = NULL;
}
