// SPDX-License-Identifier: Apache-2.0
// Elements of all pages: markup, numbers as text, lists of facts, tables, the tip.

/** Markup that is put into other markup as it is. */
class Markup {
  constructor(text) { this.text = text; }
}

/** Tag of templates: values are escaped unless they are markup; arrays are joined. */
function html(parts, ...values) {
  return new Markup(parts.map((part, i) => (i ? markup(values[i - 1]) : '') + part).join(''));
}

function markup(value) {
  if (value === null || value === undefined || value === false) return '';
  if (Array.isArray(value)) return value.map(markup).join('');
  if (value instanceof Markup) return value.text;
  return String(value).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
}

// Numbers ------------------------------------------------------------------------------------

const DASH = '–';

/* Returns the unit for times of that order, and how many of it make a second. */
function unitOf(seconds) {
  const size = Math.abs(seconds);
  return size >= 1 ? ['s', 1] : size >= 1e-3 ? ['ms', 1e3] : ['µs', 1e6];
}

/* Returns the digits behind the point that make so many significant ones. */
function digitsFor(value, significant) {
  if (!value) return 0;
  return Math.min(Math.max(significant - 1 - Math.floor(Math.log10(Math.abs(value))), 0), 9);
}

/** A time with four significant digits and its unit: "15.20 ms". */
function time(seconds) {
  if (!(Math.abs(seconds) >= 1e-9)) return '0 s'; // less than a clock tells
  const [unit, scale] = unitOf(seconds);
  return `${(seconds * scale).toFixed(digitsFor(seconds * scale, 4))} ${unit}`;
}

/** With a sign, unless it is written as zero. */
function signed(value, digits) {
  const size = Math.abs(value).toFixed(digits);
  return +size ? (value > 0 ? '+' : '-') + size : size;
}

/** A share in percent. */
function percent(share) {
  if (share === null || !isFinite(share)) return DASH;
  return `${signed(share * 100, Math.abs(share) < 0.1 ? 2 : 1)} %`;
}

const unitOfBytes = value => value >= 1e9 ? ['GB', 1e9] : value >= 1e6 ? ['MB', 1e6] : ['kB', 1e3];

function bytes(value) {
  const [unit, size] = unitOfBytes(value);
  return value >= 1e3 ? `${(value / size).toFixed(2)} ${unit}` : `${value} B`;
}

function plural(count, word, words = `${word}s`) {
  return `${count.toLocaleString('en')} ${count === 1 ? word : words}`;
}

// Elements -----------------------------------------------------------------------------------

/* A list of names and values; those without a value are left out. */
function facts(list, kind) {
  const known = list.filter(([, value]) => value || value === 0);
  return html`<dl class="${kind || ''}">${known.map(([name, value]) =>
    html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function legend(entries) {
  return html`<ul class="legend">${
    entries.map(([mark, name]) => html`<li>${mark}${name}</li>`)}</ul>`;
}

function swatch(colour, thin) {
  return html`<i class="swatch${thin ? ' thin' : ''}" style="background:${colour}"></i>`;
}

/** A cell with a bar of a part of the whole. */
const share = part => html`<td class="track"><div><i style="left:0;width:${
  Math.min(Math.max(part, 0), 1) * 100}%"></i></div></td>`;

/**
 * A table. A column has `head` (markup or text), `value` of a row (what is sorted by; null: not
 * known), `show` of value and row (else the value itself), `kind` (a class: "word" aligns left)
 * and `cell` instead of these, for cells that are no values. `row` gives a row's attributes.
 */
function table(columns, rows, {kind = '', sortable = false, row = () => null} = {}) {
  const head = column => html`<th class="${column.kind || ''}">${
    sortable ? html`<button>${column.head}</button>` : column.head}</th>`;
  const cell = (column, one) => {
    if (column.cell) return column.cell(one);
    const value = column.value(one);
    const text = value === null ? DASH : column.show ? column.show(value, one) : value;
    return html`<td class="${column.kind || ''}" data-value="${value}">${text}</td>`;
  };
  return html`<div class="scroll"><table class="${kind}${sortable ? ' sortable' : ''}">
    ${columns.some(column => column.head) && html`<thead><tr>${columns.map(head)}</tr></thead>`}
    <tbody>${rows.map(one => html`<tr ${row(one)}>${
    columns.map(column => cell(column, one))}</tr>`)}</tbody></table></div>`;
}

/** A click on a heading sorts by it, another one turns the order round; the unknown comes last. */
function makeSortable(element) {
  const heads = Array.from(element.tHead.rows[0].cells);
  const body = element.tBodies[0];
  heads.forEach((head, column) => head.firstElementChild.addEventListener('click', () => {
    const up = head.getAttribute('aria-sort') !== 'ascending';
    const words = column === 0 || head.classList.contains('word');
    heads.forEach(other => other.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
    const keyed = Array.from(body.rows, row => ({row, key: row.cells[column].dataset.value}));
    keyed.sort((a, b) => {
      if (a.key === '' || b.key === '') return (a.key === '') - (b.key === '');
      const order = words ? a.key.localeCompare(b.key, 'en', {numeric: true}) : a.key - b.key;
      return up ? order : -order;
    });
    body.append(...keyed.map(one => one.row));
  }));
}

/** Shows text beside a point of the window; hides it where there is none. */
function showTip(text, x, y) {
  const tip = document.getElementById('tip');
  tip.style.display = text ? 'block' : 'none';
  if (!text) return;
  tip.textContent = text;
  const right = x + 14 + tip.offsetWidth > innerWidth - 8;
  const low = y + 16 + tip.offsetHeight > innerHeight - 8;
  tip.style.left = `${Math.max(right ? x - tip.offsetWidth - 10 : x + 14, 4)}px`;
  tip.style.top = `${low ? y - tip.offsetHeight - 10 : y + 16}px`;
}

/** Elements with a tip show it when pointed at, and when they have the keyboard's focus. */
function listenForTips() {
  const listen = (names, act) => names.forEach(name => document.addEventListener(name, event => {
    const one = event.target instanceof Element && event.target.closest('[data-tip]');
    if (one) act(one, event);
  }));
  listen(['pointerover', 'focusin'], (one, event) => {
    const {right, bottom} = one.getBoundingClientRect();
    showTip(one.dataset.tip, event.clientX ?? right, event.clientY ?? bottom);
  });
  listen(['pointerout', 'focusout'], () => showTip(null));
}
