// SPDX-License-Identifier: Apache-2.0
// Makes the page from its two pieces of data: the report, which is what --json writes, and what is
// beside that: colours, what else is known of first runs, and recordings for timelines.

let extra = null;

function start() {
  const report = JSON.parse(document.getElementById('report').textContent);
  extra = JSON.parse(document.getElementById('extra').textContent);
  document.getElementById('page').innerHTML =
    (report.study ? studyPage : report.cases ? validationPage : report.cause ? whyPage
      : reportPage)(report).text;
  document.querySelectorAll('table.sortable').forEach(makeSortable);
  listenForTips();
  drawCharts();
  if (report.study) liveStudy();
  else if (report.cases) liveValidation(report);
  const box = document.getElementById('timelines');
  if (box) liveTimelines(box, extra.recordings);
}

document.addEventListener('DOMContentLoaded', start);
