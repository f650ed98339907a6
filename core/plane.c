/* SPDX-License-Identifier: Apache-2.0 */
/* Treaps of strips, and of the rectangles in each of them. */
#include <stdlib.h>

#include <duet/random.h>

#include "core/plane.h"

/* An interval of columns, with a treap of what is in it; or one of rows, with its owner. */
struct strip {
    uint64_t low, high; /* from low to below high; a strip's: as far as any of its rectangles */
    uint64_t reach;     /* the largest `high` in its subtree */
    uint64_t priority;
    struct strip *left, *right, *inner;
    uint64_t end; /* of a rectangle: its columns are below */
    const void *owner;
};

static void update(struct strip *node)
{
    node->reach = node->high;
    if (node->left && node->left->reach > node->reach)
        node->reach = node->left->reach;
    if (node->right && node->right->reach > node->reach)
        node->reach = node->right->reach;
}

/* What lies below `low`, and the rest. */
static void split(struct strip *root, uint64_t low, struct strip **below, struct strip **rest)
{
    if (!root) {
        *below = *rest = NULL;
    } else if (root->low < low) {
        *below = root;
        split(root->right, low, &root->right, rest);
        update(root);
    } else {
        *rest = root;
        split(root->left, low, below, &root->left);
        update(root);
    }
}

static struct strip *join(struct strip *left, struct strip *right)
{
    if (!left || !right)
        return left ? left : right;
    struct strip *root = left->priority > right->priority ? left : right;
    if (root == left)
        left->right = join(left->right, right);
    else
        right->left = join(left, right->left);
    update(root);
    return root;
}

static struct strip *insert(struct strip *root, struct strip *added)
{
    if (!root || added->priority > root->priority) {
        split(root, added->low, &added->left, &added->right);
        root = added;
    } else if (added->low < root->low) {
        root->left = insert(root->left, added);
    } else {
        root->right = insert(root->right, added);
    }
    update(root);
    return root;
}

/* The one that begins there, or NULL. */
static struct strip *at(struct strip *root, uint64_t low)
{
    while (root && root->low != low)
        root = low < root->low ? root->left : root->right;
    return root;
}

/* Takes the one that begins there, which is there, out of the treap, and frees it. */
static struct strip *cut_out(struct strip *root, uint64_t low)
{
    if (root->low == low) {
        struct strip *rest = join(root->left, root->right);
        free(root);
        return rest;
    }
    if (low < root->low)
        root->left = cut_out(root->left, low);
    else
        root->right = cut_out(root->right, low);
    update(root);
    return root;
}

/* `high` of the strip that begins there has grown. */
static void grown(struct strip *root, uint64_t low)
{
    if (low != root->low)
        grown(low < root->low ? root->left : root->right, low);
    update(root);
}

static struct strip *new_strip(struct plane *plane, uint64_t low, uint64_t length,
                               const void *owner)
{
    struct strip *node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    node->low = low;
    node->high = node->reach = low + length;
    node->priority = duet_random_next(&plane->rng);
    node->owner = owner;
    return node;
}

static const void *find(const struct strip *root, uint64_t low, uint64_t high,
                        const struct rectangle *wanted)
{
    if (!root || root->reach <= low)
        return NULL;
    const void *found = find(root->left, low, high, wanted);
    if (!found && root->low < high && root->high > low) {
        if (root->inner)
            found = find(root->inner, wanted->row, wanted->row + wanted->rows, wanted);
        else if (root->end > wanted->col)
            found = root->owner;
    }
    return found || root->low >= high ? found : find(root->right, low, high, wanted);
}

const void *duet__plane_find(const struct plane *plane, struct rectangle wanted)
{
    return find(plane->strips, wanted.col, wanted.col + wanted.cols, &wanted);
}

bool duet__plane_add(struct plane *plane, struct rectangle added, const void *owner)
{
    struct strip *strip = at(plane->strips, added.col);
    struct strip *node = new_strip(plane, added.row, added.rows, owner);
    if (!strip && node) {
        strip = new_strip(plane, added.col, added.cols, NULL);
        if (strip)
            plane->strips = insert(plane->strips, strip);
    }
    if (!strip || !node) {
        free(node);
        return false;
    }
    node->end = added.col + added.cols;
    strip->inner = insert(strip->inner, node);
    if (strip->high < added.col + added.cols) {
        strip->high = added.col + added.cols;
        grown(plane->strips, strip->low);
    }
    return true;
}

void duet__plane_remove(struct plane *plane, struct rectangle removed)
{
    struct strip *strip = at(plane->strips, removed.col);
    strip->inner = cut_out(strip->inner, removed.row);
    if (!strip->inner)
        plane->strips = cut_out(plane->strips, removed.col);
}

static void free_all(struct strip *root)
{
    if (!root)
        return;
    free_all(root->left);
    free_all(root->right);
    free_all(root->inner);
    free(root);
}

void duet__plane_fini(struct plane *plane)
{
    free_all(plane->strips);
    plane->strips = NULL;
}
