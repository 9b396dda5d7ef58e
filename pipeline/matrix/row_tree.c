/* row_tree.c: threads digest the complete pieces that they bring, and partial pieces under a lock:
 * readers split rows at pieces, so these are few.
 *
 * MurmurHash3 takes a third of the time of SHA-256 on CPUs with instructions for that, and a tenth
 * on others. */
#include "matrix/row_tree.h"
#include "base/hash.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (1u << 20)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are digested as they are");

enum piece_state { PIECE_NEW, PIECE_BEGUN, PIECE_TAKEN, PIECE_DONE };

struct hasher {
    enum row_tree_hash hash;
    union {
        struct murmur3 murmur3;
        struct sha256 sha256;
    };
};

/* A piece whose first rows have been added. */
struct begun {
    struct begun *next;
    uint64_t piece, rows;
    struct hasher state;
};

struct row_tree {
    enum row_tree_hash hash;
    uint64_t rows, piece_rows, pieces;
    size_t row_bytes, leaf_bytes;
    uint8_t *leaves; /* one more than needed, followed by `state` */
    pthread_mutex_t lock;
    /* Guarded by `lock`: */
    uint8_t *state;
    struct begun *begun;
    uint64_t missing; /* all pieces before it are known */
};

uint64_t row_tree_piece(size_t row_bytes)
{
    uint64_t rows = 1;
    while (2 * rows * row_bytes <= PIECE_BYTES)
        rows *= 2;
    return rows;
}

static void hasher_init(struct hasher *hasher, enum row_tree_hash hash)
{
    hasher->hash = hash;
    if (hash == ROW_TREE_SHA256)
        sha256_init(&hasher->sha256);
    else
        murmur3_init(&hasher->murmur3);
}

static void hasher_update(struct hasher *hasher, const void *data, size_t size)
{
    if (hasher->hash == ROW_TREE_SHA256)
        sha256_update(&hasher->sha256, data, size);
    else
        murmur3_update(&hasher->murmur3, data, size);
}

/* Stores the digest in the leaf of a piece. */
static void hasher_final(struct hasher *hasher, const struct row_tree *tree, uint64_t piece)
{
    uint8_t *leaf = tree->leaves + piece * tree->leaf_bytes;
    uint64_t words[2];
    if (hasher->hash == ROW_TREE_SHA256) {
        sha256_final(&hasher->sha256, leaf);
        return;
    }
    murmur3_final(&hasher->murmur3, words);
    memcpy(leaf, words, sizeof words);
}

enum status row_tree_open(struct row_tree **out, enum row_tree_hash hash, uint64_t rows,
                          size_t row_bytes, struct error *err)
{
    assert(row_bytes > 0);
    *out = NULL;
    struct row_tree *tree = calloc(1, sizeof *tree);
    if (!tree)
        return error_memory(err, sizeof *tree, "a digest");
    pthread_mutex_init(&tree->lock, NULL);
    tree->hash = hash;
    tree->rows = rows;
    tree->row_bytes = row_bytes;
    tree->leaf_bytes = hash == ROW_TREE_SHA256 ? 32 : 16;
    tree->piece_rows = row_tree_piece(row_bytes);
    tree->pieces = rows / tree->piece_rows + (rows % tree->piece_rows > 0);
    tree->leaves = calloc(tree->pieces + 1, tree->leaf_bytes + 1);
    if (!tree->leaves) {
        row_tree_close(&tree);
        return error_memory(err, (size_t)rows, "a digest");
    }
    tree->state = tree->leaves + (tree->pieces + 1) * tree->leaf_bytes;
    *out = tree;
    return STATUS_OK;
}

void row_tree_close(struct row_tree **tree)
{
    struct row_tree *t = *tree;
    if (!t)
        return;
    for (struct begun *at = t->begun, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    pthread_mutex_destroy(&t->lock);
    free(t->leaves);
    free(t);
    *tree = NULL;
}

void *row_tree_state(struct row_tree *tree, size_t *bytes)
{
    *bytes = (size_t)(tree->pieces + 1) * (tree->leaf_bytes + 1);
    return tree->leaves;
}

void row_tree_keep(struct row_tree *tree, uint64_t first, uint64_t count)
{
    for (uint64_t piece = 0; piece < tree->pieces; piece++) {
        const uint64_t begin = piece * tree->piece_rows;
        if (tree->state[piece] == PIECE_DONE && begin >= first && begin - first < count)
            continue;
        tree->state[piece] = PIECE_NEW;
        memset(tree->leaves + piece * tree->leaf_bytes, 0, tree->leaf_bytes);
    }
    for (struct begun *at; (at = tree->begun);) {
        tree->begun = at->next;
        free(at);
    }
    tree->missing = 0;
}

static uint64_t rows_of(const struct row_tree *tree, uint64_t piece)
{
    const uint64_t left = tree->rows - piece * tree->piece_rows;
    return left < tree->piece_rows ? left : tree->piece_rows;
}

/* --- whole pieces ------------------------------------------------------------------------------ */

static void add_piece(struct row_tree *tree, uint64_t piece, const uint8_t *values)
{
    struct hasher state;
    pthread_mutex_lock(&tree->lock);
    const bool known = tree->state[piece] >= PIECE_TAKEN;
    if (!known)
        tree->state[piece] = PIECE_TAKEN;
    pthread_mutex_unlock(&tree->lock);
    if (known)
        return;
    hasher_init(&state, tree->hash);
    hasher_update(&state, values, (size_t)rows_of(tree, piece) * tree->row_bytes);
    hasher_final(&state, tree, piece);
    pthread_mutex_lock(&tree->lock);
    tree->state[piece] = PIECE_DONE;
    pthread_mutex_unlock(&tree->lock);
}

/* --- parts of pieces --------------------------------------------------------------------------- */

static void add_part(struct row_tree *tree, uint64_t piece, uint64_t first, uint64_t count,
                     const uint8_t *values)
{
    pthread_mutex_lock(&tree->lock);
    struct begun **link = &tree->begun, *at = NULL;
    if (tree->state[piece] == PIECE_BEGUN) {
        /* Another process may have begun it. */
        while (*link && (*link)->piece != piece)
            link = &(*link)->next;
        at = *link;
    } else if (tree->state[piece] == PIECE_NEW && first == 0 && (at = malloc(sizeof *at))) {
        /* At the front: rows usually come in order. */
        *at = (struct begun){.next = tree->begun, .piece = piece};
        hasher_init(&at->state, tree->hash);
        tree->begun = at;
        tree->state[piece] = PIECE_BEGUN;
    }
    if (at && first <= at->rows && first + count > at->rows) {
        const uint64_t skip = at->rows - first;
        hasher_update(&at->state, values + skip * tree->row_bytes,
                      (size_t)(count - skip) * tree->row_bytes);
        at->rows = first + count;
        if (at->rows == rows_of(tree, piece)) {
            hasher_final(&at->state, tree, piece);
            tree->state[piece] = PIECE_DONE;
            *link = at->next;
            free(at);
        }
    }
    pthread_mutex_unlock(&tree->lock);
}

void row_tree_add(struct row_tree *tree, uint64_t first, uint64_t count, const void *rows)
{
    const uint8_t *values = rows;
    const uint64_t end = first + count;
    while (first < end) {
        const uint64_t piece = first / tree->piece_rows, begin = piece * tree->piece_rows;
        const uint64_t rest = rows_of(tree, piece) - (first - begin);
        const uint64_t now = rest < end - first ? rest : end - first;
        if (now == rows_of(tree, piece))
            add_piece(tree, piece, values);
        else
            add_part(tree, piece, first - begin, now, values);
        first += now;
        values += now * tree->row_bytes;
    }
}

/* --- the end ----------------------------------------------------------------------------------- */

bool row_tree_missing(struct row_tree *tree, uint64_t *first, uint64_t *count)
{
    pthread_mutex_lock(&tree->lock);
    while (tree->missing < tree->pieces && tree->state[tree->missing] == PIECE_DONE)
        tree->missing++;
    const uint64_t piece = tree->missing;
    pthread_mutex_unlock(&tree->lock);
    if (piece == tree->pieces)
        return false;
    *first = piece * tree->piece_rows;
    *count = rows_of(tree, piece);
    return true;
}

const uint8_t *row_tree_leaves(const struct row_tree *tree, uint64_t *count)
{
    *count = tree->pieces;
    return tree->leaves;
}

void row_tree_digest(const struct row_tree *tree, char hex[65])
{
    char line[80], whole[65];
    struct sha256 sha;
    const int length = snprintf(line, sizeof line, "rows float32 %llu,%zu\n",
                                (unsigned long long)tree->rows, tree->row_bytes / sizeof(float));
    sha256_init(&sha);
    sha256_update(&sha, line, (size_t)length);
    sha256_update(&sha, tree->leaves, (size_t)tree->pieces * tree->leaf_bytes);
    sha256_hex(whole, &sha);
    snprintf(hex, 65, ROW_TREE "%.58s", whole);
}
