// Charts in SVG: a few paths each, however many values there are; read with the mouse, with the arrow keys, and on paper.
const PAD = {left: 58, right: 14, top: 18, bottom: 26};
let charts = [];

function ticks(low, high, most) {
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(m => m * power).find(s => s >= raw * 0.999), found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return found;
}

function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    for (const m of high / low > 1e4 ? [1] : [1, 2, 5]) if (m * 10 ** power >= low && m * 10 ** power <= high) found.push(m * 10 ** power);
  }
  return found;
}

function timeTicks(low, high, most) {
  const DAY = 86400, steps = [3600, 6 * 3600, DAY, 2 * DAY, 7 * DAY, 14 * DAY], span = high - low;
  const step = steps.find(s => span / s <= most);
  const found = [];
  if (step) {
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) {
      const date = new Date(at * 1000), hour = step < DAY ? ' ' + String(date.getUTCHours()).padStart(2, '0') + ':00' : '';
      found.push([at, MONTHS[date.getUTCMonth()] + ' ' + date.getUTCDate() + hour]);
    }
    return found;
  }
  const months = [1, 2, 3, 6, 12, 24, 60].find(m => span / (m * 30.4 * DAY) <= most) || 120;
  const first = new Date(low * 1000);
  for (let m = first.getUTCFullYear() * 12 + first.getUTCMonth() + 1; ; m++) {
    const at = Date.UTC(Math.floor(m / 12), m % 12) / 1000;
    if (at > high) return found;
    if (m % months === 0) found.push([at, MONTHS[m % 12] + ' ' + Math.floor(m / 12)]);
  }
}

// spec: metric, series [{name, color, points [[x, y, run]], lines [[[x, y]]], bad [x], jumps [[x, y]]}], x 'time' | 'run' | 'step', height,
// bounds [low, high] | null, marks [{x, label, tone}], open(point), say(point), describe
function chart(spec) {
  const frame = el('div', {class: 'chart', tabindex: '0', role: 'img', 'aria-label': spec.describe});
  const draw = () => drawChart(frame, spec);
  charts.push({frame, draw});
  return frame;
}

function drawCharts() { for (const one of charts) one.draw(); }

function drawChart(frame, spec) {
  const width = Math.max(260, frame.clientWidth || 560), height = spec.height || 220;
  const points = spec.series.flatMap(series => (series.points || series.lines[0]).map(p => [p[0], p[1], p[2], series]));
  frame.replaceChildren();
  if (!points.length) return;
  const inner = {w: width - PAD.left - PAD.right, h: height - PAD.top - PAD.bottom};
  let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
  for (const x of spec.series.flatMap(series => series.bad || [])) { x0 = Math.min(x0, x); x1 = Math.max(x1, x); }
  for (const [x, y] of points) { x0 = Math.min(x0, x); x1 = Math.max(x1, x); y0 = Math.min(y0, y); y1 = Math.max(y1, y); }
  if (spec.bounds) [y0, y1] = spec.bounds;
  const logarithmic = !spec.bounds && !spec.linear && y0 > 0 && y1 / y0 > 30;
  if (!logarithmic && !spec.fixed) {
    const room = (y1 - y0) * 0.06 || Math.abs(y1) * 0.05 || 1;
    y0 = y0 >= 0 && y0 - room < 0 ? 0 : y0 - room; y1 += room;
  }
  if (logarithmic) { y0 /= 1.15; y1 *= 1.15; }
  if (x0 === x1) { x0 -= 1; x1 += 1; }
  const X = x => PAD.left + (x - x0) / (x1 - x0) * inner.w;
  const share = y => (logarithmic ? Math.log(y / y0) / Math.log(y1 / y0) : (y - y0) / (y1 - y0));
  const Y = y => PAD.top + (1 - Math.min(1, Math.max(0, share(y)))) * inner.h;
  const [divisor, unit] = axisUnit(spec.metric, Math.max(Math.abs(y0), Math.abs(y1)));
  const image = svg('svg', {viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true'});
  const across = (logarithmic ? logTicks(y0 / divisor, y1 / divisor) : ticks(y0 / divisor, y1 / divisor, 6)).map(tick => tick * divisor);
  const decimals = logarithmic ? null : decimalsOf(across.map(tick => tick / divisor));
  for (const tick of across) {
    image.append(svg('line', {class: 'grid', x1: PAD.left, x2: width - PAD.right, y1: Y(tick), y2: Y(tick)}));
    const shown = logarithmic ? String(Number((tick / divisor).toPrecision(2))) : decimals === null ? num(tick / divisor, 3) : (tick / divisor).toFixed(decimals);
    image.append(svg('text', {class: 'tick', x: PAD.left - 6, y: Y(tick) + 3.5, 'text-anchor': 'end'}, shown));
  }
  if (unit) image.append(svg('text', {class: 'tick unit', x: PAD.left - 6, y: 10, 'text-anchor': 'end'}, unit));
  const most = Math.max(2, Math.floor(inner.w / 90));
  const along = spec.x === 'time' ? timeTicks(x0, x1, most) : ticks(x0, x1, most).filter(Number.isInteger).map(t => [t, count(t)]);
  for (const [at, shown] of along) {
    image.append(svg('line', {class: 'grid faint', x1: X(at), x2: X(at), y1: PAD.top, y2: height - PAD.bottom}));
    const anchor = X(at) > width - 40 ? 'end' : 'middle';
    image.append(svg('text', {class: 'tick', x: X(at), y: height - 8, 'text-anchor': anchor}, shown));
  }
  for (const mark of spec.marks || []) {
    image.append(svg('line', {class: 'mark ' + mark.tone, x1: X(mark.x), x2: X(mark.x), y1: PAD.top, y2: height - PAD.bottom}));
    const end = X(mark.x) > width - 110;
    image.append(svg('text', {class: 'marktext ' + mark.tone, x: X(mark.x) + (end ? -4 : 4), y: 11, 'text-anchor': end ? 'end' : 'start'}, mark.label));
  }
  const to = p => X(p[0]).toFixed(1) + ' ' + Y(p[1]).toFixed(1);
  for (const series of spec.series) {
    if (series.points) image.append(svg('path', {class: 'dots c' + series.color + (points.length > 1500 ? ' many' : ''), d: series.points.map(p => `M${to(p)}h0`).join('')}));
    for (const line of series.lines) if (line.length) image.append(svg('path', {class: (line.length > 1 ? 'line c' : 'dots c') + series.color, d: 'M' + line.map(to).join('L') + 'h0'}));
    if (series.jumps) image.append(svg('path', {class: 'jump', d: series.jumps.map(p => `M${to(p)}h0`).join('')}));
    for (const x of series.bad || []) image.append(svg('path', {class: 'bad', d: `M${X(x).toFixed(1)} ${height - PAD.bottom}v-9`}));
  }
  const cursor = svg('g', {class: 'cursor', visibility: 'hidden'}, svg('line', {y1: PAD.top, y2: height - PAD.bottom}), svg('circle', {r: 4.5}));
  image.append(cursor);
  frame.append(image);
  steer(frame, image, cursor, points, X, Y, spec, width);
}

// As unitFor, but a number without a unit that is very small or large is shown in powers of ten: ticks differ in few digits.
function axisUnit(metric, size) {
  const [divisor, unit] = unitFor(metric, size);
  if (unit || !size || (size >= 0.01 && size < 1e6)) return [divisor, unit];
  const power = Math.floor(Math.log10(size));
  return [10 ** power, '×10' + String(power).replace(/[-\d]/g, c => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[c]))];
}

function decimalsOf(values) {
  for (let decimals = 0; decimals <= 5; decimals++) {
    const shown = values.map(value => value.toFixed(decimals));
    if (values.every((value, i) => Math.abs(Number(shown[i]) - value) < 1e-6 * Math.max(...values.map(Math.abs)))) return decimals;
  }
  return null;
}

// The value under the mouse, or the next one to the left and right by key; Enter or a click opens its run.
function steer(frame, image, cursor, points, X, Y, spec, width) {
  const ordered = points.slice().sort((a, b) => a[0] - b[0]);
  let at = -1;
  const show = (index, focus) => {
    at = index;
    const point = ordered[index], x = X(point[0]), y = Y(point[1]);
    cursor.setAttribute('visibility', 'visible');
    cursor.firstChild.setAttribute('x1', x); cursor.firstChild.setAttribute('x2', x);
    cursor.lastChild.setAttribute('cx', x); cursor.lastChild.setAttribute('cy', y);
    tell(spec.say(point), image, x / width, focus);
  };
  const hide = () => { cursor.setAttribute('visibility', 'hidden'); at = -1; tell(null); };
  const nearest = event => {
    const box = image.getBoundingClientRect(), scale = width / box.width;
    const mx = (event.clientX - box.left) * scale, my = (event.clientY - box.top) * scale;
    let best = -1, distance = spec.x === 'step' ? Infinity : 60 ** 2;
    ordered.forEach((p, i) => {
      const far = (X(p[0]) - mx) ** 2 + (spec.x === 'step' ? 0 : (Y(p[1]) - my) ** 2);
      if (far < distance) { distance = far; best = i; }
    });
    return best;
  };
  image.addEventListener('mousemove', event => { const found = nearest(event); if (found >= 0) show(found); else hide(); });
  image.addEventListener('mouseleave', hide);
  if (spec.open) {
    image.classList.add('opens');
    image.addEventListener('click', event => { const found = nearest(event); if (found >= 0) spec.open(ordered[found]); });
  }
  frame.onkeydown = event => {
    const move = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9}[event.key];
    if (move) { event.preventDefault(); show(Math.min(ordered.length - 1, Math.max(0, at < 0 && move > 0 ? 0 : at + move)), true); }
    else if (event.key === 'Enter' && at >= 0 && spec.open) spec.open(ordered[at]);
    else if (event.key === 'Escape') hide();
  };
  frame.onblur = hide;
}

function tell(lines, image, share) {
  const tip = document.getElementById('tip');
  tip.hidden = !lines;
  if (!lines) return;
  tip.replaceChildren(...lines.filter(Boolean).map((line, i) => el(i ? 'div' : 'strong', null, line)));
  const box = image.getBoundingClientRect();
  const left = box.left + share * box.width;
  tip.style.left = Math.max(4, Math.min(window.innerWidth - tip.offsetWidth - 4, left > window.innerWidth / 2 ? left - tip.offsetWidth - 14 : left + 14)) + 'px';
  tip.style.top = Math.max(4, box.top + 14) + 'px';
}

function spark(values, width, height) {
  const image = svg('svg', {class: 'spark', viewBox: `0 0 ${width} ${height}`, width, height, 'aria-hidden': 'true'});
  if (values.length < 2) return image;
  const low = Math.min(...values), high = Math.max(...values), middle = (low + high) / 2;
  const span = Math.max(high - low, Math.abs(middle) * 0.05) || 1;
  const path = values.map((v, i) => (2 + i / (values.length - 1) * (width - 4)).toFixed(1) + ' ' + (height / 2 - (v - middle) / span * (height - 4)).toFixed(1));
  image.append(svg('path', {class: 'line c0', d: 'M' + path.join('L')}));
  return image;
}
