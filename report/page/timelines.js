// SPDX-License-Identifier: Apache-2.0
// Timelines (Gantt charts) on canvases: rows of bars, one an event, above curves of what there was
// at each moment. They can be zoomed, moved, scrolled and searched with a pointer and by keys. Bars
// that share a pixel are drawn together, and the chart says how many these are; rows out of sight
// are not drawn.

const LEFT = 64, RIGHT = 12, AXIS = 24; // room beside and below the rows, in pixels
const ROWS = 600; // pixels of rows that are seen at once; to others one scrolls
const THIN = 1.5; // pixels; thinner bars are drawn together if they are in the same pixel
const MESSAGE = 3; // the kind of copies that are from node to node
const DIM = 0.13; // the strength of what is not searched for

/** A kernel of one name has one colour in all timelines: in order of appearance. */
const kernelNames = [];
function kernelColour(name) {
  if (!kernelNames.includes(name)) kernelNames.push(name);
  return extra.colours[kernelNames.indexOf(name) % extra.colours.length];
}

/** The rows of a recording. Below each worker's row is one of its plan, whose `of` is that row. */
const rowsOf = recording => recording.rows.flatMap(row =>
  row.plan ? [row, {...row.plan, name: row.name, lane: 0, node: row.node, of: row}] : [row]);

/** Gives each row a place, at row.y, row.height high. Returns the height of all. */
function placeRows(rows) {
  let y = 2;
  rows.forEach((row, index) => {
    row.y = y += row.of ? 1 : index && row.node !== rows[index - 1].node ? 5 : 2;
    row.height = row.lane ? 5 : row.of ? 9 : 16;
    y += row.height;
  });
  return y + 3;
}

/** Gives bars seconds for dates, which the page has in ticks, each relative to the one before. */
function dated(bars, tick) {
  if (bars.start) return bars;
  bars.start = Float64Array.from(d3.cumsum(bars.starts), at => at * tick);
  if (!bars.lengths) return bars;
  bars.end = bars.start.map((start, i) => start + bars.lengths[i] * tick);
  bars.reach = bars.end.slice(); // latest end so far: bars of a row may overlap
  bars.reach.forEach((end, i, all) => { all[i] = Math.max(end, all[i - 1] || 0); });
  return bars;
}

/** The first of the bars that ends at `seconds` or later, or one before it. */
const firstBar = (bars, seconds) => d3.bisectLeft(bars.reach, seconds);

/**
 * Draws the bars of a row that are between two dates and that `drawn` says, at `top`. Thin bars in
 * one pixel become one, of the colour that most of them have, as strong as the part of the pixel
 * that they fill, but visible. Counts how many bars there are, how many of them are drawn so, and
 * how many were merged already.
 */
function drawRow(context, row, top, colours, {from, to}, scale, found, drawn, strength) {
  const cell = {column: -1, bars: 0, x: 0, filled: new Float64Array(colours.length)};
  const paint = (colour, x, width, share) => {
    context.fillStyle = colour;
    context.globalAlpha = share * strength;
    context.fillRect(x, top, width, row.height);
  };
  const flush = () => {
    const {bars, filled} = cell, most = filled.indexOf(Math.max(...filled)), width = d3.sum(filled);
    if (bars === 1) paint(colours[most], cell.x, Math.max(width, 0.6), 1);
    if (bars > 1) {
      paint(colours[most], cell.column, 1, Math.min(Math.max(width, 0.25), 1));
      found.together += bars;
    }
    cell.bars = 0;
    filled.fill(0);
  };
  for (let i = firstBar(row, from); i < row.start.length && row.start[i] < to; i++) {
    if (row.end[i] < from || !drawn(i)) continue;
    const x = LEFT + (row.start[i] - from) * scale, width = (row.end[i] - row.start[i]) * scale;
    const colour = row.colours[i] % colours.length, several = row.counts && row.counts[i] > 1;
    found.bars++;
    if (several) found.merged += row.counts[i];
    if (width >= THIN || several) {
      const shown = Math.max(x, LEFT - 2), seam = Math.min(0.6, width / 4); // to the next one
      paint(colours[colour], shown, x + width - seam - shown, several ? 0.5 : 1);
      continue;
    }
    const column = Math.floor(x);
    if (column !== cell.column) flush();
    cell.column = column;
    cell.x = x;
    cell.bars++;
    cell.filled[colour] += width;
  }
  flush();
  context.globalAlpha = 1;
}

/** Draws the critical path as a line through its rows; of what is in one pixel, how far it goes. */
function drawPath(context, {recording: {path, rows}, top}, {from, to}, scale, [line, halo]) {
  const cell = {column: -1, low: 0, high: 0}, drawing = new Path2D();
  const flush = () => {
    if (cell.column < 0) return;
    context.fillRect(cell.column, cell.low, 1, cell.high - cell.low);
    cell.column = -1;
  };
  context.fillStyle = line;
  for (let i = firstBar(path, from); i < path.start.length && path.start[i] < to; i++) {
    const row = rows[path.rows[i]], y = row.y + row.height / 2 - top;
    const x = Math.max(LEFT + (path.start[i] - from) * scale, LEFT - 9);
    const end = LEFT + (Math.min(path.end[i], to) - from) * scale, column = Math.floor(x);
    if (column !== cell.column) flush();
    if (column === Math.floor(end)) {
      if (cell.column < 0) Object.assign(cell, {column, low: y, high: y});
      cell.low = Math.min(cell.low, y);
      cell.high = Math.max(cell.high, y);
      continue;
    }
    flush();
    drawing.lineTo(x, y);
    drawing.lineTo(end, y);
  }
  flush();
  context.lineJoin = 'round';
  for (const [colour, width] of [[halo, 4], [line, 1.8]]) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke(drawing);
  }
  context.lineWidth = 1;
}

/* Says how much is drawn together; "" if each bar stands alone. */
function noteOf(found, mergedSeconds, seen, rows) {
  const notes = [];
  if (seen < rows) notes.push(`${seen} of ${rows.toLocaleString('en')} rows are seen: scroll`);
  if (found.together)
    notes.push(`${found.together.toLocaleString('en')} of ${plural(found.bars, 'bar')} ` +
      'are too thin to be drawn one by one here: zoom in');
  if (found.merged)
    notes.push(`pale bars are several: ${found.merged.toLocaleString('en')} of all events, ` +
      `those below ${time(mergedSeconds)}, are merged in this page`);
  return notes.join('; ');
}

// Search -------------------------------------------------------------------------------------

/* Parses a search: a task of that number, else names that equal it, or else contain it. */
function searchFor(text, recordings) {
  const wanted = text.trim().toLowerCase(), names = recordings.flatMap(one => one.kernels);
  if (!wanted) return null;
  if (/^#?\d+$/.test(wanted)) return {task: +wanted.replace('#', ''), named: () => false};
  const exact = [...names, ...extra.copy_names].some(name => name.toLowerCase() === wanted);
  return {task: null, named: name =>
    exact ? name.toLowerCase() === wanted : name.toLowerCase().includes(wanted)};
}

/* Searches one recording: how a row's bars match, the first match, and words. */
function find(recording, {task, named}) {
  const kernels = recording.kernels.map(named), copies = extra.copy_names.map(named);
  const all = {tasks: 0, tasks_s: 0, copies: 0, copies_s: 0, place: null};
  recording.rows.forEach(row => {
    const at = task === null || row.lane ? -1 : row.ids.indexOf(task);
    if (at >= 0) all.place = {row, bar: at};
    if (row.lane) { // a copy between GPUs stands in two rows
      dated(row, recording.tick_s).colours.forEach((kind, i) => {
        if (!copies[kind] || (kind === 1) !== (row.lane === 2)) return;
        all.copies += row.counts ? row.counts[i] : 1;
        all.copies_s += row.end[i] - row.start[i];
      });
    }
  });
  recording.workers.forEach(worker => kernels.forEach((is, kernel) => {
    all.tasks += is ? worker.tasks[kernel] : 0;
    all.tasks_s += is ? worker.seconds[kernel] : 0;
  }));
  const words = [];
  if (all.tasks) words.push(`${plural(all.tasks, 'task')}, ${time(all.tasks_s)} in all`);
  if (all.copies)
    words.push(`${plural(all.copies, 'copy', 'copies')}, ${time(all.copies_s)} in all`);
  if (all.place)
    words.push(describeBars(recording, dated(all.place.row, recording.tick_s), [all.place.bar])
      .replaceAll('\n', ', '));
  return {place: all.place, words: words.join('; ') || 'nothing found',
    has: row => i => task !== null ? !row.lane && row.ids[i] === task
      : row.lane ? copies[row.colours[i]] : kernels[row.colours[i]]};
}

// The chart ----------------------------------------------------------------------------------

/** Markup of timelines on one time axis, to be brought to life by liveTimelines. */
function timelines(recordings, hint) {
  const used = recordings.flatMap(one => one.kernels.filter((name, kernel) =>
    one.workers.some(worker => worker.tasks[kernel])));
  const key = (mark, name) => [html`<button data-find="${name}" aria-pressed="false">${mark}${
    name}</button>`];
  const icons = Array.from(new Set(used), name => key(swatch(kernelColour(name)), name));
  if (recordings.some(one => one.nodes.length > 1))
    extra.copy_names.forEach((name, i) => {
      if (i < MESSAGE || recordings.some(one => one.rows.some(row => row.lane
          && row.colours.includes(i))))
        icons.push(key(swatch(extra.copy_colours[i], true), name));
    });
  if (recordings.some(one => one.path))
    icons.push([html`<button data-path aria-pressed="true"><i class="line"></i>critical
      path</button>`]);
  const figure = (one, i) => html`<figure><figcaption><b>${one.name}</b>
    <span class="soft">${one.caption}</span><span class="found"></span><span class="note"
    role="status" id="note-${one.of}-${i}"></span></figcaption>
    ${one.plan && html`<p class="soft">${planOf(one)}</p>`}
    <div class="rows"><canvas tabindex="0" role="img" aria-label="Timeline, ${one.name}"
    aria-describedby="note-${one.of}-${i}"></canvas><div></div><i class="pick"></i></div></figure>`;
  return html`<div class="tools"><span><button data-zoom="2">Zoom in</button>
    <button data-zoom="0.5">Zoom out</button> <button data-zoom="0">Whole run</button></span>
    <input type="search" class="find" placeholder="Kernel, copy, task number"
    aria-label="Highlight kernels, copies or the task of a number; Enter goes to the task">
    <output class="shown"></output><span class="hint">Drag to select what is zoomed to, with Shift
    to move; Ctrl + wheel or + - to zoom, arrows to move, double-click, 0 or Esc for all;
    ${hint}</span></div>${legend(icons)}${recordings.map(figure)}`;
}

/** Lets the timelines inside `box` be drawn, zoomed and moved together. */
function liveTimelines(box, recordings) {
  const end = d3.max(recordings, one => one.end_s);
  const view = {from: 0, to: end, path: true};
  const [unit, units] = unitOf(end);
  const field = box.querySelector('.find'), figures = box.querySelectorAll('figure');
  const charts = recordings.map((recording, i) => makeChart(recording, figures[i]));
  let waiting = false;

  const inside = chart => chart.canvas.clientWidth - LEFT - RIGHT;
  const scaleOf = chart => inside(chart) / (view.to - view.from);
  const dateAt = (chart, x) => view.from + (x - LEFT) / scaleOf(chart);

  function draw(chart) {
    const ratio = devicePixelRatio || 1, {canvas, recording} = chart, width = canvas.clientWidth;
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(`--${name}`);
    const context = canvas.getContext('2d');
    if (!width) return;
    canvas.width = Math.round(width * ratio); // which also clears it
    canvas.height = Math.round(chart.height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = '11.5px system-ui, sans-serif';
    chart.top = chart.scroller.scrollTop;
    const seen = chart.rows.filter(row =>
      row.y + row.height > chart.top && row.y < chart.top + chart.sight);
    drawAxis(chart, context, width, colour);
    const clip = (height, act) => {
      context.save();
      context.beginPath();
      context.rect(LEFT, 0, inside(chart), height);
      context.clip();
      act();
      context.restore();
    };
    const found = {bars: 0, together: 0, merged: 0}, scale = scaleOf(chart);
    clip(chart.sight, () => {
      for (const row of seen) {
        const colours = row.lane ? extra.copy_colours : chart.colours, {search} = chart;
        const is = search ? search.has(row) : () => true;
        const go = (drawn, strength) => drawRow(context, dated(row, recording.tick_s),
          row.y - chart.top, colours, view, scale, found, drawn, strength);
        if (search) go(i => !is(i), DIM);
        go(is, 1);
      }
      if (view.path && recording.path)
        drawPath(context, chart, view, scale, [colour('text'), colour('card')]);
    });
    clip(chart.height, () =>
      chart.strips.forEach(strip => drawStrip(context, strip, view, scale, colour)));
    context.fillStyle = colour('text');
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    seen.filter(row => !row.lane && row.y + row.height <= chart.top + chart.sight)
      .forEach(row => {
        context.fillStyle = colour(row.of ? 'soft' : 'text');
        context.fillText(row.of ? 'plan' : row.name, LEFT - 8,
          row.y - chart.top + row.height / 2 + 0.5);
      });
    chart.strips.forEach(strip => labelStrip(context, strip, colour));
    chart.note.textContent = noteOf(found, recording.merged_s, seen.length, chart.rows.length);
  }

  function drawAxis(chart, context, width, colour) {
    const x = d3.scaleLinear().domain([view.from * units, view.to * units])
      .range([LEFT, width - RIGHT]);
    const ticks = x.ticks(Math.max(2, (width - LEFT) / 110)), bottom = chart.height - AXIS;
    const digits = digitsFor(ticks.length > 1 ? ticks[1] - ticks[0] : 1, 1);
    context.strokeStyle = colour('line');
    context.fillStyle = colour('soft');
    context.textAlign = 'center';
    for (const tick of ticks) {
      const at = Math.round(x(tick)) + 0.5, label = `${tick.toFixed(digits)} ${unit}`;
      context.beginPath();
      context.moveTo(at, 0);
      context.lineTo(at, bottom + 4);
      context.stroke();
      const most = width - context.measureText(label).width / 2 - 1;
      context.fillText(label, Math.min(at, most), bottom + 17);
    }
  }

  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      charts.forEach(draw);
    });
  }

  function look(from, to) {
    const span = Math.min(Math.max(to - from, end * 1e-6), end);
    view.from = Math.min(Math.max(from, 0), end - span);
    view.to = view.from + span;
    box.querySelector('.shown').textContent = span < end
      ? `${date(view.from)} to ${date(view.to)}: ${time(span)} of ${time(end)}` : '';
    showTip(null);
    redraw();
  }

  function zoom(factor, at = (view.from + view.to) / 2) {
    if (factor) look(at - (at - view.from) / factor, at + (view.to - at) / factor);
    else look(0, end);
  }

  function search(text) {
    const wanted = searchFor(text, recordings);
    field.value = text;
    charts.forEach(chart => {
      chart.search = wanted && find(chart.recording, wanted);
      chart.found.textContent = wanted ? chart.search.words : '';
    });
    box.querySelectorAll('[data-find]').forEach(key =>
      key.setAttribute('aria-pressed', !!wanted && wanted.named(key.dataset.find)));
    redraw();
  }

  /** Shows the task that was searched for. */
  function goThere() {
    const chart = charts.find(one => one.search && one.search.place);
    if (!chart) return;
    const {row, bar} = chart.search.place, room = 8 * (row.end[bar] - row.start[bar]);
    chart.scroller.scrollTop = row.y - chart.sight / 2;
    look(row.start[bar] - room, row.end[bar] + room);
  }

  function handleKey(event) {
    const step = (view.to - view.from) / 8;
    const move = by => look(view.from + by, view.to + by);
    const actions = {
      '+': () => zoom(2), '=': () => zoom(2), '-': () => zoom(0.5), '0': () => zoom(0),
      Escape: () => zoom(0), ArrowLeft: () => move(-step), ArrowRight: () => move(step),
      Home: () => move(-end), End: () => move(end),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
    actions[event.key]();
    event.preventDefault();
  }

  /* Describes a point of the chart in words: bars, why there is none, or values at the moment. */
  function describe(chart, x, y) {
    const {recording, top} = chart;
    const strip = chart.strips.find(one => y >= one.y && y < one.y + STRIP);
    if (x < LEFT) return null;
    const moment = dateAt(chart, x), pixel = 1 / scaleOf(chart);
    if (strip) return describeStrip(strip, moment);
    const row = y < chart.sight && chart.rows.find(one =>
      y + top >= one.y - 1 && y + top <= one.y + one.height + 1);
    return row ? describeRow(recording, dated(row, recording.tick_s), moment, pixel) : null;
  }

  function listen(chart) {
    const {canvas, pick} = chart;
    let held = null;
    const limit = event => Math.min(Math.max(event.offsetX, LEFT), canvas.clientWidth - RIGHT);
    const show = (from, to) => {
      pick.style.left = `${Math.min(from, to)}px`;
      pick.style.width = `${Math.abs(to - from)}px`;
      pick.style.translate = `0 ${chart.scroller.scrollTop}px`;
      pick.hidden = from === to;
    };
    canvas.addEventListener('pointerdown', event => {
      held = {x: event.clientX, at: limit(event), ...view,
        moves: event.shiftKey || event.button > 0 || event.pointerType === 'touch'};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', event => {
      if (held && held.moves) {
        const moved = (event.clientX - held.x) / scaleOf(chart);
        look(held.from - moved, held.to - moved);
      } else if (held) {
        const at = limit(event), [from, to] = d3.extent([held.at, at], x => dateAt(chart, x));
        show(held.at, at);
        showTip(`${date(from)} to ${date(to)}: ${time(to - from)}`, event.clientX, event.clientY);
      } else {
        showTip(describe(chart, event.offsetX, event.offsetY), event.clientX, event.clientY);
      }
    });
    const release = event => {
      const at = limit(event), [from, to] = d3.extent([held ? held.at : at, at]);
      const chosen = held && !held.moves && event.type === 'pointerup' && to - from > 3;
      held = null;
      show(0, 0);
      if (chosen) look(dateAt(chart, from), dateAt(chart, to));
    };
    for (const name of ['pointerup', 'pointercancel']) canvas.addEventListener(name, release);
    canvas.addEventListener('pointerleave', () => showTip(null));
    canvas.addEventListener('dblclick', () => zoom(0));
    canvas.addEventListener('wheel', event => {
      const zooms = event.ctrlKey || event.metaKey || event.altKey;
      const across = event.deltaX / scaleOf(chart);
      if (!zooms && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return; // rows, the page
      event.preventDefault();
      if (zooms) zoom(Math.exp(-event.deltaY * 0.003), dateAt(chart, event.offsetX));
      else look(view.from + across, view.to + across);
    }, {passive: false});
    canvas.addEventListener('keydown', handleKey);
    chart.scroller.addEventListener('scroll', () => {
      showTip(null);
      redraw();
    });
  }

  charts.forEach(listen);
  box.querySelectorAll('[data-zoom]').forEach(button =>
    button.addEventListener('click', () => zoom(+button.dataset.zoom)));
  box.querySelectorAll('[data-find]').forEach(key => key.addEventListener('click', () =>
    search(key.getAttribute('aria-pressed') === 'true' ? '' : key.dataset.find)));
  box.querySelectorAll('[data-path]').forEach(key => key.addEventListener('click', () => {
    view.path = !view.path;
    key.setAttribute('aria-pressed', view.path);
    redraw();
  }));
  field.addEventListener('input', () => search(field.value));
  field.addEventListener('keydown', event => { if (event.key === 'Enter') goThere(); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  new ResizeObserver(redraw).observe(box); // also when it is unfolded
}

/** One timeline of a figure: its places and elements. */
function makeChart(recording, figure) {
  const {path, tick_s: tick} = recording, scroller = figure.querySelector('.rows');
  const rows = rowsOf(recording);
  const [canvas, room] = scroller.children;
  const all = placeRows(rows), sight = Math.min(all, ROWS), strips = placeStrips(recording, sight);
  const chart = {recording, rows, canvas, sight, strips, top: 0, search: null,
    scroller, pick: figure.querySelector('.pick'),
    height: sight + strips.length * STRIP + AXIS, colours: recording.kernels.map(kernelColour),
    note: figure.querySelector('.note'), found: figure.querySelector('.found')};
  canvas.style.height = scroller.style.height = `${chart.height}px`;
  room.style.height = `${all - sight}px`;
  chart.pick.hidden = true;
  if (path) dated(path, tick);
  const placesOf = some => new Map(rows.filter(row => !row.lane && some(row)).flatMap(row =>
    row.ids.map((id, bar) => [id, {row, bar}]).filter(([, {bar}]) =>
      !row.counts || row.counts[bar] === 1)));
  if (recording.plan) {
    recording.ran = placesOf(row => !row.of);
    recording.planned = placesOf(row => row.of);
  }
  return chart;
}

// Words --------------------------------------------------------------------------------------

/** Why a worker of a memory does nothing, by state. */
const REASONS = {
  to_device_queue: gpu => `for the link from the host to ${gpu}`,
  to_device: gpu => `for data on its way from the host to ${gpu}`,
  to_host_queue: () => 'for the link to the host',
  to_host: () => 'for data on its way to the host',
  between_queue: gpu => `for the link from another GPU to ${gpu}`,
  between: gpu => `for data on its way from another GPU to ${gpu}`,
  message_queue: () => 'no task is ready before a message, which waits for the network',
  message: () => 'no task is ready before a message, which is on its way',
  room: gpu => `for room in the memory of ${gpu}`,
  overhead: () => 'overhead: its task is ready, with its data',
  elsewhere: () => 'no task of its own is ready, others are: the policy\'s choice',
  before: () => 'no task is ready that it could run, before its first',
  within: () => 'no task is ready that it could run',
  after: () => 'no task is ready that it could run, after its last',
  lost: gpu => `${gpu} is lost`,
};

/** Dates have the digits that tell short events apart. */
function date(seconds) {
  const [unit, scale] = unitOf(seconds);
  return `${(seconds * scale).toFixed({s: 4, ms: 3, µs: 2}[unit])} ${unit}`;
}

/* Describes a row at a moment: one event, those that share the pixel, or why there is none. */
function describeRow(recording, row, moment, pixel) {
  const near = [];
  let i = firstBar(row, moment - pixel);
  for (; i < row.start.length && row.start[i] <= moment + pixel; i++)
    if (row.end[i] >= moment - pixel) near.push(i);
  const wide = near.filter(k => row.start[k] <= moment && row.end[k] >= moment &&
    row.end[k] - row.start[k] >= THIN * pixel);
  if (near.length) return describeBars(recording, row, wide.length ? wide : near);
  return row.lane || row.of ? null : describeGap(recording, row, i);
}

/** The gap before a bar of a worker's row: each reason with its time, the longest first. */
function describeGap(recording, row, next) {
  const from = next ? row.reach[next - 1] : 0, node = recording.nodes[row.node];
  const to = next < row.start.length ? row.start[next] : recording.makespan_s;
  const gaps = dated(row.gaps || {starts: [], lengths: []}, recording.tick_s);
  const sums = new Map();
  for (let i = d3.bisectLeft(gaps.start, from - recording.tick_s); gaps.start[i] < to; i++)
    sums.set(gaps.states[i], (sums.get(gaps.states[i]) || 0) + gaps.end[i] - gaps.start[i]);
  const reasons = Array.from(sums).sort((a, b) => b[1] - a[1]).map(([state, seconds]) =>
    `\n${time(seconds)} ${REASONS[extra.states[state]](node)}`);
  return to > from ? `${row.name}: waits from ${date(from)}, ${time(to - from)}${reasons.join('')}`
    : null;
}

/** Bars of a row, by their numbers, in words. */
function describeBars(recording, row, bars) {
  const [i] = bars, events = d3.sum(bars, k => row.counts ? row.counts[k] : 1);
  const length = d3.max(bars, k => row.end[k]) - row.start[i], several = events > 1;
  const ends = row.lane ? [recording.nodes[row.peers[i]], row.name] : [];
  const [what, number] = row.lane
    ? [(row.lane === 2 ? ends.reverse() : ends).join(' → '),
      several ? plural(events, 'copy', 'copies') : `handle ${row.ids[i]}`]
    : [`${row.of ? 'plan of ' : ''}${row.name}: ${recording.kernels[row.colours[i]] || '?'}`,
      several ? plural(events, 'task') : `task ${row.ids[i]}`];
  const size = row.lane ? `, ${bytes(d3.sum(bars, k => row.bytes[k]))}` : '';
  return `${what}${several ? ' and others' : ''}, ${number}${size}\n` +
    `from ${date(row.start[i])}, for ${date(length)}${bars.length > 1 ? ', all in one pixel' : ''}${
      several ? '' : describeOther(recording, row, i)}`;
}

/** For a bar of the plan: where its task ran. For one of the run: where it was planned. "" if
 * either is not known. */
function describeOther(recording, row, i) {
  if (!recording.plan || row.lane) return '';
  const [ran, planned] = [recording.ran, recording.planned].map(tasks => tasks.get(row.ids[i]));
  if (!ran || !planned) return '';
  const [actual, due] = [ran, planned].map(one => dated(one.row, recording.tick_s).start[one.bar]);
  const other = row.of ? ran : planned, from = other.row.start[other.bar], late = actual - due;
  return `\n${row.of ? 'ran' : 'planned'} on ${other.row.name} from ${date(from)}, for ${
    date(other.row.end[other.bar] - from)}\nbegan ${isLate(recording, Math.abs(late))
    ? `${time(Math.abs(late))} ${late < 0 ? 'early' : 'late'}` : 'when planned'}`;
}

/** True for a delay above the rounding of the page's dates. */
const isLate = (recording, seconds) => seconds > 2 * recording.tick_s;

/** How a run differs from its plan. */
function planOf(recording) {
  const {plan, makespan_s: makespan} = recording;
  const moved = plan.may_move
    ? `${plan.moved} of ${plural(plan.tasks, 'task')} ran on another worker than planned; ` : '';
  return `Planned makespan ${time(plan.makespan_s)}, that of the run ${time(makespan)} (${
    percent(makespan / plan.makespan_s - 1)}); ${moved}${isLate(recording, plan.late_s)
    ? `task ${plan.latest} began latest, ${time(plan.late_s)} after its planned date`
    : 'no task began later than planned'}`;
}
