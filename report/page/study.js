// SPDX-License-Identifier: Apache-2.0
// The page of a study: best settings, slices that the reader chooses, effects, rankings.

let study = null; // the data, with what the reader has chosen in it

const MOST_CASES = 1000; // lines of the table of best settings
const SIZES = {KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40};
const MEASURES = [
  {name: 'makespan', unit: 's', show: time, less: true, of: cell => study.makespan_s[cell]},
  {name: 'speed', unit: 'GFlop/s', show: value => value.toFixed(digitsFor(value, 4)),
    of: cell => study.gflops[cell]},
  {name: 'share of the bound', unit: '%', scale: 100,
    show: value => `${(value * 100).toFixed(1)} %`,
    of: cell => study.bound_s[cell] && study.bound_s[cell] / study.makespan_s[cell]},
];

// Data ---------------------------------------------------------------------------------------

/* Levels as numbers, "1.5GiB" in bytes; null if one is none. */
function numbersOf(levels) {
  const parts = levels.map(level => /^(\d+(?:\.\d+)?)\s*([A-Za-z/%]*)$/.exec(level));
  if (!parts.every(Boolean)) return null;
  const kinds = new Set(parts.map(([, , unit]) => SIZES[unit] ? 'B' : unit));
  return kinds.size === 1 ? parts.map(([, digits, unit]) => digits * (SIZES[unit] || 1)) : null;
}

/** Puts levels in their natural order, and finds those with which the page begins. */
function prepareStudy(report) {
  study = report;
  study.single = {name: '', levels: [''], cells: new Int32Array(study.makespan_s.length)};
  study.factors.forEach((factor, index) => {
    const numbers = numbersOf(factor.levels);
    const order = d3.range(factor.levels.length).sort((a, b) => numbers ? numbers[a] - numbers[b]
      : factor.levels[a].localeCompare(factor.levels[b], 'en', {numeric: true}));
    const sorted = list => order.map(i => list[i]), place = new Int32Array(order.length);
    order.forEach((level, i) => { place[level] = i; });
    factor.index = index;
    factor.levels = sorted(factor.levels);
    factor.numbers = numbers && sorted(numbers);
    factor.cells = Int32Array.from(factor.cells, level => place[level]);
    factor.ranks = factor.ranked && sorted(factor.ranks);
    factor.ratios = factor.ranked && sorted(factor.ratios);
    factor.against = factor.ranked && sorted(factor.against);
  });
  study.compared = study.factors.filter(one => one.ranked);
  study.cases.sort((a, b) => {
    const steps = study.factors.map(one => one.chosen ? 0 : one.cells[a.cell] - one.cells[b.cell]);
    return steps.find(Boolean) || 0;
  });
}

/* The best cell (-1: none) for each combination of these factors' levels; other factors are
 * fixed. */
function slice(...axes) {
  const best = new Int32Array(axes.reduce((size, axis) => size * axis.levels.length, 1)).fill(-1);
  const fixed = study.factors.filter(one => !axes.includes(one) && one.fixed >= 0);
  const {makespan_s: makespans} = study;
  for (let cell = 0; cell < makespans.length; cell++) {
    if (fixed.some(one => one.cells[cell] !== one.fixed)) continue;
    let at = 0;
    for (const axis of axes) at = at * axis.levels.length + axis.cells[cell];
    if (best[at] < 0 || makespans[cell] < makespans[best[at]]) best[at] = cell;
  }
  return best;
}

/* Settings of a cell, and all its measured values. */
function tellCell(cell, ...more) {
  const settings = study.factors.map(one => `${one.name} ${one.levels[one.cells[cell]]}`);
  const measures = MEASURES.filter(one => one.of(cell)).map(one =>
    `${one.name} ${one.show(one.of(cell))}${one.unit === 'GFlop/s' ? ` ${one.unit}` : ''}`);
  return [settings.join(', '), measures.join(', '), ...more].join('\n');
}

function colourOf(level) {
  return extra.colours[level % extra.colours.length];
}

function formOf(level) {
  return FORMS[(level + Math.floor(level / extra.colours.length)) % FORMS.length];
}

// Charts -------------------------------------------------------------------------------------

/* Shown if there is nothing to draw. */
function nothing(svg) {
  text(svg, 0, 20, 'No run has these settings.', {class: 'soft'});
  return 30;
}

/** The axis of a factor: by its numbers, whose logarithms are taken where each is a multiple. */
function axisOf(factor, from, to) {
  const {numbers, levels} = factor, [first, second] = numbers || [];
  const ratio = second / first, geometric = numbers && levels.length > 2 && first > 0 &&
    numbers.every((value, i) => !i || Math.abs(value / numbers[i - 1] / ratio - 1) < 0.01);
  const scale = !numbers ? d3.scalePoint().domain(d3.range(levels.length)).padding(0.3)
    : (geometric ? d3.scaleLog() : d3.scaleLinear()).domain(d3.extent(numbers));
  scale.range([from, to]);
  return level => scale(numbers ? numbers[level] : level);
}

/** Names of levels under an axis, those for which there is room. */
function levelNames(svg, factor, at, y, top) {
  const names = svg.append('g').attr('class', 'tick');
  let end = -Infinity;
  factor.levels.forEach((name, level) => {
    const half = name.length * 3.6 + 5;
    if (top !== undefined) add(names, 'line', {x1: at(level), x2: at(level), y1: top, y2: y});
    if (at(level) - half < end) return;
    end = at(level) + half;
    text(names, at(level), y + 18, name, {'text-anchor': 'middle'});
  });
}

/* A scale of measured values, with its axis: from 0 on, or logarithmic over a wide range. */
function valueAxis(svg, values, {unit, scale = 1, less}, [left, right, top, bottom]) {
  const [low, high] = d3.extent(values), wide = less && high > 8 * low;
  const y = (wide ? d3.scaleLog().domain([low / 1.1, high * 1.1])
    : d3.scaleLinear().domain([0, high * 1.04])).range([bottom, top]);
  const ticks = wide ? logTicks(y.domain()) : y.ticks(6);
  svg.append('g').attr('transform', `translate(${left} 0)`).call(d3.axisLeft(y).tickValues(ticks)
    .tickFormat(tick => `${+(tick * scale).toPrecision(4)}`).tickSize(left - right).tickPadding(7));
  text(svg, 0, 11, unit, {class: 'soft'});
  return y;
}

/* A mark that the keyboard reaches, with a tip. */
function point(to, x, y, level, tip) {
  return add(to, 'path', {class: 'mark', d: formOf(level), fill: colourOf(level), tabindex: 0,
    transform: `translate(${x} ${y})`, 'data-tip': tip, 'aria-label': tip});
}

/** Names of lines at their ends, apart from each other. */
function lineNames(svg, lines, x, [top, bottom]) {
  const room = Math.min(15, (bottom - top) / lines.length);
  lines.sort((a, b) => a.y - b.y);
  lines.forEach((one, i) => { one.y = Math.max(one.y, i ? lines[i - 1].y + room : top); });
  d3.reverse(lines).forEach((one, i, all) => {
    one.y = Math.min(one.y, i ? all[i - 1].y - room : bottom);
    add(svg, 'path', {d: formOf(one.level), fill: colourOf(one.level),
      transform: `translate(${x} ${one.y})`});
    text(svg, x + 9, one.y + 4, one.name, {class: 'small'});
  });
}

/**
 * Lines over a factor, one for each level of another; `of` gives the value of a place in them. With
 * a front, steps along its cells and pale marks of others in place of these lines.
 */
function lineChart(svg, width, {x, by, measure, best, of, ideal, front}) {
  const count = by.levels.length, known = d3.range(best.length).filter(i => best[i] >= 0 && of(i));
  if (!known.length) return nothing(svg);
  const names = d3.max(by.levels, name => name.length) * 7 + (by.name ? 26 : 8);
  const left = 52, right = width - Math.min(names, width / 2.6), top = 22, bottom = 300;
  const at = axisOf(x, left + 8, right - 10), place = i => at(Math.floor(i / count));
  const y = valueAxis(svg, known.map(of).concat(ideal ? x.numbers.map(ideal) : []), measure,
    [left, right, top, bottom]);
  levelNames(svg, x, at, bottom, top);
  text(svg, (left + right) / 2, bottom + 36, x.name, {class: 'soft', 'text-anchor': 'middle'});
  const join = (points, more) => add(svg, 'path',
    {d: `M${points.map(spot => spot.join(' ')).join('L')}`, ...more});
  if (ideal) join(x.numbers.map((value, i) => [at(i), y(ideal(value))])
    .filter(([, height]) => height >= top - 1), {class: 'ideal'});
  if (front) join(front.flatMap((cell, i) => {
    const spot = [at(x.cells[cell]), y(study.makespan_s[cell])];
    return i ? [[spot[0], y(study.makespan_s[front[i - 1]])], spot] : [spot];
  }), {class: 'front'});
  const ends = by.levels.map((name, level) => {
    const own = known.filter(i => i % count === level);
    if (own.length && x.numbers && !front)
      join(own.map(i => [place(i), y(of(i))]), {class: 'line', stroke: colourOf(level)});
    own.forEach(i => {
      const reach = measure.whiskers && study.reach_s[best[i]];
      if (reach) add(svg, 'path', {class: 'whisker', d: `M${place(i)} ${
        y(Math.max(of(i) - reach, y.domain()[0]))}V${y(of(i) + reach)}`});
      point(svg, place(i), y(of(i)), level,
        tellCell(best[i], ...(ideal ? [`${measure.unit} ${of(i).toFixed(2)}`] : [])))
        .classed('beaten', front && !front.includes(best[i]));
    });
    return own.length > 0 && {name, level, y: y(of(own[own.length - 1]))};
  });
  if (by.name) lineNames(svg, ends.filter(Boolean), right + 12, [top, bottom]);
  return bottom + 42;
}

function drawLines(svg, width) {
  const {x, by} = study, measure = MEASURES[study.measure], best = slice(x, by);
  return lineChart(svg, width, {x, by, best, of: i => measure.of(best[i]),
    measure: {...measure, whiskers: measure.less, unit: `${measure.name}, ${measure.unit}`}});
}

/** The fewest nodes or GPUs (0 is none), which speed-up and efficiency are relative to. */
function baseOf(factor) {
  return factor.numbers.findIndex(value => value > 0);
}

function drawScaling(svg, width, efficiency) {
  const {scaled, by} = study, base = baseOf(scaled), from = scaled.numbers[base];
  const other = by === scaled ? study.single : by, best = slice(scaled, other);
  const count = other.levels.length, number = i => scaled.numbers[Math.floor(i / count)];
  const of = i => {
    const first = best[base * count + i % count];
    if (first < 0 || !number(i)) return null;
    const speedup = study.makespan_s[first] / study.makespan_s[best[i]];
    return efficiency ? speedup * from / number(i) : speedup;
  };
  return lineChart(svg, width, {x: scaled, by: other, best, of,
    measure: {unit: efficiency ? 'efficiency' : 'speed-up'},
    ideal: value => efficiency ? 1 : value / from});
}

/** Best values over two factors as colours, or which level of a third is the best. */
function drawMap(svg, width) {
  const {columns, rows, winners} = study, measure = MEASURES[study.measure];
  const best = slice(columns, rows), across = columns.levels.length, down = rows.levels.length;
  const values = Array.from(best, cell => cell < 0 ? null : measure.of(cell));
  const [low, high] = d3.extent(values.filter(value => value));
  if (low === undefined) return nothing(svg);
  const left = Math.min(d3.max([rows.name, ...rows.levels], name => name.length) * 7 + 16, 150);
  const size = (width - left) / across, height = Math.max(Math.min(30, 700 / down), 12), top = 40;
  const goodness = value => {
    const part = high > low ? Math.log(value / low) / Math.log(high / low) : 1;
    return measure.less && high > low ? 1 - part : part;
  };
  const mixed = part => `color-mix(in srgb, var(--accent) ${Math.round(part * 100)}%, var(--fill))`;
  if (!winners) {
    const [worst, good] = measure.less ? [high, low] : [low, high];
    d3.range(11).forEach(i => add(svg, 'rect', {x: left + 65 + i * 9, y: 2, width: 9, height: 12,
      style: `fill: ${mixed(i / 10)}`}));
    text(svg, left + 60, 13, measure.show(worst), {class: 'soft small', 'text-anchor': 'end'});
    text(svg, left + 170, 13, measure.show(good), {class: 'soft small'});
  }
  text(svg, 0, top - 8, rows.name, {class: 'soft'});
  rows.levels.forEach((name, row) => {
    const y = top + (down - 1 - row) * height;
    text(svg, left - 8, y + height / 2 + 4.5, name, {class: 'small', 'text-anchor': 'end'});
    columns.levels.forEach((other, column) => {
      const cell = best[column * down + row], value = values[column * down + row];
      if (!value) return;
      const part = goodness(value), winner = winners && winners.cells[cell];
      const tip = tellCell(cell), place = {x: left + column * size, y};
      add(svg, 'rect', {class: 'cell', ...place, width: size - 1, height: height - 1,
        tabindex: 0, 'data-tip': tip, 'aria-label': tip,
        style: `fill: ${winners ? colourOf(winner) : mixed(part)}`});
      const words = winners ? winners.levels[winner] : measure.show(value).replace(/ (s|%)$/, '');
      if (words.length * 7 + 6 < size && height > 15)
        text(svg, place.x + size / 2, y + height / 2 + 4, words,
          {class: winners || part > 0.55 ? 'over small' : 'small', 'text-anchor': 'middle'});
    });
  });
  levelNames(svg, columns, level => left + (level + 0.5) * size, top + down * height);
  text(svg, left + (width - left) / 2, top + down * height + 36, columns.name,
    {class: 'soft', 'text-anchor': 'middle'});
  return top + down * height + 42;
}

/** Settings that no other beats in both what they cost and their makespan, by cost. */
function frontOf(cost) {
  let least = Infinity;
  return Array.from(slice(cost)).filter(cell => {
    const better = cell >= 0 && study.makespan_s[cell] < least;
    if (better) least = study.makespan_s[cell];
    return better;
  });
}

function drawFront(svg, width) {
  const x = study.cost, by = study.by === x ? study.single : study.by, best = slice(x, by);
  return lineChart(svg, width, {x, by, best, front: frontOf(x), of: i => study.makespan_s[best[i]],
    measure: {...MEASURES[0], unit: 'makespan, s'}});
}

/** Mean ranks along a line; those that are joined by a bar are not told apart (Demsar, 2006). */
function drawRanking(svg, width) {
  const {levels, ranks, distance} = study.ranking, count = ranks.length;
  const order = d3.range(count).sort((a, b) => ranks[a] - ranks[b]);
  const side = Math.min(width / 2.6, d3.max(levels, name => name.length) * 7 + 50);
  const x = d3.scaleLinear().domain([1, count]).range([side + 10, width - side - 10]);
  const axis = 46, bars = [];
  order.forEach((level, i) => {
    const last = d3.bisectLeft(order.map(one => ranks[one]), ranks[level] + distance) - 1;
    if (last > i && !(bars.length && bars[bars.length - 1][1] >= last)) bars.push([i, last]);
  });
  const first = axis + 18 + bars.length * 8, half = Math.ceil(count / 2);
  const reach = Math.min(x(1 + distance), x(count)) - x(1);
  add(svg, 'path', {class: 'whisker', d: `M${x(1)} 12v8m0 -4h${reach}m0 -4v8`});
  text(svg, x(1) + reach + 8, 20, `critical difference ${distance.toFixed(2)}`,
    {class: 'soft small'});
  svg.append('g').attr('transform', `translate(0 ${axis})`)
    .call(d3.axisTop(x).ticks(Math.min(count - 1, width / 70)).tickSize(5));
  add(svg, 'line', {class: 'equal', x1: x(1), x2: x(count), y1: axis, y2: axis});
  bars.forEach(([from, to], i) => add(svg, 'line', {class: 'together', y1: axis + 10 + i * 8,
    y2: axis + 10 + i * 8, x1: x(ranks[order[from]]) - 3, x2: x(ranks[order[to]]) + 3}));
  order.forEach((level, i) => {
    const right = i >= half, y = first + (right ? count - 1 - i : i) * 20;
    const end = right ? width - side : side, anchor = right ? 'start' : 'end';
    add(svg, 'path', {class: 'thread', d: `M${x(ranks[level])} ${axis}V${y}H${end}`});
    text(svg, end + (right ? 6 : -6), y + 4.5, levels[level],
      {class: 'small', 'text-anchor': anchor})
      .append('tspan').attr('class', 'soft').attr('dx', 7).text(ranks[level].toFixed(2));
  });
  return first + half * 20;
}

// Tables -------------------------------------------------------------------------------------

/* Columns of a cell's settings and values; rows of the table have it as `cell`. */
function cellColumns(factors) {
  return [
    ...factors.map(one => ({head: one.name, kind: one.numbers ? '' : 'word',
      value: ({cell}) => (one.numbers || one.levels)[one.cells[cell]],
      show: (value, {cell}) => one.levels[one.cells[cell]]})),
    {head: 'makespan', value: ({cell}) => study.makespan_s[cell], show: time},
    ...(study.reach_s.length ? [{head: '±, %', show: value => (value * 100).toFixed(2),
      value: ({cell}) => study.reach_s[cell] / study.makespan_s[cell] || null}] : []),
    {head: 'GFlop/s', value: ({cell}) => study.gflops[cell], show: MEASURES[1].show},
    {head: 'bound, %', value: ({cell}) => MEASURES[2].of(cell) || null,
      show: value => (value * 100).toFixed(1)},
  ];
}

function bestTable() {
  const chosen = study.factors.filter(one => one.chosen), shown = study.cases.slice(0, MOST_CASES);
  const share = value => (value * 100).toFixed(2);
  const columns = cellColumns(study.factors);
  return html`<div class="tall" tabindex="0">${table([...columns, ...(chosen.length ? [
    {head: 'lead, %', value: one => one.lead,
      show: (lead, one) => share(lead) + (one.reach === null ? '' : ` ±${share(one.reach)}`)},
    {head: 'before', kind: 'word', value: ({cell, others}) => others
      ? chosen.map(one => one.levels[one.cells[cell + 1]]).join(' ') : null},
    {head: 'how sure', kind: 'word', value: ({sure}) => sure},
  ] : [])], shown, {sortable: true})}</div>${shown.length < study.cases.length &&
    html`<p class="hint">The first ${shown.length} of ${plural(study.cases.length, 'case')}: all are
      in what duet study --show --verbose prints.</p>`}`;
}

/** Levels of each factor beside the mean of all of them, those that explain most first. */
function effects() {
  const rows = d3.sort(study.compared, one => -one.share).flatMap(one =>
    one.ratios.map((ratio, level) => ({one, ratio, level})));
  const reach = rows.map(row => row.ratio - 1), whole = d3.sum(study.compared, one => one.share);
  const share = ({one, level}) => html`<td class="track spare">${!level &&
    html`<div><i style="left:0;width:${one.share * 100}%"></i></div>`}</td>`;
  return html`<section><h2>What matters</h2><p class="hint">Makespan with each value relative to the
    (geometric) mean of all values in the same case, where all else is equal; and the share of the
    variance of its logarithm that this explains${study.factors.some(one => one.problem) &&
    ', around the mean of each problem'}. ${whole < 0.9995 && html`Together
    ${(whole * 100).toFixed(1)} %: the rest is how they act together, and noise.`}</p>
    <div class="tall" tabindex="0">${table([
    {head: 'setting', value: ({one, level}) => level ? '' : one.name},
    {head: 'explains', kind: 'spare', cell: share},
    {head: ' ', value: ({one, level}) => level ? '' : `${(one.share * 100).toFixed(1)} %`},
    {head: 'value', value: ({one, level}) => one.levels[level]},
    {head: ' ', cell: ({ratio}) => flow(reach, 0, ratio - 1, false)},
    {head: 'makespan', value: ({ratio}) => ratio - 1, show: percent},
  ], rows, {kind: 'parts'})}</div></section>`;
}

function rankingWords() {
  const {name, ranked, left_out: out, p, own, against, levels} = study.ranking;
  const short = value => value < 1e-15 ? '< 1e-15' : value.toPrecision(2);
  const still = !+study.constants.noise && !study.factors.some(one => one.name === 'noise');
  return html`<p class="hint">Mean ranks of ${name} over ${plural(ranked, 'case')} (all
    combinations of the other settings${out > 0 && html`; ${plural(out, 'more')} without all values
    left out`}), 1 the shortest makespan. Friedman's test that all are alike:
    ${p === null ? 'too few cases' : `p ${p < 1e-15 ? '' : '= '}${short(p)}`}. What a
    bar joins is not told apart (Nemenyi, 5 % for all pairs together). ${own} against each other (p
    of Wilcoxon's signed ranks, by Holm): ${levels.map((level, i) => against[i] !== null &&
    `${level} ${short(against[i])}`).filter(Boolean).join(', ')}. The cases are a grid that was
    chosen${still && ', simulated without noise'}, no independent sample: this says
    how regular the order is over them, not how sure it is for others.</p>`;
}

// Page ---------------------------------------------------------------------------------------

/* A labelled list of choices: pairs of value and name; `key` is their member in the study. */
function choice(key, label, options, chosen) {
  return html`<label>${label} <select data-key="${key}">${options.map(([value, name]) =>
    html`<option value="${value}" ${value === chosen && html`selected`}>${name}</option>`)}</select>
    </label>`;
}

/* A labelled list of factors to choose. */
function factorChoice(key, label, factors, none) {
  return choice(key, label, [...(none ? [['', none]] : []),
    ...factors.map(one => [one.index, one.name])], study[key] ? study[key].index : '');
}

/** The first of these names that varies and is not taken, else the first factor that is not. */
function pick(names, taken, factors = study.factors) {
  const free = factors.filter(one => !taken.includes(one));
  return names.map(name => free.find(one => one.name === name)).find(Boolean) || free[0] || null;
}

function slices() {
  const {factors} = study, numeric = factors.filter(one => one.numbers);
  const over = numeric.length ? numeric : factors;
  const costs = numeric.filter(one => !one.problem && !one.chosen);
  const x = pick(['nodes', 'gpus', 'n', 'tile'], [], over);
  Object.assign(study, {measure: 0, winners: null, x});
  study.by = pick(['policy'], [study.x]) || study.single;
  study.columns = study.x;
  study.rows = pick(['tile', 'n', 'gpu_memory'], [study.x, study.by]) || study.by;
  study.cost = pick(['nodes', 'gpus', 'gpu_memory', 'cpus'], [], costs);
  const counts = numeric.filter(one => ['nodes', 'gpus'].includes(one.name) && baseOf(one) >= 0);
  const scaled = study.scaled = counts.length ? pick(['nodes'], [], counts) : null;
  const unit = scaled && (scaled.name === 'nodes' ? 'node' : 'GPU');
  factors.forEach(one => {
    one.fixed = !one.problem ? -1 : one.numbers ? one.levels.length - 1 : 0;
  });
  return html`<section><h2>Charts</h2><div class="tools stay">${
    choice('measure', 'Measure', MEASURES.map((one, i) => [i, one.name]), 0)}${
    factors.map(one => choice(`fixed ${one.index}`, one.name, [
      ...(one.problem ? [] : [[-1, 'best']]), ...one.levels.map((name, i) => [i, name])],
    one.fixed))}</div><p class="hint">Settings that a chart has on no axis are as chosen here, or
    (best) those with the shortest makespan at each point, which its tip tells.</p>
    <div class="columns"><div><h3>Lines</h3><div class="tools">${factorChoice('x', 'Over', over)}${
    factorChoice('by', 'a line for each', factors, 'none')}</div>${
    chart('Lines over a setting', drawLines)}</div><div><h3>Map</h3><div class="tools">${
    factorChoice('columns', 'Columns', factors)}${factorChoice('rows', 'rows', factors, 'none')}${
    factorChoice('winners', 'showing', factors.filter(one => one.chosen), 'the measure')}</div>${
    chart('Map of two settings', drawMap)}</div></div>${scaled && html`<h3>${
    unit === 'GPU' ? 'GPUs' : 'Nodes'}</h3>
    <p class="hint">Relative to ${plural(scaled.numbers[baseOf(scaled)], unit)}, each with
    the settings best there; dashed: proportional to their number.</p><div class="columns"><div>${
    chart(`Speed-up over ${unit}s`, (svg, width) => drawScaling(svg, width, false))}</div><div>${
    chart(`Efficiency per ${unit}`, (svg, width) => drawScaling(svg, width, true))}</div></div>`}${
    study.cost && html`<h3>Makespan against cost</h3><div class="tools">${
    factorChoice('cost', 'Cost', costs)}<span class="hint">On the line: what nothing cheaper is as
    fast as (Pareto front).</span></div><div class="columns"><div>${
    chart('Makespan against cost', drawFront)}</div><div id="front"></div></div>`}</section>`;
}

function rankings() {
  study.ranking = pick(['policy'], [], study.compared);
  return html`<section><h2>Ranking</h2><div class="tools">${
    factorChoice('ranking', 'Compare', study.compared)}</div>${
    chart('Mean ranks with their critical difference', drawRanking)}<div id="ranking"></div>
    </section>`;
}

function studyPage(report) {
  prepareStudy(report);
  const {constants, factors, runs, makespan_s: cells} = study;
  const names = key => constants[key] ||
    factors.filter(one => one.name === key).map(one => one.levels.join(', '))[0];
  const title = names('workload') ? `${names('workload')} on ${names('platform')}` : 'Study';
  const some = levels => levels.length > 6
    ? [...levels.slice(0, 4), '…', levels[levels.length - 1]].join(', ') : levels.join(', ');
  document.title = title;
  return html`<header><h1>${title}</h1><p class="lead">which setting is best, by duet study</p>${
    facts([
      ['Runs', `${runs.toLocaleString('en')}, of ${plural(cells.length, 'setting')}`],
      ['Cases', study.cases.length],
      ...Object.entries(constants),
      ...factors.map(one => [`${one.name} (${one.levels.length})`, some(one.levels)]),
      ['Estimated, not measured', study.estimated.join('; ')],
      ['Made by several builds of duet', study.builds[0]],
    ])}<pre>${study.command}</pre></header>${study.failed.map(one =>
    html`<section><p>Without a result: ${one}</p></section>`)}${!cells.length
    ? html`<section><p>No run has a result.</p></section>`
    : html`<section><h2>Best setting for each case</h2>${study.advice && html`<p>${
      study.advice[0].toUpperCase()}${study.advice.slice(1)}.</p>`}${bestTable()}</section>`}${
    factors.length > 0 && slices()}${study.compared.length > 0 &&
    html`${effects()}${rankings()}`}`;
}

/** Takes over what was chosen, and draws all again. */
function updateStudy() {
  document.querySelectorAll('select[data-key]').forEach(one => {
    const [key, index] = one.dataset.key.split(' ');
    if (key === 'fixed') study.factors[index].fixed = +one.value;
    else if (key === 'measure') study.measure = +one.value;
    else study[key] = study.factors[one.value] || (key === 'winners' ? null : study.single);
  });
  if (study.by === study.x) study.by = study.single;
  if (study.rows === study.columns) study.rows = study.single;
  const fill = (id, content) => { // where it is on this page
    const box = document.getElementById(id);
    if (box) box.innerHTML = content().text;
  };
  fill('front', () => table(cellColumns(study.factors.filter(one => !one.problem)),
    frontOf(study.cost).map(cell => ({cell})), {kind: 'parts'}));
  fill('ranking', rankingWords);
  document.querySelectorAll('[data-chart]').forEach(box => box.redraw());
}

/** Brings the page of a study to life. */
function liveStudy() {
  document.addEventListener('change', event => {
    if (event.target.matches('select[data-key]')) updateStudy();
  });
  updateStudy();
}
