// SPDX-License-Identifier: Apache-2.0
// Timelines on canvases: rows of bars, one an event, that can be zoomed and moved with a pointer
// and by keys. Bars that share a pixel are drawn together, and the chart says how many these are.

const LEFT = 64, RIGHT = 12, AXIS = 24; // room beside and below the rows, in pixels
const THIN = 1.5; // pixels; thinner bars are drawn together if they are in the same pixel

/** A kernel of one name has one colour in all timelines: in order of appearance. */
const kernelNames = [];
function kernelColour(name) {
  if (!kernelNames.includes(name)) kernelNames.push(name);
  return extra.colours[kernelNames.indexOf(name) % extra.colours.length];
}

/**
 * Gives rows seconds for dates, which the page has in ticks, each relative to the one before, and a
 * place: at row.y, row.height high. Returns the height of all.
 */
function prepareRows(rows, tick) {
  let y = 2;
  rows.forEach((row, index) => {
    row.start = Float64Array.from(d3.cumsum(row.starts), at => at * tick);
    row.end = row.start.map((start, i) => start + row.lengths[i] * tick);
    row.reach = row.end.slice(); // latest end so far: bars of a row may overlap
    row.reach.forEach((end, i, all) => { all[i] = Math.max(end, all[i - 1] || 0); });
    row.y = y += index && row.node !== rows[index - 1].node ? 5 : 2;
    row.height = row.lane ? 5 : 16;
    y += row.height;
  });
  return y + 3;
}

/** The first of the row's bars that ends at `seconds` or later, or one before it. */
const firstBar = (row, seconds) => d3.bisectLeft(row.reach, seconds);

/**
 * Draws the bars of a row that are between two dates. Thin bars in one pixel become one, of the
 * colour that most of them have, as strong as the part of the pixel that they fill, but visible.
 * Counts how many bars there are, how many of them are drawn so, and how many were merged already.
 */
function drawRow(context, row, colours, {from, to}, scale, found) {
  const cell = {column: -1, bars: 0, x: 0, filled: new Float64Array(colours.length)};
  const paint = (colour, x, width, strength) => {
    context.fillStyle = colour;
    context.globalAlpha = strength;
    context.fillRect(x, row.y, width, row.height);
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
    if (row.end[i] < from) continue;
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

/** What is drawn together, in words; nothing where each bar stands alone. */
function noteOf(found, mergedSeconds) {
  const notes = [];
  if (found.together)
    notes.push(`${found.together.toLocaleString('en')} of ${plural(found.bars, 'bar')} ` +
      'are too thin to be drawn one by one here: zoom in');
  if (found.merged)
    notes.push(`pale bars are several: ${found.merged.toLocaleString('en')} of the run's events, ` +
      `those below ${time(mergedSeconds)}, are merged in this page`);
  return notes.join('; ');
}

/** Markup of timelines on one time axis, to be brought to life by liveTimelines. */
function timelines(recordings, hint) {
  const used = recordings.flatMap(one => one.kernels.filter((name, kernel) =>
    one.workers.some(worker => worker.tasks[kernel])));
  const icons = Array.from(new Set(used), name => [swatch(kernelColour(name)), name]);
  if (recordings.some(one => one.nodes.length > 1))
    extra.copy_names.forEach((name, i) => icons.push([swatch(extra.copy_colours[i], true), name]));
  const figure = (one, i) => html`<figure><figcaption><b>${one.name}</b>
    <span class="soft">${one.caption}</span><span class="note" role="status"
    id="note-${one.of}-${i}"></span></figcaption>
    <canvas tabindex="0" role="img" aria-label="Timeline, ${one.name}"
    aria-describedby="note-${one.of}-${i}"></canvas></figure>`;
  return html`<div class="tools"><span><button data-zoom="2">Zoom in</button>
    <button data-zoom="0.5">Zoom out</button> <button data-zoom="0">Whole run</button></span>
    <span class="hint">Drag to move, double-click or Ctrl + wheel to zoom, or keys + - 0 and
    arrows; ${hint}</span></div>${legend(icons)}${recordings.map(figure)}`;
}

/** Lets the timelines inside `box` be drawn, zoomed and moved together. */
function liveTimelines(box, recordings) {
  const end = d3.max(recordings, one => one.end_s);
  const view = {from: 0, to: end};
  const [unit, units] = unitOf(end);
  const canvases = box.querySelectorAll('canvas');
  const charts = recordings.map((recording, i) => {
    const {rows} = recording, chart = {recording, rows, canvas: canvases[i],
      height: prepareRows(rows, recording.tick_s), colours: recording.kernels.map(kernelColour),
      note: box.querySelectorAll('.note')[i]};
    chart.canvas.style.height = `${chart.height + AXIS}px`;
    return chart;
  });
  let waiting = false;

  const inside = chart => chart.canvas.clientWidth - LEFT - RIGHT;
  const scaleOf = chart => inside(chart) / (view.to - view.from);
  const dateAt = (chart, x) => view.from + (x - LEFT) / scaleOf(chart);

  function draw(chart) {
    const ratio = devicePixelRatio || 1, {canvas} = chart, width = canvas.clientWidth;
    const style = getComputedStyle(document.documentElement);
    const context = canvas.getContext('2d');
    if (!width) return;
    canvas.width = Math.round(width * ratio); // which also clears it
    canvas.height = Math.round((chart.height + AXIS) * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = '11.5px system-ui, sans-serif';
    drawAxis(chart, context, width, style);
    context.save();
    context.beginPath();
    context.rect(LEFT, 0, inside(chart), chart.height);
    context.clip();
    const found = {bars: 0, together: 0, merged: 0};
    for (const row of chart.rows)
      drawRow(context, row, row.lane ? extra.copy_colours : chart.colours, view, scaleOf(chart),
        found);
    context.restore();
    context.fillStyle = style.getPropertyValue('--text');
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    chart.rows.filter(row => !row.lane)
      .forEach(row => context.fillText(row.name, LEFT - 8, row.y + row.height / 2 + 0.5));
    chart.note.textContent = noteOf(found, chart.recording.merged_s);
  }

  function drawAxis(chart, context, width, style) {
    const x = d3.scaleLinear().domain([view.from * units, view.to * units])
      .range([LEFT, width - RIGHT]);
    const ticks = x.ticks(Math.max(2, (width - LEFT) / 110));
    const digits = digitsFor(ticks.length > 1 ? ticks[1] - ticks[0] : 1, 1);
    context.strokeStyle = style.getPropertyValue('--line');
    context.fillStyle = style.getPropertyValue('--soft');
    context.textAlign = 'center';
    for (const tick of ticks) {
      const at = Math.round(x(tick)) + 0.5, label = `${tick.toFixed(digits)} ${unit}`;
      context.beginPath();
      context.moveTo(at, 0);
      context.lineTo(at, chart.height + 4);
      context.stroke();
      const most = width - context.measureText(label).width / 2 - 1;
      context.fillText(label, Math.min(at, most), chart.height + 17);
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
    showTip(null);
    redraw();
  }

  function zoom(factor, at = (view.from + view.to) / 2) {
    if (factor) look(at - (at - view.from) / factor, at + (view.to - at) / factor);
    else look(0, end);
  }

  function handleKey(event) {
    const step = (view.to - view.from) / 8;
    const move = by => look(view.from + by, view.to + by);
    const actions = {
      '+': () => zoom(2), '=': () => zoom(2), '-': () => zoom(0.5), '0': () => zoom(0),
      ArrowLeft: () => move(-step), ArrowRight: () => move(step),
      Home: () => move(-end), End: () => move(end),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
    actions[event.key]();
    event.preventDefault();
  }

  /** What is at a point of the chart, in words: one event, or those that share the pixel. */
  function describe(chart, x, y) {
    const row = chart.rows.find(one => y >= one.y - 1 && y <= one.y + one.height + 1);
    if (!row || x < LEFT) return null;
    const date = dateAt(chart, x), pixel = 1 / scaleOf(chart), near = [];
    let i = firstBar(row, date - pixel);
    for (; i < row.start.length && row.start[i] <= date + pixel; i++)
      if (row.end[i] >= date - pixel) near.push(i);
    const wide = near.filter(k => row.start[k] <= date && row.end[k] >= date &&
      row.end[k] - row.start[k] >= THIN * pixel);
    return near.length ? describeBars(chart.recording, row, wide.length ? wide : near) : null;
  }

  function listen(chart) {
    const {canvas} = chart;
    let grabbed = null;
    canvas.addEventListener('pointerdown', event => {
      grabbed = {x: event.clientX, ...view};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', event => {
      if (grabbed) {
        const moved = (event.clientX - grabbed.x) / scaleOf(chart);
        look(grabbed.from - moved, grabbed.to - moved);
      } else {
        showTip(describe(chart, event.offsetX, event.offsetY), event.clientX, event.clientY);
      }
    });
    for (const name of ['pointerup', 'pointercancel'])
      canvas.addEventListener(name, () => { grabbed = null; });
    canvas.addEventListener('pointerleave', () => showTip(null));
    canvas.addEventListener('dblclick', event =>
      zoom(event.shiftKey ? 0.4 : 2.5, dateAt(chart, event.offsetX)));
    canvas.addEventListener('wheel', event => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * 0.003), dateAt(chart, event.offsetX));
    }, {passive: false});
    canvas.addEventListener('keydown', handleKey);
  }

  charts.forEach(listen);
  box.querySelectorAll('[data-zoom]').forEach(button =>
    button.addEventListener('click', () => zoom(+button.dataset.zoom)));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  new ResizeObserver(redraw).observe(box); // also when it is unfolded
}

/** Dates have the digits that tell short events apart. */
function date(seconds) {
  const [unit, scale] = unitOf(seconds);
  return `${(seconds * scale).toFixed({s: 4, ms: 3, µs: 2}[unit])} ${unit}`;
}

/** Bars of a row, by their numbers, in words. */
function describeBars(recording, row, bars) {
  const [i] = bars, events = d3.sum(bars, k => row.counts ? row.counts[k] : 1);
  const length = d3.max(bars, k => row.end[k]) - row.start[i], several = events > 1;
  const ends = row.lane ? [recording.nodes[row.peers[i]], row.name] : [];
  const [what, number] = row.lane
    ? [(row.lane === 2 ? ends.reverse() : ends).join(' → '),
      several ? plural(events, 'copy', 'copies') : `handle ${row.ids[i]}`]
    : [`${row.name}: ${recording.kernels[row.colours[i]] || '?'}`,
      several ? plural(events, 'task') : `task ${row.ids[i]}`];
  const size = row.lane ? `, ${bytes(d3.sum(bars, k => row.bytes[k]))}` : '';
  return `${what}${several ? ' and others' : ''}, ${number}${size}\n` +
    `from ${date(row.start[i])}, for ${date(length)}${bars.length > 1 ? ', all in one pixel' : ''}`;
}
