// SPDX-License-Identifier: Apache-2.0
// The page of a comparison: headline figures, plots, a table to filter, each case's explanation.

const CAUSES = 9; // lines of the explanation of all cases
const VALUES = 12; // makespans that are shown of a side

/* "A" of "A: run.json", as short as a heading. */
function sideLabel(name) {
  const label = name.includes(': ') ? name.split(': ')[0] : name;
  return label.length > 14 ? `${label.slice(0, 13)}~` : label;
}

/* Gives the cases names, marks and tips, which several parts of the page need. */
function prepare(report) {
  const workloads = [], policies = [];
  const placeOf = (list, name) => list.includes(name) ? list.indexOf(name) : list.push(name) - 1;
  report.cases.forEach((one, index) => {
    one.index = index;
    one.problem = one.settings ? `${one.workload} ${one.settings}` : one.workload;
    one.colour = extra.colours[placeOf(workloads, one.workload) % extra.colours.length];
    one.form = FORMS[placeOf(policies, one.policy) % FORMS.length];
    one.fails = one.failure !== null ||
      report.fail_over !== null && one.error !== null && Math.abs(one.error) > report.fail_over;
    one.tip = `${one.name}\n${report.first_name} ${time(one.predicted.median_s)}, ` +
      `${report.second_name} ${time(one.measured.median_s)}: ${percent(one.error)}`;
    one.recordings = extra.recordings.filter(recording => recording.of === index);
    one.recordings.forEach(recording => { recording.caption = time(recording.makespan_s); });
  });
  return {workloads, policies};
}

function icon(form, colour) {
  return html`<svg class="icon" viewBox="-6 -6 12 12" aria-hidden="true"><path d="${form}"
    style="fill:${colour}"/></svg>`;
}

function cards(report, word) {
  const {summary, fail_over: failOver} = report, predicted = word === 'error';
  const share = value => value === null ? DASH : `${(value * 100).toFixed(1)} %`;
  const of = (part, whole) => whole ? `${part} of ${whole}` : null;
  return html`<section>${facts([
    [predicted ? 'median error' : 'median difference', share(summary.median)],
    ['95 % of the cases below', share(summary.p95)],
    ['worst', share(summary.worst)],
    ['bias', summary.bias === null ? DASH : `${signed(summary.bias * 100, 1)} %`],
    ['within the noise of measuring', summary.verdict && of(summary.within_noise, summary.known)],
    ['measured inside the interval of 90 %', of(summary.inside, summary.intervals)],
    [`fastest policy ${predicted ? 'predicted right' : 'the same'}`,
      of(summary.best_right, summary.groups)],
    ['pairs of policies in order', of(summary.pairs_right, summary.pairs)],
    ['disturbed in all rounds: nothing is concluded', summary.unsettled || null],
    ['without a result', summary.refused || null],
    [`failed (${word} over ${+(failOver * 100).toPrecision(6)} %)`,
      failOver === null ? null : summary.failed],
  ], 'cards')}${summary.verdict && html`<p>${summary.verdict}</p>`}</section>`;
}

/* Causes of the errors of all cases. */
function causes(report, word) {
  const all = report.causes;
  if (!all) return null;
  const shown = all.parts.length > CAUSES ? all.parts.slice(0, CAUSES - 1) : [...all.parts];
  const rest = all.parts.slice(shown.length);
  if (rest.length) shown.push({name: 'all others', share: d3.sum(rest, part => part.share)});
  shown.push({name: 'sum', share: all.whole, sum: true});
  const reach = shown.map(part => part.share);
  return html`<h4>Where the ${word} comes from: mean of ${plural(all.cases, 'case')}, of the
    makespan ${report.second_name}</h4>${table([
    {value: part => part.name},
    {cell: part => flow(reach, 0, part.share, part.sum)},
    {value: part => part.share, show: percent},
  ], shown, {kind: 'parts', row: part => part.sum && html`class="sum"`})}`;
}

function plots(report, word, {workloads, policies}) {
  const known = report.cases.filter(one => one.error !== null && one.predicted.median_s > 0);
  if (!known.length) return null;
  const names = [report.first_name, report.second_name], sides = names.join(' against ');
  return html`<section>${legend([
    ...workloads.map((name, i) => [swatch(extra.colours[i % extra.colours.length]), name]),
    ...policies.map((name, i) => [icon(FORMS[i % FORMS.length], 'var(--soft)'), name]),
  ])}<div class="columns"><div><h4>Makespans: ${sides}; the band is ±${BAND * 100} %</h4>${
    chart(sides, (svg, width) => scatter(svg, width, known, names, report.fail_over))}</div>
    <div><h4>${word === 'error' ? 'Errors' : 'Differences'} by workload</h4>${
    chart(`${word}s by workload`, (svg, width) => strip(svg, width, known))}${
    causes(report, word)}</div></div></section>`;
}

/* Marks intervals with too few rounds, or runs, for their nominal confidence. */
function mark(one) {
  return [one.predicted, one.measured].some(side => side.ci95_holds === false)
    ? ' (of too few rounds or runs: less than 95 %)' : '';
}

function caseTable(report, word) {
  const side = (name, key) =>
    ({head: sideLabel(name), value: one => one[key].median_s, show: time});
  const number = (head, key) => ({head, value: one => one[key] || null});
  return html`<section><h2>Table</h2><div class="tools"><input type="search" id="filter"
    placeholder="Filter: words that a case has to have" aria-label="Filter"><span class="hint"
    id="filtered" role="status"></span></div>${table([
    {head: 'workload', kind: 'word', value: one => one.problem,
      show: (name, one) =>
        html`<a href="#case-${one.index}">${icon(one.form, one.colour)}${name}</a>`},
    number('n', 'n'), number('tile', 'tile'),
    {head: 'policy', kind: 'word', value: one => one.policy},
    {head: 'CPUs', value: one => one.cpus}, {head: 'GPUs', value: one => one.gpus},
    side(report.first_name, 'predicted'), side(report.second_name, 'measured'),
    {head: word, kind: 'error', value: one => one.error === null ? null : Math.abs(one.error),
      show: (size, one) => `${signed(one.error * 100, 2)} %`},
    {head: html`95 % interval<br>of it, %`,
      value: one => one.error_low !== null ? one.error_high - one.error_low : null,
      show: (width, one) =>
        html`${signed(one.error_low * 100, 1)} to ${signed(one.error_high * 100, 1)}${
          mark(one) && html`<abbr title="${mark(one)}">*</abbr>`}`},
    {head: html`noise<br>±`, value: one => one.noise,
      show: share => `${(share * 100).toFixed(2)} %`},
    {head: 'largest cause', kind: 'word',
      value: one => one.failure || (one.explanation ? one.explanation.largest_cause.name : '')},
  ], report.cases, {
    kind: 'cases', sortable: true,
    row: one => html`class="${one.fails && 'fails'}" data-case="${one.index}"
      data-name="${one.name}"`,
  })}</section>`;
}

/** The parts of a difference: each bar begins where the one above it ended. */
function parts(report, explanation) {
  const [unit, scale] = unitOf(explanation.second_s), whole = explanation.second_s;
  const digits = digitsFor(whole * scale, 5);
  const sum = {name: 'sum', seconds: explanation.whole_s, first: explanation.first_s,
    second: explanation.second_s, sum: true};
  const ends = d3.cumsum(explanation.parts, part => part.seconds);
  const rows = explanation.parts.map((part, i) =>
    ({...part, from: i ? ends[i - 1] : 0, to: ends[i]}));
  const reach = [sum.seconds, ...rows.map(part => part.to)];
  const side = (name, key) => ({
    head: name, kind: 'spare', value: part => part.first || part.second ? part[key] : '',
    show: value => value === '' ? '' : time(value),
  });
  return table([
    {head: 'part', value: part => part.name},
    {head: ' ', cell: part => part.sum ? flow(reach, 0, part.seconds, true)
      : flow(reach, part.from, part.to, false)},
    {head: 'time', value: part => part.seconds,
      show: seconds => `${signed(seconds * scale, digits)} ${unit}`},
    {head: 'share', value: part => part.seconds / whole, show: percent},
    side(report.first_name, 'first'),
    side(report.second_name, 'second'),
    {head: ' ', kind: 'spare',
      value: part => part.sum ? 'makespan' : part.reason === 'kernel' ? 'a task' : ''},
  ], [...rows, sum], {kind: 'parts', row: part => part.sum && html`class="sum"`});
}

function makespanList({makespans_s: values}) {
  if (!values.length) return null;
  return values.slice(0, VALUES).map(time).join(', ') +
    (values.length > VALUES ? `, and ${values.length - VALUES} more` : '');
}

function caseDetails(report, word, one) {
  const {explanation} = one;
  const kind = one.fails ? 'bad' : report.fail_over !== null && 'good';
  return html`<details class="case" data-case="${one.index}"
    ${report.cases.length === 1 && html`open`}><summary><b>${one.name}</b>
    <span class="${kind}">${one.failure ? 'failed' : percent(one.error)}</span>
    ${one.recordings.length > 0 && html`<span class="soft">with timelines</span>`}</summary>
    <div class="body">${one.failure && html`<p class="bad">${one.failure}</p>`}${facts([
    [`${report.first_name}, runs`, makespanList(one.predicted)],
    [`${report.second_name}, runs`, makespanList(one.measured)],
    [`${word}, 95 % interval`,
      one.error_low !== null &&
        `${percent(one.error_low)} to ${percent(one.error_high)}${mark(one)}`],
    ['noise', one.noise !== null && `±${(one.noise * 100).toFixed(2)} %`],
    ['speed of the machine', one.speed !== null && `${(one.speed * 100).toFixed(1)} %`],
    ['ran on another architecture',
      explanation && `${(explanation.moved_share * 100).toFixed(1)} % of the time`],
  ])}${explanation && html`<h4>Where the ${word} comes from</h4>
    <p>Largest cause: ${explanation.largest_cause.text}</p>${parts(report, explanation)}`}${
    one.recordings.length > 0 && html`<h4>Timelines of the runs nearest to the medians</h4>${
      timelines(one.recordings, 'one time axis for both.')}`}</div></details>`;
}

function validationPage(report) {
  const word = report.first_name === 'predicted' ? 'error' : 'difference';
  const names = prepare(report);
  const runs = key => d3.sum(report.cases, one => one[key].makespans_s.length);
  document.title = report.title;
  return html`<header><h1>${report.title}</h1>
    <p class="lead">${report.first_name} against ${report.second_name}, by duet</p>${facts([
    ['Machine', report.machine],
    ['Calibration', report.calibration],
    ['Date', report.date],
    ['Cases', report.cases.length],
    ['Runs',
      `${runs('predicted')} ${report.first_name}, ${runs('measured')} ${report.second_name}`],
    ...(report.disturbed_rounds.length ? [['Disturbed by other processes',
      `rounds ${report.disturbed_rounds.join(', ')}${
        report.left_out_runs ? `; ${report.left_out_runs} of their runs left out` : ''}`]] : []),
  ])}<pre>${report.command}</pre></header>${cards(report, word)}${plots(report, word, names)}
    ${report.cases.length > 0 && html`${caseTable(report, word)}<section><h2>Cases</h2>${
    report.cases.map(one => caseDetails(report, word, one))}</section>`}`;
}

/** Opens the details of a case and goes there. */
function openCase(index) {
  const details = document.querySelector(`details.case[data-case="${index}"]`);
  if (!details) return;
  details.hidden = false;
  details.open = true;
  details.scrollIntoView({block: 'start'});
}

/** The filter hides rows, marks and details of cases that have not all its words. */
function filterCases() {
  const words = document.getElementById('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = Array.from(document.querySelectorAll('table.cases tbody tr'));
  let left = 0;
  for (const row of rows) {
    const content = `${row.dataset.name} ${row.textContent}`.toLowerCase();
    const has = words.every(word => content.includes(word));
    row.hidden = !has;
    left += has;
    document.querySelectorAll(`.mark[data-case="${row.dataset.case}"]`)
      .forEach(mark => mark.classList.toggle('off', !has));
    document.querySelector(`details.case[data-case="${row.dataset.case}"]`).hidden = !has;
  }
  document.getElementById('filtered').textContent =
    words.length ? `${left} of ${rows.length} cases` : '';
}

/** Brings the page of a comparison to life. */
function liveValidation(report) {
  const goToHash = () => {
    const [, index] = /^#case-(\d+)$/.exec(location.hash) || [];
    if (index) openCase(index);
  };
  document.addEventListener('click', event => {
    const one = event.target.closest('.mark, table.cases tbody tr');
    if (!one) return;
    event.preventDefault();
    showTip(null);
    openCase(one.dataset.case);
  });
  for (const [name, on] of [['pointerover', true], ['pointerout', false]])
    document.addEventListener(name, event => {
      const mark = event.target.closest && event.target.closest('.mark');
      if (mark) document.querySelectorAll(`.mark[data-case="${mark.dataset.case}"]`)
        .forEach(other => other.classList.toggle('on', on));
    });
  const filter = document.getElementById('filter');
  if (filter) filter.addEventListener('input', filterCases);
  document.querySelectorAll('details.case').forEach(details => {
    const {recordings} = report.cases[details.dataset.case];
    if (recordings.length)
      details.addEventListener('toggle', () => liveTimelines(details, recordings), {once: true});
  });
  addEventListener('hashchange', goToHash);
  goToHash();
}
