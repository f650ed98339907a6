# SPDX-License-Identifier: Apache-2.0
# Reads a file of `duet study`: for each policy, how far it is from the best one of each case. It
# does what read_study.py does, which is tested; this script is not.
#
#     Rscript read_study.R idgraf.db
#
# Needs the packages DBI and RSQLite.

connection <- DBI::dbConnect(RSQLite::SQLite(), commandArgs(trailingOnly = TRUE)[1],
                             flags = RSQLite::SQLITE_RO)
settings <- DBI::dbReadTable(connection, "settings")$name
runs <- DBI::dbReadTable(connection, "runs", check.names = FALSE)
DBI::dbDisconnect(connection)

runs <- runs[is.na(runs$error), ]
# NULL, where a setting was not given, is a value, too
runs[settings] <- lapply(runs[settings], function(column) ifelse(is.na(column), "-", column))
cells <- aggregate(runs["makespan_s"], runs[settings], mean)
case <- interaction(cells[setdiff(settings, "policy")], drop = TRUE)
ratio <- cells$makespan_s / ave(cells$makespan_s, case, FUN = min)
behind <- sort(tapply(log(ratio), cells$policy, mean))
print(data.frame(behind_percent = round(100 * expm1(behind), 2)))
