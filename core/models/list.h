/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in performance models: MODEL(symbol), one line each; the first is the default. */
MODEL(duet__model_history)
MODEL(duet__model_regression)
MODEL(duet__model_segmented)
