// The overview: four panels, what changed, why runs failed, and what is no longer read as it was meant.
const COLORS = 8, LAST = 100;

function overview(filter) {
  const runs = chosen(filter);
  return [
    el('h1', null, D.title),
    figures(runs),
    !runs.length && el('p', {class: 'empty'}, 'No run fits the filter.'),
    el('div', {class: 'grid2'},
      panel('Last loss by model', 'the last training loss of each run', runs, 'model', 'loss', 'loss', filter),
      panel('Least validation loss by model', 'the least validation loss of each run', runs, 'model', 'val_loss', 'val_loss', filter),
      anyPanel(runs, filter),
      panel('Throughput by preset', 'median tokens/s of each run', runs, 'preset', 'tokens', 'tokens_per_s', filter),
      panel('Goodput by lane', 'share of the wall time in steps that stand', runs, 'lane', 'goodput', 'goodput_ratio', filter),
      panel('Peak memory by preset', 'largest steady value of each run’s first memory metric', runs, 'preset', 'memory', 'peak_memory_bytes', filter),
      checksPanel(runs, filter)),
    changesSection(runs),
    taxonomy(runs, filter),
    variesSection(runs),
    costSection(runs),
    driftSection(6),
  ];
}

function figures(runs) {
  const dated = runs.filter(i => R.at[i] !== null), healthy = runs.filter(i => isHealthy(i)).length;
  const span = dated.length ? `${day(R.at[dated[0]])} to ${day(R.at[dated[dated.length - 1]])}` : 'no run has a time';
  const lanes = new Set(runs.map(i => text(R.lane[i]) + '\n' + text(R.preset[i]))).size;
  const inside = new Set(runs), changes = D.lanes.flatMap(lane => lane.metrics.flatMap(m => m.changes)).filter(c => inside.has(c.run));
  const worse = changes.filter(c => c.outcome === 'worse').length;
  const facts = [[count(runs.length), runs.length === 1 ? 'run' : 'runs'], [count(lanes), lanes === 1 ? 'lane' : 'lanes'],
    [runs.length ? num(100 * healthy / runs.length, 3) + ' %' : '–', 'healthy'],
    [count(changes.length), 'changes, ' + count(worse) + ' for the worse'], [count(D.drift.length), D.drift.length === 1 ? 'sign of drift' : 'signs of drift'],
    ...(D.quarantined ? [[count(D.quarantined), D.quarantined === 1 ? 'log without a receipt' : 'logs without a receipt']] : [])];
  return el('div', null, el('p', {class: 'span'}, span),
    el('ul', {class: 'figures'}, facts.map(([value, name]) => el('li', null, el('b', null, value), ' ' + name))));
}

function panel(title, note, runs, field, column, metric, filter, values = R[column]) {
  const shown = runs.filter(i => values[i] !== null && values[i] !== undefined), dated = shown.filter(i => R.at[i] !== null);
  const timed = dated.length > 0, drawn = timed ? dated : shown;
  const groups = tally(drawn.map(i => text(R[field][i]))).map(([name]) => name);
  const color = new Map(groups.slice(0, COLORS - 1).map((name, i) => [name, i]));
  const series = groups.slice(0, COLORS - 1).map((name, i) => ({name, color: i, points: []}));
  if (groups.length >= COLORS) series.push({name: null, color: 'x', points: []});
  drawn.forEach((run, i) => series[color.has(text(R[field][run])) ? color.get(text(R[field][run])) : series.length - 1].points.push([timed ? R.at[run] : i, values[run], run]));
  for (const one of series) one.lines = one.name === null || !timed ? [] : byLane(one.points).map(rolling);
  const without = runs.length - shown.length, undated = timed ? shown.length - dated.length : 0;
  const notes = [without && plural(without, 'run') + ' without this figure', undated && plural(undated, 'run') + ' without a time',
    !timed && shown.length && 'no run has a time: in the order of their digests',
    column === 'tokens' && drawn.some(i => R.recomputed[i]) && 'where it is not printed: recomputed from batch and step time'].filter(Boolean);
  const body = drawn.length ? [chart({metric, series, x: timed ? 'time' : 'run', linear: column === 'goodput', fixed: column === 'goodput', bounds: column === 'goodput' ? [0, 1] : null,
    describe: `${title}: ${drawn.length} runs in ${groups.length} groups. Arrow keys walk through the runs, Enter opens one.`,
    open: point => { location.hash = runPlace(point[2]); },
    say: point => [measure(metric, point[1]), text(R.name[point[2]]), [text(R.lane[point[2]]), text(R.preset[point[2]])].filter(Boolean).join(' · '), iso(R.at[point[2]])]}),
    el('ul', {class: 'legend'}, series.map(one => el('li', null, el('span', {class: 'swatch c' + one.color}),
      one.name === null ? plural(groups.length - COLORS + 1, 'other ' + field) : el('a', {href: place('', field === 'model' ? {...filter, q: one.name} : {...filter, [field]: one.name})}, one.name || 'no ' + field))))]
    : el('p', {class: 'empty'}, column === 'goodput' ? 'No receipt here has a goodput: their logs give no evidence of wall-clock time.' : 'No receipt here has this figure.');
  return el('section', {class: 'panel', 'data-panel': column}, el('h2', null, title), el('p', {class: 'note'}, note + (timed ? '; lines: median over neighbouring runs of a lane' : '')), body,
    notes.length > 0 && el('p', {class: 'note'}, notes.join(' · ')));
}

// One figure of any metric that a run prints or that was recomputed: the median where it has a steady state, else the last value.
function metricValues(metric) {
  return ALL.map(i => {
    const m = ((D.details[i] || {}).metrics || []).find(entry => text(entry[0]) === metric);
    return m ? m[text(m[2]) === 'steady' ? 12 : 8] : null;
  });
}

function anyPanel(runs, filter) {
  const names = tally(runs.flatMap(i => ((D.details[i] || {}).metrics || []).map(m => text(m[0])))).map(([name]) => name);
  if (!names.length) return null;
  const metric = names.includes(filter.metric) ? filter.metric : names.find(name => name === 'step_time_s') || names[0];
  const choose = el('select', {'aria-label': 'Metric', change: event => { location.replace(place('', {...filter, metric: event.target.value})); }},
    names.slice().sort().map(name => el('option', {value: name, selected: name === metric}, label(name))));
  const body = panel('Any metric: ' + label(metric), 'median of the steady state, else the last value', runs, 'model', 'any', metric, filter, metricValues(metric));
  body.querySelector('h2').after(el('p', null, choose));
  return body;
}

// Runs of one preset on two kinds of hardware have two levels: each lane has a line of its own, and runs of no lane have none.
function byLane(points) {
  const found = new Map();
  for (const point of points.filter(p => R.lane[p[2]] !== null || R.preset[p[2]] !== null)) {
    const key = R.lane[point[2]] + ' ' + R.preset[point[2]];
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(point);
  }
  return [...found.values()];
}

function checksPanel(runs, filter) {
  const last = runs.slice(-LAST);
  const rows = D.checks.map((name, at) => {
    const marks = last.map(i => R.checks[i][at]), good = marks.filter(m => m === '1').length, bad = marks.filter(m => m === '0').length;
    return {name, good, bad, unknown: marks.length - good - bad};
  });
  const bar = row => {
    const parts = [['good', row.good], ['bad', row.bad], ['unknown', row.unknown]].filter(([, n]) => n);
    return el('span', {class: 'bar', 'aria-hidden': 'true'}, parts.map(([tone, n]) => { const part = el('i', {class: tone}); part.style.flexGrow = n; return part; }));
  };
  return el('section', {class: 'panel', 'data-panel': 'checks'}, el('h2', null, 'Checks'), el('p', {class: 'note'}, `of the last ${plural(last.length, 'run')}; the rate is of those that the log can tell`),
    el('div', {class: 'strip'}, last.map(i => el('a', {href: runPlace(i), class: STATES[R.state[i]][0], title: `${text(R.name[i])}: ${STATES[R.state[i]][1]}`, 'aria-label': `${text(R.name[i])}: ${STATES[R.state[i]][1]}`}))),
    el('table', {class: 'checks'}, el('thead', null, el('tr', null, ['check', 'pass rate', '', 'fail', 'unknown'].map((t, i) => el('th', {class: i === 1 || i > 2 ? 'n' : null}, t)))),
      el('tbody', null, rows.map((row, i) => el('tr', null, el('th', {scope: 'row'}, row.name.replaceAll('_', ' '), i < 4 && el('span', {class: 'core', title: 'decides whether a run is healthy'}, ' ●')),
        el('td', {class: 'n'}, row.good + row.bad ? num(100 * row.good / (row.good + row.bad), 3) + ' %' : '–'), el('td', null, bar(row)), el('td', {class: 'n' + (row.bad ? ' bad' : '')}, row.bad || '·'), el('td', {class: 'n'}, row.unknown || '·'))))),
    el('p', {class: 'note'}, el('span', {class: 'core'}, '●'), ' decides whether a run is healthy · ', el('a', {href: place('runs', {...filter, state: 'failing'})}, 'runs that are not')));
}

function changesSection(runs) {
  const inside = new Set(runs);
  const found = D.lanes.flatMap((lane, i) => lane.metrics.flatMap(m => m.changes.map(c => ({lane, i, metric: m.metric, c})))).filter(f => inside.has(f.c.run)).sort((a, b) => b.c.run - a.c.run);
  if (!D.lanes.length) return null;
  return el('section', null, el('h2', null, 'What changed'), found.length ? el('ul', {class: 'changes'}, found.slice(0, 12).map(f => changeItem(f.metric, f.c, f)))
    : el('p', {class: 'empty'}, 'No figure of a lane changed its level.'), found.length > 12 && el('p', {class: 'note'}, plural(found.length - 12, 'older change') + ': see the ', el('a', {href: place('lanes')}, 'lanes')));
}

function changeItem(metric, c, from) {
  const sign = {better: '✓', worse: '✗', different: '▸'}[c.outcome];
  return el('li', {class: c.outcome}, el('strong', null, `${sign} ${label(metric)} ${change(metric, c.before, c.after)}`),
    c.kind === 'creep' ? ' creeps from ' : ' from ', day(R.at[c.run]), ' (', runLink(c.run), ')', from && [' in ', el('a', {href: lanePlace(from.i)}, laneName(from.lane))],
    el('span', {class: 'dim'}, `  ${measure(metric, c.before)} → ${measure(metric, c.after)}`),
    el('ul', null, c.fields.map(([field, before, after]) => el('li', null, el('b', null, text(field)), ' ', el('span', null, text(before)), ' → ', el('span', null, text(after)))),
      c.more > 0 && el('li', {class: 'dim'}, plural(c.more, 'more field')), !c.fields.length && el('li', {class: 'dim'}, 'no recorded header field changed there'),
      c.commits && el('li', {class: 'dim'}, 'commits ', el('code', null, c.commits[0].slice(0, 12) + '..' + c.commits[1].slice(0, 12)))));
}

function taxonomy(runs, filter) {
  const failed = runs.filter(i => R.reason[i] !== null);
  const rows = tally(failed.map(i => R.reason[i])).map(([reason, n]) => {
    const of = failed.filter(i => R.reason[i] === reason);
    return {reason, n, of, lanes: tally(of.map(i => text(R.lane[i]) || 'no lane'))};
  });
  const silent = runs.filter(i => R.reason[i] === null && R.state[i] === FAILING).length;
  return el('section', {'data-panel': 'failures'}, el('h2', null, 'Why runs failed'), !rows.length ? el('p', {class: 'empty'}, 'No run tells of a failure.')
    : el('div', {class: 'scroll'}, el('table', null, el('thead', null, el('tr', null, ['reason', 'kind', 'runs', 'share', 'lanes', 'first', 'last'].map(t => el('th', {class: t === 'runs' || t === 'share' ? 'n' : null}, t)))),
      el('tbody', null, rows.map(row => el('tr', null, el('th', {scope: 'row'}, el('a', {href: place('runs', {...filter, reason: text(row.reason)})}, text(row.reason))), el('td', null, text(R.category[row.of[0]])), el('td', {class: 'n'}, count(row.n)),
        el('td', {class: 'n'}, num(100 * row.n / failed.length, 3) + ' %'), el('td', null, row.lanes.slice(0, 3).map(([name, n]) => `${name} ${n}`).join(', ') + (row.lanes.length > 3 ? ` and ${row.lanes.length - 3} more` : '')),
        el('td', {class: 'day'}, day(R.at[row.of[0]])), el('td', {class: 'day'}, day(R.at[row.of[row.of.length - 1]]))))))),
    rows.length > 0 && bySignature(failed),
    silent > 0 && el('p', {class: 'note'}, plural(silent, 'run') + (silent === 1 ? ' is' : ' are') + ' not healthy and the log gives no reason'));
}

function bySignature(failed) {
  const found = tally(failed.filter(i => R.signature[i] !== null).map(i => R.signature[i])), shown = found.slice(0, 12);
  return [el('h3', null, 'By message'), el('div', {class: 'scroll'}, el('table', null, el('thead', null, el('tr', null, ['what failed', 'runs', 'first', 'last', 'example'].map(t => el('th', {class: t === 'runs' ? 'n' : null}, t)))),
    el('tbody', null, shown.map(([signature, n]) => {
      const of = failed.filter(i => R.signature[i] === signature), dated = of.filter(i => R.at[i] !== null);
      return el('tr', null, el('th', {scope: 'row', class: 'message'}, el('code', null, text(signature))), el('td', {class: 'n'}, count(n)), el('td', {class: 'day'}, dated.length ? day(R.at[dated[0]]) : '–'), el('td', {class: 'day'}, dated.length ? day(R.at[dated[dated.length - 1]]) : '–'), el('td', null, runLink(of[of.length - 1])));
    })))), found.length > shown.length && el('p', {class: 'note'}, plural(found.length - shown.length, 'rarer message'))];
}

// Settings of the chosen runs with more than one value; what differs in every run, such as a name, tells nothing.
function variesSection(runs) {
  const values = new Map();
  for (const run of runs) for (const i of (D.details[run] || {}).header || []) {
    const field = text(D.facts[i][0]);
    if (!values.has(field)) values.set(field, []);
    values.get(field).push(text(D.facts[i][1]));
  }
  const rows = [...values].map(([field, all]) => [field, tally(all), all.length]).filter(([, kinds, n]) => kinds.length > 1 && (kinds.length < n || n < 4)).sort((a, b) => b[2] - a[2] || (a[0] < b[0] ? -1 : 1));
  if (!rows.length) return null;
  return el('section', {'data-panel': 'varies'}, el('h2', null, 'What varies'), el('p', {class: 'note'}, 'settings of these runs with more than one value'),
    table(['setting', 'values', 'runs', 'most frequent'], rows.slice(0, 15).map(([field, kinds, n]) => [field, count(kinds.length), count(n), kinds.slice(0, 4).map(([value, times]) => `${value} (${times})`).join(', ') + (kinds.length > 4 ? ', …' : '')]), [1, 2]),
    rows.length > 15 && el('p', {class: 'note'}, plural(rows.length - 15, 'more setting')));
}

function costSection(runs) {
  const known = runs.filter(i => R.device_hours[i] !== null || R.cost[i] !== null);
  if (!known.length) return null;
  const sum = (of, key) => of.reduce((total, i) => total + (R[key][i] || 0), 0);
  const row = (name, of) => [name, count(of.length), num(sum(of, 'device_hours'), 4), tally(of.filter(i => R.cost[i] !== null).map(i => text(R.currency[i]))).map(([unit]) => num(sum(of.filter(i => text(R.currency[i]) === unit), 'cost'), 4) + ' ' + unit).join(', ') || '–'];
  return el('section', {'data-panel': 'cost'}, el('h2', null, 'Cost'), table(['runs', 'number', 'device hours', 'cost'], [row('all with a figure', known), row('not healthy', known.filter(i => R.state[i] === FAILING))], [1, 2]),
    known.length < runs.length && el('p', {class: 'note'}, plural(runs.length - known.length, 'run') + ' without a figure'));
}

const SIGNS = {vanished: 'vanished metric', near_miss: 'near miss', generic: 'generic reading', problem: 'problem', unread: 'unread lines', inconsistent: 'inconsistent figure', unrecognised: 'not recognised'};

function driftSection(most) {
  const shown = D.drift.slice(0, most || D.drift.length);
  return el('section', {'data-panel': 'drift'}, el('h2', null, 'Signs of drift'), el('p', {class: 'note'}, 'where a log may no longer be read as it was meant'), !shown.length ? el('p', {class: 'empty'}, 'None: every log was read as its grammar says.')
    : el('div', {class: 'scroll'}, el('table', null, el('thead', null, el('tr', null, ['sign', 'what', 'runs', 'of the last 20', 'first', 'last', 'example'].map((t, i) => el('th', {class: i === 2 || i === 3 ? 'n' : null}, t)))),
      el('tbody', null, shown.map(a => el('tr', {class: a.recent ? null : 'over'}, el('th', {scope: 'row'}, SIGNS[a.kind] || a.kind), el('td', null, text(a.about)), el('td', {class: 'n'}, el('a', {href: place('runs', {sign: D.drift.indexOf(a)})}, count(a.runs.length))),
        el('td', {class: 'n'}, count(a.recent)), el('td', {class: 'day'}, day(R.at[a.runs[0]])), el('td', {class: 'day'}, day(R.at[a.runs[a.runs.length - 1]])), el('td', {class: 'example'}, el('code', null, text(a.example)))))))),
    shown.length < D.drift.length && el('p', {class: 'note'}, el('a', {href: place('drift')}, `all ${D.drift.length} signs`)));
}

function driftPage() {
  return [el('h1', null, 'Drift'), driftSection(0),
    el('section', null, el('h2', null, 'Logs without a receipt'), !D.quarantined ? el('p', {class: 'empty'}, 'None in quarantine.')
      : [el('div', {class: 'scroll'}, el('table', null, el('thead', null, el('tr', null, ['log', 'exit', 'error', 'why'].map(t => el('th', null, t)))), el('tbody', null, D.quarantine.map(q => el('tr', null, q.map(part => el('td', null, String(part)))))))),
        D.quarantined > D.quarantine.length && el('p', {class: 'note'}, `the first ${D.quarantine.length} of ${count(D.quarantined)}`)])];
}
