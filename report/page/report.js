// SPDX-License-Identifier: Apache-2.0
// The page of a report: what was run, the table of policies, timelines, each one's first run.

function verification(runs) {
  const checked = runs.map(run => run.verification).filter(Boolean);
  if (!checked.length) return null;
  const worst = d3.max(checked.flatMap(one => one.residuals), value => value ?? Infinity);
  const {formula, threshold} = checked[0];
  return `${checked.every(one => one.passed) ? 'passed' : 'FAILED'}: ${formula} = ` +
    `${isFinite(worst) ? +worst.toPrecision(3) : 'no number'} at most, to be below ${threshold}`;
}

/* Returns what a run's kernel times rest on, such as "98.2 % measured, 1.8 % interpolated". */
function restsOn({basis}) {
  return Object.entries(basis || {}).filter(([, share]) => share >= 0.0005)
    .map(([name, share]) => `${(100 * share).toFixed(1)} % ${name}`).join(', ');
}

function reportFacts(report) {
  const [first] = report.runs, {seed} = extra.first_runs[0];
  const count = first.makespan_s.values.length, several = count > 1 && first.world === 'simulated';
  const from = {platform: "the platform's mean times", measured: 'the mean times measured'};
  return facts([
    ['Platform', first.platform],
    ['Kernel times', restsOn(first) &&
      `${restsOn(first)}${report.runs.length > 1 ? ` (${first.policy})` : ''}`],
    ['Estimated, not measured', first.estimated && `times of ${first.estimated}`],
    ['Resources', `${extra.resources}${first.nodes ? ' a node' : ''}`],
    ...(first.n ? [['Size', `${first.n}, tile ${first.tile}`],
      ['Precision', first.precision === 's' ? 'single' : 'double']] : []),
    ['Tasks', first.tasks],
    ['Runs a policy',
      `${count}, seed${several ? 's from' : ''} ${seed}${
        first.makespan_s.interval ? ', a drawn machine each' : extra.noise ? ', with noise' : ''}`],
    ['Restriction', first.set_arch && 'set-arch'],
    ['Begins', first.hold && 'when everything is submitted'],
    ['Priorities', first.priorities !== 'workload' && first.priorities],
    ['Parameters', first.settings],
    ['Without', first.without],
    ['Warm-up runs', first.warmups],
    ['Cores', first.cores],
    ['Lost on purpose', first.lose],
    ['Interrupted',
      report.interrupted && `not all of ${first.reps_wanted} runs a policy are there`],
    ['Bounds from', from[first.bounds_from]],
    ['Verification', verification(report.runs)],
  ]);
}

function policyTable(runs) {
  const best = d3.min(runs, run => run.makespan_s.median);
  const digits = digitsFor(d3.max(runs, run => run.makespan_s.median), 5);
  const column = (name, unit, value, places, scale = 1) => ({
    head: html`${name}<br>${unit}`, value,
    show: number => (number * scale).toFixed(places),
  });
  const architectures = Object.keys(runs[0].idle_share_by_arch);
  return table([
    {head: 'policy', value: run => run.policy},
    column('makespan', 's', run => run.makespan_s.median, digits),
    {
      head: runs[0].makespan_s.interval ? html`90 % of later<br>${
        runs[0].makespan_s.interval === 'run' ? 'runs' : 'medians'}, s`
        : html`95 % interval<br>of the mean, s`,
      value: run => intervalOf(run)[0] === null ? null : intervalOf(run)[1] - intervalOf(run)[0],
      show: (width, run) => intervalOf(run).map(end => end.toFixed(digits)).join(' – '),
    },
    column('rate', 'GFlop/s', run => run.gflops, 1),
    column('host→GPU', 'GB', run => run.bytes.host_to_device, 3, 1e-9),
    column('GPU→host', 'GB', run => run.bytes.device_to_host, 3, 1e-9),
    column('GPU→GPU', 'GB', run => run.bytes.device_to_device, 3, 1e-9),
    column('cache hits', '%', run => run.cache_hit_ratio, 1, 100),
    ...runs[0].nodes ? [column('messages', 'number', run => run.nodes.messages, 0),
      column('messages', 'GB', run => run.nodes.bytes, 3, 1e-9)] : [],
    ...architectures.map(name =>
      column('idle, %', name, run => run.idle_share_by_arch[name], 1, 100)),
    column('lower', 'bound, %', run => run.bounds_s.best / run.makespan_s.median || null, 1, 100),
  ], runs, {
    sortable: true,
    row: run => runs.length > 1 && run.makespan_s.median === best && html`class="best"`,
  });
}

/** Tasks and mean time of each kernel on each architecture. */
function kernelTable(recording) {
  const kernels = d3.range(recording.kernels.length);
  const sum = (field, kernel, architecture) => d3.sum(recording.workers,
    worker => worker.architecture === architecture ? worker[field][kernel] : 0);
  const used = kernels.filter(kernel => recording.workers.some(worker => worker.tasks[kernel]));
  const architectures = Array.from(new Set(recording.workers.map(worker => worker.architecture)));
  return table([
    {head: 'kernel', value: kernel => recording.kernels[kernel],
      show: name => html`${swatch(kernelColour(name))}${name}`},
    ...architectures.flatMap(name => [
      {head: html`tasks on<br>${name}`, value: kernel => sum('tasks', kernel, name)},
      {
        head: html`mean<br>ms`,
        value: kernel => sum('seconds', kernel, name) / sum('tasks', kernel, name) || null,
        show: seconds => (seconds * 1e3).toFixed(3),
      },
    ]),
  ], used);
}

function bytesTable(run) {
  const directions =
    [['host → GPU', 'to_device'], ['GPU → host', 'to_host'], ['GPU → GPU', 'between']];
  const most = d3.max(extra.first_runs.flatMap(one =>
    directions.map(([, key]) => one[`bytes_${key}`])));
  return table([
    {head: 'direction', value: ([name]) => name},
    {head: 'GB', value: ([, key]) => run[`bytes_${key}`], show: value => (value / 1e9).toFixed(3)},
    {head: 'copies', value: ([, key]) => run[`copies_${key}`]},
    {cell: ([, key]) => share(most && run[`bytes_${key}`] / most)},
  ], directions);
}

const loads = recording => chart('Share of the makespan each worker was busy',
  (svg, width) => workerBars(svg, width, recording));

function firstRun(recording) {
  const run = extra.first_runs[recording.of];
  return html`<section><h3>${recording.name}</h3><div class="columns"><div>
    <h4>Kernels</h4>${kernelTable(recording)}
    <h4>Bytes moved</h4>${bytesTable(run)}
    <p class="soft">${plural(run.evictions, 'eviction')}, ${run.write_backs} of them with a
    write-back; ${plural(run.steals, 'steal')} in ${plural(run.steal_attempts, 'attempt')}</p></div>
    <div><h4>Workers: share of the makespan spent in kernels</h4>${loads(recording)}
    </div></div></section>`;
}

function reportPage(report) {
  const {runs} = report, title = `${runs[0].workload} on ${extra.place}`;
  document.title = title;
  extra.recordings.forEach(one => {
    one.caption = `${one.makespan_s.toFixed(4)} s, seed ${extra.first_runs[one.of].seed}`;
  });
  return html`<header><h1>${title}</h1>
    <p class="lead">${runs[0].world === 'simulated' ? 'simulated' : 'run'} with duet</p>
    ${reportFacts(report)}<pre>${report.command}</pre></header>
    <section><h2>Policies</h2>${policyTable(runs)}<h4>Makespan and lower bounds</h4>${
    chart('Makespan of each policy beside the lower bounds',
      (svg, width) => makespans(svg, width, runs))}${
    extra.first_runs.map(one => one.choice && html`<p class="soft">${one.choice}</p>`)}</section>
    ${extra.recordings.length > 0 && html`<section id="timelines"><h2>Timelines</h2>${
    timelines(extra.recordings, `one time axis. Below a GPU's kernels: copies in, out.${
      report.runs[0].nodes ? " Below a node's CPUs: messages in, out." : ''}${
      extra.recordings.some(one => one.plan) ? ' Below what a worker ran: its plan.' : ''}`)
  }</section>`}
    ${extra.recordings.map(firstRun)}`;
}
