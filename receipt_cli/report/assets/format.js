// The data, elements made of text (never of markup), and numbers as people read them.
const D = JSON.parse(document.getElementById('data').textContent);
const PLAIN = document.querySelector('.card').textContent;
const T = D.texts, R = D.runs, N = R.name.length;
const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') node.addEventListener(key, value);
    else node.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children.flat(9)) {
    if (child !== null && child !== undefined && child !== false && child !== '') node.append(child);
  }
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const text = i => (i === null || i === undefined || i < 0 ? '' : T[i]);

const SI = ['', 'k', 'M', 'G', 'T', 'P', 'E'], IEC = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const label = name => (D.metrics[name] ? D.metrics[name][0] : name);
const kindOf = name => (D.metrics[name] ? D.metrics[name][1] : 'plain');

function count(value) { return Number.isInteger(value) && Math.abs(value) < 1e15 ? String(value) : num(value, 4); }

function num(value, digits) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e7) return value.toExponential(2).replace('e+', 'e');
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Number(size.toPrecision(digits)))));
  return value.toFixed(Math.min(decimals, 8));
}

function noun(name) {
  const found = /(tokens|samples|steps|commits)_per_s/.exec(name);
  return found ? {tokens: 'tok/s', samples: 'sample/s', steps: 'step/s', commits: 'commit/s'}[found[1]] : '/s';
}

// The unit in which values of about this size are shown: what they are divided by, and what it is called.
function unitFor(name, typical) {
  const size = Math.abs(typical), kind = kindOf(name);
  const step = (base, names) => Math.min(names.length - 1, Math.max(0, Math.floor(Math.log(Math.max(size, 1)) / Math.log(base) + 1e-9)));
  if (kind === 'bytes') { const i = step(1024, IEC); return [1024 ** i, IEC[i]]; }
  if (kind === 'ratio') return [0.01, '%'];
  if (kind === 'rate' || kind === 'flops') {
    const i = step(1000, SI), unit = kind === 'flops' ? (name === 'total_flops' ? 'FLOP' : 'FLOP/s') : noun(name);
    return [1000 ** i, kind === 'flops' ? SI[i] + unit : (SI[i] + ' ' + unit).trim()];
  }
  if (kind === 'time') {
    if (!size) return [1, 's'];
    const units = [[1e-6, 'µs', 1e-3], [1e-3, 'ms', 1], [1, 's', 600], [60, 'min', 36000], [3600, 'h', Infinity]];
    return units.find(unit => size < unit[2]);
  }
  if (kind === 'count' && size >= 1e5) { const i = step(1000, SI); return [1000 ** i, SI[i]]; }
  return [1, ''];
}

function measure(name, value) {
  if (value === null || value === undefined) return '–';
  const kind = kindOf(name);
  if (kind === 'count' || (kind === 'plain' && Number.isInteger(value) && Math.abs(value) >= 10)) return count(value);
  const [divisor, unit] = unitFor(name, value);
  const shown = num(value / divisor, kind === 'plain' || kind === 'bytes' ? 4 : 3);
  return unit ? shown + '\u00a0' + unit : shown;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const iso = at => (at === null ? 'no time' : new Date(at * 1000).toISOString().slice(0, 16).replace('T', ' '));
const day = at => (at === null ? 'no time' : new Date(at * 1000).toISOString().slice(0, 10));
const plural = (n, one, many) => count(n) + ' ' + (n === 1 ? one : many || one + 's');

function change(metric, before, after) {
  const delta = after - before, sign = delta > 0 ? '+' : '−';
  if (metric === 'healthy' || metric === 'goodput_ratio') return sign + num(Math.abs(delta) * 100, 3) + ' points';
  if (!before) return sign + measure(metric, Math.abs(delta));
  const share = Math.abs(delta / before) * 100;
  return sign + (share < 99.95 ? share.toFixed(1) : num(share, 3)) + '\u00a0%';
}
