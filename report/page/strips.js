// SPDX-License-Identifier: Apache-2.0
// Curves below the rows of a timeline: ready tasks, bytes on their way, memory in use.

const STRIP = 76; // pixels of each
const SPACE = 26; // of that, above the curves: their title

/** The strips of a recording, the first at `y`. */
function placeStrips(recording, y) {
  return (recording.strips || []).map((strip, i) => {
    strip.curves.forEach((curve, k) => {
      dated(curve, recording.tick_s);
      curve.low = Float64Array.from(curve.lows, value => value * strip.unit);
      curve.high = curve.low.map((low, at) => low + curve.spans[at] * strip.unit);
      curve.colour = extra.colours[k % extra.colours.length];
    });
    strip.y = y + i * STRIP;
    if (strip.limit < 4 * strip.most) strip.most = Math.max(strip.most, strip.limit);
    strip.end = recording.end_s;
    return strip;
  });
}

const places = strip => ({base: strip.y + STRIP - 2,
  at: value => strip.y + STRIP - 2 - value / strip.most * (STRIP - SPACE - 2)});

/* A curve is as high as its values differ, if several share a point of the page's data. */
function drawStrip(context, strip, {from, to}, scale, colour) {
  const {base, at} = places(strip), alone = strip.curves.length === 1;
  context.fillStyle = colour('line');
  context.fillRect(LEFT, base, (to - from) * scale, 1);
  for (const curve of strip.curves) {
    let last = null;
    context.fillStyle = curve.colour;
    for (let i = Math.max(d3.bisectRight(curve.start, from) - 1, 0); curve.start[i] < to; i++) {
      const x = LEFT + (Math.max(curve.start[i], from) - from) * scale;
      const until = i + 1 < curve.start.length ? curve.start[i + 1] : strip.end;
      const end = LEFT + (Math.min(until, to) - from) * scale;
      const top = at(curve.high[i]), bottom = at(curve.low[i]);
      if (alone) {
        context.globalAlpha = 0.25;
        context.fillRect(x, top, end - x, base - top);
      }
      context.globalAlpha = alone || top === bottom ? 1 : 0.5; // others may be behind it
      context.fillRect(x, top - 0.7, Math.max(end - x, 0.7), bottom - top + 1.4);
      if (last !== null && (last.top > bottom || last.bottom < top)) {
        const [high, low] = last.top > bottom ? [bottom, last.top] : [last.bottom, top];
        context.fillRect(x - 0.35, high, 0.7, low - high);
      }
      last = {top, bottom};
    }
  }
  context.globalAlpha = 1;
  if (strip.limit && strip.limit <= strip.most) {
    context.fillStyle = colour('bound');
    for (let x = LEFT; x < LEFT + (to - from) * scale; x += 9)
      context.fillRect(x, at(strip.limit) - 0.6, 5, 1.2);
  }
}

function labelStrip(context, strip, colour) {
  const {at} = places(strip), [unit, size] = strip.bytes ? unitOfBytes(strip.most) : ['', 1];
  context.textAlign = 'right';
  context.fillStyle = colour('soft');
  context.fillText(`${+(strip.most / size).toPrecision(3)} ${unit}`, LEFT - 8, at(strip.most) + 3);
  context.textAlign = 'left';
  context.fillStyle = colour('text');
  context.fillText(strip.title, LEFT + 2, strip.y + 15);
}

/* Values of the curves of a strip at a moment, the largest first. */
function describeStrip(strip, moment) {
  const show = strip.bytes ? bytes : value => value.toLocaleString('en');
  const values = strip.curves.map(curve => {
    const i = d3.bisectRight(curve.start, moment) - 1, low = curve.low[i] || 0;
    return {name: curve.name, high: curve.high[i] || 0, low};
  }).sort((a, b) => b.high - a.high);
  const word = ({low, high}) => low === high ? show(high) : `${show(low)} to ${show(high)}`;
  const lines = values.slice(0, 10).map(one => `\n${one.name ? `${one.name}: ` : ''}${word(one)}`);
  return `${strip.title}, ${date(moment)}${lines.join('')}`;
}
