// SPDX-License-Identifier: Apache-2.0
// Charts, drawn by d3 in the width there is: makespans, workers, first against second, errors.

/** The band that is drawn around equality: what the project aims at. */
const BAND = 0.05;

/** Outlines of marks around 0, 0: one for each policy, as colours are for workloads. */
const FORMS = [
  'M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z', // circle
  'M-4-4H4V4H-4Z', // square
  'M0-5.2L5 3.8H-5Z', // triangle
  'M0-5.8L5 0L0 5.8L-5 0Z', // diamond
  'M0 5.2L5-3.8H-5Z', // triangle, turned over
  'M-1.7-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7Z', // plus
  'M0-2.4L2.6-5L5-2.6L2.4 0L5 2.6L2.6 5L0 2.4L-2.6 5L-5 2.6L-2.4 0L-5-2.6L-2.6-5Z', // cross
  'M-5 0L-2.5-4.4H2.5L5 0L2.5 4.4H-2.5Z', // hexagon
];

/** Place of a chart, and the functions that draw those that have been announced. */
const drawings = [];
function chart(label, draw) {
  drawings.push({label, draw});
  return html`<div data-chart="${drawings.length - 1}"></div>`;
}

/** Draws the charts announced, each again when its width changes. */
function drawCharts() {
  document.querySelectorAll('[data-chart]').forEach(box => {
    const {label, draw} = drawings[box.dataset.chart];
    let drawn = 0;
    box.redraw = () => {
      if (!drawn) return;
      box.replaceChildren();
      const svg = d3.select(box).append('svg').attr('role', 'img').attr('aria-label', label);
      const height = draw(svg, drawn);
      svg.attr('width', drawn).attr('height', height).attr('viewBox', [0, 0, drawn, height]);
    };
    new ResizeObserver(() => {
      const width = Math.max(box.clientWidth, 280);
      if (width === drawn || !box.clientWidth) return;
      drawn = width;
      box.redraw();
    }).observe(box);
  });
}

/** Adds an element with these attributes (values, or functions of the data) to a selection. */
function add(to, name, attributes) {
  const made = to.append(name);
  Object.entries(attributes).forEach(([key, value]) => made.attr(key, value));
  return made;
}

function text(to, x, y, content, attributes = {}) {
  return add(to, 'text', {x, y, ...attributes}).text(content);
}

/** Returns the ends of a makespan's interval: that of later runs if asked for, else of the mean. */
function intervalOf({makespan_s: all}) {
  return all.interval ? [all.low, all.high] : [all.ci95_low, all.ci95_high];
}

/** Makespans as bars, the lower bounds as lines across them; runs are those of the report. */
function makespans(svg, width, runs) {
  const narrow = width < 700, top = 66, row = 34, bar = 20;
  const left = narrow ? 90 : 170, right = width - (narrow ? 84 : 220);
  const height = top + runs.length * row;
  const bound = name => d3.max(runs, run => run.bounds_s[name]);
  const most = d3.max(runs, run => Math.max(run.makespan_s.median, intervalOf(run)[1]));
  const x = d3.scaleLinear().range([left, right])
    .domain([0, Math.max(most, bound('best')) || 1]);
  const rows = svg.selectAll('g').data(runs).enter().append('g')
    .attr('transform', (run, i) => `translate(0 ${top + i * row + 4})`);
  text(rows, left - 12, bar / 2 + 4.5, run => run.policy, {'text-anchor': 'end'});
  add(rows, 'rect', {class: 'room', rx: 2, x: left, width: right - left, height: bar});
  add(rows, 'rect', {class: 'bar', rx: 2, x: left, height: bar,
    width: run => Math.max(x(run.makespan_s.median) - left, 1)});
  add(rows.filter(run => intervalOf(run)[0] !== null), 'path', {class: 'whisker', d: run => {
    const [low, high] = intervalOf(run);
    return `M${x(low)} ${bar / 2 - 5}v10m0 -5H${x(high)}m0 -5v10`;
  }});
  const figures = text(rows, right + 14, bar / 2 + 4.5, run =>
    `${run.makespan_s.median.toFixed(run.makespan_s.median < 1 ? 5 : 3)} s`);
  if (!narrow)
    add(figures.filter(run => run.gflops !== null), 'tspan', {class: 'soft', dx: 10})
      .text(run => `${run.gflops.toFixed(1)} GFlop/s`);
  const better = ['links', 'mixed'].find(name => bound(name) === bound('best'));
  [['path', 'critical path', bound('critical_path')], ['area', 'area bound', bound('area')],
   ['best', `${better} bound`, better ? bound('best') : 0]]
    .filter(([,, seconds], i, all) => // it is known, and more than the others
      seconds > 0 && (i < 2 || seconds > Math.max(all[0][2], all[1][2])))
    .forEach(([kind, name, seconds], line) => {
      const at = x(seconds), turn = at + 170 > width;
      add(svg, 'line', {class: kind, x1: at, x2: at, y1: 6 + 20 * line, y2: height});
      text(svg, at + (turn ? -6 : 6), 16 + 20 * line, `${name} ${seconds.toFixed(3)} s`,
        {class: kind, 'text-anchor': turn ? 'end' : 'start'});
    });
  return height;
}

/* Workers, or if they are many, means of neighbours of one architecture. */
function workerGroups({workers}) {
  const size = Math.ceil(workers.length / 64);
  return d3.groups(workers, worker => worker.architecture).flatMap(([, all]) =>
    d3.range(0, all.length, size).map(first => {
      const some = all.slice(first, first + size), {name, tasks} = some[0];
      const mean = key => tasks.map((value, kernel) => d3.mean(some, one => one[key][kernel]));
      return some.length === 1 ? some[0]
        : {name: `${name}+`, tasks: mean('tasks'), seconds: mean('seconds')};
    }));
}

/* Bars of each worker of a recording: shares of its kernels in the makespan. */
function workerBars(svg, width, recording) {
  const workers = workerGroups(recording);
  const left = 64, right = width - 60, row = 21, bar = 13;
  const x = d3.scaleLinear().domain([0, recording.makespan_s || 1]).range([0, right - left]);
  const rows = svg.selectAll('g').data(workers).enter().append('g')
    .attr('transform', (worker, i) => `translate(${left} ${i * row + 2})`);
  text(rows, -10, bar - 2, worker => worker.name, {'text-anchor': 'end'});
  add(rows, 'rect', {class: 'room', rx: 2, width: right - left, height: bar});
  rows.each(function (worker) {
    let at = 0;
    worker.seconds.forEach((seconds, kernel) => {
      if (!worker.tasks[kernel]) return;
      const name = recording.kernels[kernel];
      add(d3.select(this), 'rect', {x: x(at), width: x(seconds), height: bar,
        fill: kernelColour(name),
        'data-tip': `${name}: ${plural(worker.tasks[kernel], 'task')}, ${time(seconds)}`});
      at += seconds;
    });
  });
  text(rows, right - left + 56, bar - 2, worker =>
    `${(d3.sum(worker.seconds) / (recording.makespan_s || 1) * 100).toFixed(1)} %`,
  {class: 'soft', 'text-anchor': 'end'});
  return workers.length * row;
}

/* Marks of cases, at x and y of each, with links to the case's details. */
function marks(svg, cases, x, y) {
  const links = svg.append('g').selectAll('a').data(cases).enter().append('a')
    .attr('href', one => `#case-${one.index}`);
  add(links, 'path', {class: 'mark', d: one => one.form, fill: one => one.colour,
    transform: one => `translate(${x(one)} ${y(one)})`, 'data-case': one => one.index,
    'data-tip': one => one.tip, 'aria-label': one => one.tip});
}

/** Ticks of a logarithmic axis: powers of ten, with 2 and 5 times them where there is room. */
function logTicks([low, high]) {
  const decades = Math.log10(high / low);
  if (decades < 0.7) return d3.ticks(low, high, 4);
  const parts = decades < 2.2 ? [1, 2, 5] : [1];
  return d3.scaleLog().domain([low, high]).ticks(20)
    .filter(tick => parts.includes(Math.round(tick / 10 ** Math.floor(Math.log10(tick) + 1e-9))));
}

/** First against second, both axes logarithmic, with the line of equality and the band. */
function scatter(svg, width, cases, names, failOver) {
  const left = 66, top = 12, side = Math.min(width, 560) - left - 14, bottom = top + side;
  const values = cases.flatMap(one => [one.predicted.median_s, one.measured.median_s,
    ...one.low_s === null ? [] : [one.low_s, one.high_s]]);
  const [least, most] = d3.extent(values), room = Math.max((most / least) ** 0.06, 1.1);
  const domain = [least / room, most * room], [low, high] = domain;
  const x = d3.scaleLog().domain(domain).range([left, left + side]).clamp(true);
  const y = d3.scaleLog().domain(domain).range([bottom, top]).clamp(true);
  const ticks = logTicks(domain);
  const label = seconds => {
    const [unit, scale] = unitOf(seconds * (1 + 1e-9));
    return `${+(seconds * scale).toPrecision(4)} ${unit}`;
  };
  const axis = made => made.tickValues(ticks).tickFormat(label).tickSize(-side).tickPadding(7);
  svg.append('g').attr('transform', `translate(0 ${bottom})`).call(axis(d3.axisBottom(x)));
  svg.append('g').attr('transform', `translate(${left} 0)`).call(axis(d3.axisLeft(y)));
  const line = (kind, factor) => { // where first is `factor` times second
    const from = Math.max(low, low / factor), to = Math.min(high, high / factor);
    add(svg, 'line',
      {class: kind, x1: x(from), y1: y(from * factor), x2: x(to), y2: y(to * factor)});
  };
  const corners = [[low, low * (1 + BAND)], [high / (1 + BAND), high], [high, high],
    [high, high * (1 - BAND)], [low / (1 - BAND), low], [low, low]];
  add(svg, 'path',
    {class: 'band', d: `M${corners.map(([at, to]) => `${x(at)} ${y(to)}`).join('L')}Z`});
  line('equal', 1);
  if (failOver) line('limit', 1 + failOver);
  if (failOver && failOver < 1) line('limit', 1 - failOver);
  text(svg, left + side / 2, bottom + 37, names[1], {class: 'soft', 'text-anchor': 'middle'});
  text(svg, 0, 0, names[0], {class: 'soft', 'text-anchor': 'middle',
    transform: `translate(13 ${top + side / 2}) rotate(-90)`});
  svg.append('g').selectAll('path').data(cases.filter(one => one.low_s !== null)).enter()
    .append('path').attr('class', 'interval')
    .attr('d', one => `M${x(one.measured.median_s)} ${y(one.low_s)}V${y(one.high_s)}`);
  marks(svg, cases, one => x(one.measured.median_s), one => y(one.predicted.median_s));
  return bottom + 44;
}

/** Gives marks that would hide each other other lanes: 0, 1 above, 1 below, 2 above, ... */
function spread(cases, x) {
  const SIZE = 9, LANES = 7, ends = new Array(LANES).fill(-Infinity), offsets = new Map();
  [...cases].sort((a, b) => a.error - b.error).forEach((one, i) => {
    const at = x(one.error), free = ends.findIndex(end => at - end >= SIZE);
    const lane = free >= 0 ? free : i % LANES;
    ends[lane] = at;
    offsets.set(one, Math.ceil(lane / 2) * (lane % 2 ? -1 : 1) * (SIZE - 2));
  });
  return offsets;
}

/** The errors along a line for each workload. */
function strip(svg, width, cases) {
  const side = 14, top = 12, row = 66, workloads = d3.groups(cases, one => one.workload);
  const bottom = top + workloads.length * row, [least, most] = d3.extent(cases, one => one.error);
  const space = (most - least) * 0.05;
  const x = d3.scaleLinear().range([side, width - side])
    .domain([Math.min(-BAND * 1.2, least - space), Math.max(BAND * 1.2, most + space)]);
  add(svg, 'rect',
    {class: 'band', x: x(-BAND), y: top, width: x(BAND) - x(-BAND), height: bottom - top});
  const label = tick => tick ? `${tick > 0 ? '+' : ''}${+(tick * 100).toPrecision(4)} %` : '0';
  const axis = svg.append('g').attr('transform', `translate(0 ${bottom})`)
    .call(d3.axisBottom(x).ticks(width / 80).tickFormat(label)
      .tickSize(top - bottom).tickPadding(6));
  axis.selectAll('.tick').filter(tick => !tick).select('line').attr('class', 'equal');
  workloads.forEach(([workload, of], i) => {
    const y = top + i * row, offsets = spread(of, x);
    if (i) add(add(svg, 'g', {class: 'tick'}), 'line', {x2: width, y1: y, y2: y});
    text(svg, 2, y + 14, workload, {class: 'soft'});
    marks(svg, of, one => x(one.error), one => y + row / 2 + 4 + offsets.get(one));
  });
  return bottom + 26;
}

/** A cell with a bar from one value to another, and a line at zero; `reach` holds all of them. */
function flow(reach, from, to, whole) {
  const x = d3.scaleLinear().domain(d3.extent([0, ...reach])).range([0, 100]);
  const at = Math.min(x(from), x(to)), kind = whole ? 'whole' : to < from ? 'less' : 'more';
  return html`<td class="flow"><div><b style="left:${x(0)}%"></b><i class="${kind}"
    style="left:${at}%;width:${Math.abs(x(to) - x(from))}%"></i></div></td>`;
}
