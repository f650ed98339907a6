/* SPDX-License-Identifier: Apache-2.0 */
/* The prototype of a test's main function, which the build renames; included before everything. */
#ifdef __cplusplus
extern "C" {
#endif
int main(int argc, char **argv);
#ifdef __cplusplus
}
#endif
