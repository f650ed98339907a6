// SPDX-License-Identifier: Apache-2.0
// The page of an explanation: the cause, changes that help, the critical path and the workers'
// time.

/** States that are one column of the workers' table. */
const COLUMNS = [
  ['runs', ['kernel']],
  ['waits for<br>the host\'s data', ['to_device_queue', 'to_device']],
  ['for data on its<br>way to the host', ['to_host_queue', 'to_host']],
  ['for other<br>GPUs\' data', ['between_queue', 'between']],
  ['for other<br>nodes\' data', ['message_queue', 'message']],
  ['for<br>room', ['room']],
  ['over-<br>head', ['overhead']],
  ['ready tasks<br>elsewhere', ['elsewhere']],
  ['no ready<br>task', ['before', 'within', 'after']],
  ['GPU<br>lost', ['lost']],
];

function changesTable({platform, reference_s: reference, guess, changes}) {
  const shown = changes.filter(one => one.error === null);
  if (guess)
    return html`<p class="hint">Nothing is advised: simulated without a change, the run rests on a
      guess, the time of ${guess}.</p>`;
  if (!shown.length) return null;
  return html`<section><h2>What would help</h2>${table([
    {head: 'change', value: one => one.what},
    {head: html`makespan<br>s`, value: one => one.makespan_s, show: s => (+s.toPrecision(5))},
    {head: html`shorter by<br>%`, value: one => one.gain, show: gain => signed(gain * 100, 1)},
    {cell: one => share(one.gain)},
  ], shown, {kind: 'parts'})}<p class="hint">Simulated on ${platform}, where the run without a
    change takes ${time(reference)}.</p></section>`;
}

function pathTable({parts}, makespan) {
  return table([
    {head: 'critical path', value: part => part.what},
    {head: 'times', value: part => part.count},
    {head: 'time', value: part => part.seconds, show: time},
    {head: '%', value: part => part.seconds / makespan, show: part => (part * 100).toFixed(1)},
    {cell: part => share(part.seconds / makespan)},
  ], parts, {kind: 'parts'});
}

/* Parts of the time of each kind of workers, in percent. */
function statesTable(workers, makespan) {
  const kinds = d3.groups(workers, worker => worker.architecture);
  const sum = ([, all], states) =>
    d3.sum(all, worker => d3.sum(states, state => worker.seconds[state]));
  const shown = COLUMNS.filter(([, states]) => kinds.some(kind => sum(kind, states)));
  return table([
    {head: html`workers,<br>% of the time`, value: ([name, all]) => `${all.length} × ${name}`},
    ...shown.map(([head, states]) => ({head: new Markup(head),
      value: kind => sum(kind, states) / kind[1].length / makespan || null,
      show: part => (part * 100).toFixed(1)})),
  ], kinds);
}

function memoriesTable(memories) {
  const gigabytes = (head, key) => ({head: html`${head}<br>GB`, value: one => one[key] || null,
    show: value => (value / 1e9).toFixed(3)});
  return table([{head: 'memory', value: one => one.name}, gigabytes('in', 'in_bytes'),
    gigabytes('of these again', 'again_bytes'), gigabytes('out', 'out_bytes'),
    gigabytes('most in use', 'peak_bytes'), gigabytes('of', 'capacity_bytes')], memories);
}

function whyPage(why) {
  const [recording] = extra.recordings, makespan = why.makespan_s;
  const title = `Why ${why.workload || 'a run'} on ${why.platform} takes ${time(makespan)}`;
  document.title = title;
  recording.caption = time(makespan);
  return html`<header><h1>${title}</h1><p class="lead">${why.sentence}</p>${facts([
    ['Trace', why.trace],
    ['World', why.world],
    ['Policy', why.policy],
    ['Size', why.n && `${why.n}, tile ${why.tile}`],
    ['Estimated, not measured', why.estimated && `times of ${why.estimated}`],
  ])}<pre>${why.command}</pre></header>
    ${why.what_if && changesTable(why.what_if)}
    ${why.interval && html`<p class="hint">${why.interval.sentence}</p>`}
    <section><h2>Where the time goes</h2>${pathTable(why.path, makespan)}
    <h4>Workers</h4>${statesTable(why.workers, makespan)}
    <h4>Memories</h4>${memoriesTable(why.memories)}</section>
    <section id="timelines"><h2>Timeline</h2>${
  timelines([recording], "below a GPU's kernels: copies in, out.")}</section>
    <section><div class="columns"><div><h4>Kernels</h4>${kernelTable(recording)}</div><div>
    <h4>Workers: share of the makespan spent in kernels</h4>${loads(recording)}</div></div>
    </section>`;
}
