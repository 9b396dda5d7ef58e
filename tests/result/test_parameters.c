/* test_parameters.c: JSON that others may have written: what is refused, and how differences
 * between two texts are described. */
#include "result/parameters.h"
#include "result/signature.h"
#include "runner.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_difference(const char *there, const char *here, const char *expected)
{
    char text[640];
    bool differs = parameters_difference(text, sizeof text, there, here, "the file");
    if (strcmp(text, expected) != 0)
        print_error("%s\nagainst %s\n", there, here);
    assert_string_equal(text, expected);
    assert_int_equal(differs, *expected != 0);
}

static void test_same_meaning(void **state)
{
    (void)state;
    assert_difference("{\"a\":1,\"b\":[1,2]}", " { \"b\" : [1, 2],\n\"a\": 1 } ", "");
    assert_difference("{\"tol\":0}", "{\"tol\":0.0}", "");
    assert_difference("{\"tol\":0.0001}", "{\"tol\":1e-4}", "");
    assert_difference("{\"a\":\"\\u00e9/\"}", "{\"a\":\"\xc3\xa9\\/\"}", "");
    assert_difference("{\"n\":18446744073709551615}", "{\"n\": 18446744073709551615}", "");
}

static void test_differences(void **state)
{
    (void)state;
    assert_difference("{\"k\":3}", "{\"k\":4}", "k: the file has 3; the command asks for 4");
    assert_difference("{\"a\":\"x\",\"b\":true}", "{\"b\":false,\"c\":[]}",
                      "a: the file has x; the command asks for none. "
                      "b: the file has true; the command asks for false. "
                      "c: the file has none; the command asks for []");
    /* Different integers that are equal as doubles. */
    assert_difference("{\"seed\":9007199254740993}", "{\"seed\":9007199254740992}",
                      "seed: the file has 9007199254740993; the command asks for "
                      "9007199254740992");
    /* Common elements of lists are omitted; a feature is shown by its name unless the names are
     * equal. */
    assert_difference("{\"features\":[\"gray=gray:bins=8\",\"x=rgb\",\"last=gray\"]}",
                      "{\"features\":[\"gray=gray:bins=8\",\"hsv_8x4x4=hsv\",\"last=gray\"]}",
                      "features: the file has x; the command asks for hsv_8x4x4");
    assert_difference("{\"features\":[\"x=rgb\",\"y=hsv\"]}", "{\"features\":[\"x=gray\"]}",
                      "features: the file has x=rgb, y; the command asks for x=gray");
    assert_difference("{\"sources\":[\"a\"]}", "{\"sources\":[\"a\",\"b\"]}",
                      "sources: the file has none; the command asks for b");
    /* Differences within objects are found. */
    assert_difference("{\"parameters\":{\"alpha\":\"white\"},\"scale\":1}",
                      "{\"parameters\":{\"alpha\":\"drop\"},\"scale\":2}",
                      "alpha: the file has white; the command asks for drop");
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "[]",
                                        "1",
                                        "{\"a\":1",
                                        "{\"a\":NaN}",
                                        "{\"a\":1e999}",
                                        "{\"a\":}",
                                        "{\"a\":1}{}",
                                        "{\"a\":\"x}",
                                        "{\"a\":\"\xff\"}",
                                        "{'a':1}",
                                        "{\"a\":1,\"a\":1}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct parameters *parameters = (struct parameters *)wrong;
        struct error error = ERROR_INIT;
        char text[16];
        assert_int_equal(parameters_open(&parameters, wrong[i], &error), STATUS_FAILED);
        assert_null(parameters);
        assert_string_equal(parameters_text(text, sizeof text, wrong[i], "a"), "");
        assert_difference("{\"a\":1}", wrong[i], "its parameters cannot be read");
    }
}

/* Text that is deeply nested or too long is refused with little memory and stack. */
static void test_bounded(void **state)
{
    (void)state;
    const size_t size = 9u << 20;
    struct parameters *parameters;
    char *text = malloc(size + 1);
    assert_non_null(text);
    memset(text, '[', size);
    memcpy(text, "{\"a\":", 5);
    text[1 << 20] = 0;
    assert_int_equal(parameters_open(&parameters, text, NULL), STATUS_FAILED);
    memset(text, ' ', size);
    memcpy(text, "{}", 2);
    text[size] = 0;
    assert_int_equal(parameters_open(&parameters, text, NULL), STATUS_FAILED);
    text[4u << 20] = 0;
    assert_int_equal(parameters_open(&parameters, text, NULL), STATUS_OK);
    parameters_close(&parameters);
    free(text);
}

static void test_members(void **state)
{
    (void)state;
    struct parameters *parameters;
    const char *name = NULL;
    char text[4];
    const char *json = "{\"s\":\"abc\",\"n\":7,\"l\":[\"x\",2],\"o\":{\"k\":\"v\",\"z\":\"w\"}}";
    assert_int_equal(parameters_open(&parameters, json, NULL), STATUS_OK);
    assert_string_equal(parameters_member(parameters, "s"), "abc");
    assert_null(parameters_member(parameters, "n"));
    assert_int_equal(parameters_number(parameters, "n", 1), 7);
    assert_int_equal(parameters_number(parameters, "s", 1), 1);
    assert_string_equal(parameters_entry(parameters, "l", 0, NULL), "x");
    assert_null(parameters_entry(parameters, "l", 1, NULL));
    assert_null(parameters_entry(parameters, "l", 2, NULL));
    assert_string_equal(parameters_entry(parameters, "o", 1, &name), "w");
    assert_string_equal(name, "z");
    assert_null(parameters_entry(parameters, "o", 2, NULL));
    parameters_close(&parameters);
    assert_string_equal(parameters_text(text, sizeof text, json, "s"), "abc");
    assert_string_equal(parameters_text(text, sizeof text, "{\"s\":\"abcd\"}", "s"), "");
    assert_int_equal(parameters_length("{\"a\": 1} rest"), 8);
    assert_int_equal(parameters_length("{\"a\": 1"), 0);
}

/* --- signatures ------------------------------------------------------------------------------ */

static void test_signature(void **state)
{
    (void)state;
    static const char *const sources[] = {"photos", "bytes\\xff"};
    struct feature_set features = {.count = 0};
    assert_int_equal(feature_set_add(&features, "g=gray:bins=4", NORMALIZE_L1, NULL), STATUS_OK);
    const struct content content = {.sources = sources,
                                    .source_count = 2,
                                    .features = &features,
                                    .decode_scale = 2,
                                    /* The text is kept exactly, including white space. */
                                    .parameters = "{\"alpha\" : \"white\"}"};
    char *signature = signature_of_content(&content, NULL);
    assert_non_null(signature);
    struct signature_parts parts;
    assert_int_equal(signature_parse(&parts, signature, NULL), STATUS_OK);
    assert_string_equal(parts.content.parameters, content.parameters);
    assert_int_equal(parts.content.source_count, 2);
    assert_string_equal(parts.content.sources[1], "bytes\\xff");
    assert_int_equal(parts.content.decode_scale, 2);
    assert_int_equal(parts.features.count, 1);
    assert_string_equal(parts.features.feature[0].spec, features.feature[0].spec);
    signature_parts_clear(&parts);
    for (size_t length = strlen(signature); length-- > 0;) {
        signature[length] = 0;
        assert_int_not_equal(signature_parse(&parts, signature, NULL), STATUS_OK);
        signature_parts_clear(&parts);
    }
    free(signature);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_same_meaning), cmocka_unit_test(test_differences),
    cmocka_unit_test(test_refused),      cmocka_unit_test(test_bounded),
    cmocka_unit_test(test_members),      cmocka_unit_test(test_signature),
};
TEST_GROUP(parameters, NULL, NULL)
