// The overview: four panels, what changed, why runs failed, and what may be misread.
const COLORS = 8, LAST = 100, FEWEST = 5;

function overview(filter) {
  const runs = chosen(filter), compared = runs.filter(i => LANE_OF.has(i) && D.lanes[LANE_OF.get(i)].runs.length >= FEWEST);
  return [
    el('h1', null, D.title),
    figures(runs),
    !runs.length && el('p', {class: 'empty'}, 'No run fits the filter.'),
    latest(runs, filter),
    taxonomy(runs),
    changesSection(runs),
    compared.length ? el('div', {class: 'grid2'},
      panel('Last loss', 'the last training loss of each run', compared, 'loss', 'loss'),
      panel('Least validation loss', 'the least validation loss of each run', compared, 'val_loss', 'val_loss'),
      anyPanel(compared, filter),
      panel('Throughput', 'median tokens/s of each run', compared, 'tokens', 'tokens_per_s'),
      panel('Time in steps', 'share of the wall time', compared, 'goodput', 'goodput_ratio'),
      panel('Peak memory', 'largest steady value of each run’s first memory metric', compared, 'memory', 'peak_memory_bytes'))
      : runs.length > 0 && el('p', {class: 'note'}, 'No charts: no five runs with a time share a lane, or trainer, model, hardware and ranks.'),
    checksPanel(runs, filter),
    variesSection(runs),
    costSection(runs),
    documentsSection(),
    doubtsSection(6),
  ];
}

function figures(runs) {
  const dated = runs.filter(i => R.at[i] !== null);
  const span = dated.length ? `${day(R.at[dated[0]])} to ${day(R.at[dated[dated.length - 1]])}` : 'no run has a time';
  const lanes = new Set(runs.map(i => LANE_OF.get(i)).filter(lane => lane !== undefined)).size;
  const inside = new Set(runs), changes = D.lanes.flatMap(lane => lane.metrics.flatMap(m => m.changes)).filter(c => inside.has(c.run));
  const worse = changes.filter(c => c.outcome === 'worse').length;
  const facts = [[count(runs.length), runs.length === 1 ? 'run' : 'runs'], ...outcomes(runs).map(([n, word]) => [count(n), word]), [count(lanes), lanes === 1 ? 'lane or group' : 'lanes and groups'],
    ...(changes.length ? [[count(changes.length), 'changes, ' + count(worse) + ' for the worse']] : []), [count(D.drift.length), D.drift.length === 1 ? 'doubt' : 'doubts'],
    ...(D.quarantined ? [[count(D.quarantined), D.quarantined === 1 ? 'log without a receipt' : 'logs without a receipt']] : [])];
  return el('div', null, el('p', {class: 'span'}, span),
    el('ul', {class: 'figures'}, facts.map(([value, name]) => el('li', null, el('b', null, value), ' ' + name))));
}

function latest(runs, filter) {
  if (!runs.length) return null;
  const undated = runs.filter(i => R.at[i] === null), shown = [...runs.filter(i => R.at[i] !== null).reverse(), ...undated].slice(0, D.latest);
  return el('section', {'data-panel': 'latest'}, el('h2', null, shown.length < runs.length ? `The last ${shown.length} runs` : 'Runs'),
    table(['when', 'outcome', 'steps', 'loss', 'time', 'name', 'cause'], shown.map(i => [iso(R.at[i]), outcome(i), R.step[i] === null ? '–' : R.step[i] + (R.planned[i] ? '/' + R.planned[i] : ''), R.loss[i] === null ? '–' : num(R.loss[i], 4), measure('training_time_s', R.wall[i]), runLink(i), text(R.cause[i]) || '–']), [2, 3, 4]),
    shown.length < runs.length && el('p', {class: 'note'}, el('a', {href: place('runs', filter)}, `all ${count(runs.length)}`)));
}

// Runs of different models or hardware are not one course: only runs of a lane or group are drawn, each with its own colour.
function panel(title, note, runs, column, metric, values = R[column]) {
  const name = i => laneName(D.lanes[LANE_OF.get(i)]);
  const shown = runs.filter(i => values[i] !== null && values[i] !== undefined), dated = shown.filter(i => R.at[i] !== null);
  const timed = dated.length > 0, drawn = timed ? dated : shown;
  const groups = tally(drawn.map(name)).map(([one]) => one);
  const color = new Map(groups.slice(0, COLORS - 1).map((name, i) => [name, i]));
  const series = groups.slice(0, COLORS - 1).map((name, i) => ({name, color: i, points: []}));
  if (groups.length >= COLORS) series.push({name: null, color: 'x', points: []});
  drawn.forEach((run, i) => series[color.has(name(run)) ? color.get(name(run)) : series.length - 1].points.push([timed ? R.at[run] : i, values[run], run]));
  for (const one of series) one.lines = one.name === null || !timed ? [] : [rolling(one.points)];
  const without = runs.length - shown.length, undated = timed ? shown.length - dated.length : 0;
  const notes = [without && plural(without, 'run') + ' without this figure', undated && plural(undated, 'run') + ' without a time',
    !timed && shown.length && 'no run has a time: in the order of their digests',
    column === 'tokens' && drawn.some(i => R.recomputed[i]) && 'where it is not printed: recomputed from batch and step time'].filter(Boolean);
  if (!drawn.length) return null;
  const body = [chart({metric, series, x: timed ? 'time' : 'run', linear: column === 'goodput', fixed: column === 'goodput', bounds: column === 'goodput' ? [0, 1] : null,
    describe: `${title}: ${drawn.length} runs in ${groups.length} groups. Arrow keys walk through the runs, Enter opens one.`,
    open: point => { location.hash = runPlace(point[2]); },
    say: point => [measure(metric, point[1]), text(R.name[point[2]]), [text(R.lane[point[2]]), text(R.preset[point[2]])].filter(Boolean).join(' · '), iso(R.at[point[2]])]}),
    el('ul', {class: 'legend'}, series.map(one => el('li', null, el('span', {class: 'swatch c' + one.color}),
      one.name === null ? plural(groups.length - COLORS + 1, 'other group') : el('a', {href: lanePlace(D.lanes.findIndex(lane => laneName(lane) === one.name))}, one.name))))];
  return el('section', {class: 'panel', 'data-panel': column}, el('h2', null, title), el('p', {class: 'note'}, note + (timed ? '; lines: median over neighbouring runs of a lane' : '')), body,
    notes.length > 0 && el('p', {class: 'note'}, notes.join(' · ')));
}

// One figure of any metric that a run prints or that was recomputed: the median where it has a steady state, else the last value.
function metricValues(metric) {
  return ALL.map(i => {
    const m = ((D.details[i] || {}).metrics || []).find(entry => text(entry[0]) === metric);
    return m ? m[text(m[2]) === 'steady' ? 11 : 8] : null;
  });
}

function anyPanel(runs, filter) {
  const names = tally(runs.flatMap(i => ((D.details[i] || {}).metrics || []).map(m => text(m[0])))).map(([name]) => name);
  if (!names.length) return null;
  const metric = names.includes(filter.metric) ? filter.metric : names.find(name => name === 'step_time_s') || names[0];
  const choose = el('select', {'aria-label': 'Metric', change: event => { location.replace(place('', {...filter, metric: event.target.value})); }},
    names.slice().sort().map(name => el('option', {value: name, selected: name === metric}, label(name))));
  const body = panel('Any metric: ' + label(metric), 'median of the steady state, else the last value', runs, 'any', metric, metricValues(metric));
  if (body) body.querySelector('h2').after(el('p', null, choose));
  return body;
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
      el('tbody', null, rows.map((row, i) => el('tr', null, el('th', {scope: 'row'}, row.name.replaceAll('_', ' '), i < 4 && el('span', {class: 'core', title: 'if false, the run failed'}, ' ●')),
        el('td', {class: 'n'}, row.good + row.bad ? num(100 * row.good / (row.good + row.bad), 3) + ' %' : '–'), el('td', null, bar(row)), el('td', {class: 'n' + (row.bad ? ' bad' : '')}, row.bad || '·'), el('td', {class: 'n'}, row.unknown || '·'))))),
    el('p', {class: 'note'}, el('span', {class: 'core'}, '●'), ' if false, the run failed · ', el('a', {href: place('runs', {...filter, state: 'failed'})}, 'failed runs')));
}

function changesSection(runs) {
  const inside = new Set(runs);
  const found = D.lanes.flatMap((lane, i) => lane.metrics.flatMap(m => m.changes.map(c => ({lane, i, metric: m.metric, c})))).filter(f => inside.has(f.c.run)).sort((a, b) => b.c.run - a.c.run);
  if (!D.lanes.length) return null;
  return el('section', null, el('h2', null, 'What changed'), found.length ? el('ul', {class: 'changes'}, found.slice(0, 12).map(f => changeItem(f.metric, f.c, f)))
    : el('p', {class: 'empty'}, 'No figure of a lane or large group changed its level.'), found.length > 12 && el('p', {class: 'note'}, plural(found.length - 12, 'older change') + ': see the ', el('a', {href: place('lanes')}, 'lanes')));
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

function taxonomy(runs) {
  const bad = runs.filter(i => ENDED_BADLY.includes(R.state[i])), known = bad.filter(i => R.signature[i] !== null);
  const found = tally(known.map(i => R.signature[i])), shown = found.slice(0, D.latest), silent = bad.length - known.length;
  return el('section', {'data-panel': 'failures'}, el('h2', null, 'Failures by cause'), !bad.length ? el('p', {class: 'empty'}, 'No run failed, was stopped or is cut off.') : el('p', {class: 'note'}, `${count(bad.length)} of ${plural(runs.length, 'run')}: ` + outcomes(bad).map(([n, word]) => count(n) + ' ' + word).join(', ')),
    shown.length > 0 && el('div', {class: 'scroll'}, el('table', null, el('thead', null, el('tr', null, ['cause', 'outcome', 'runs', 'first', 'last', 'example'].map(t => el('th', {class: t === 'runs' ? 'n' : null}, t)))),
      el('tbody', null, shown.map(([signature, n]) => {
        const of = known.filter(i => R.signature[i] === signature), dated = of.filter(i => R.at[i] !== null), last = of[of.length - 1], causes = of.map(i => text(R.cause[i]).split(' '));
        const when = i => el('td', {class: 'day'}, i === undefined ? '–' : day(R.at[i]));
        return el('tr', null, el('th', {scope: 'row', class: 'message'}, causes[0].filter((word, j) => causes.every(other => other[j] === word)).join(' ') + ' ', el('code', null, text(signature).replace(/^\w+: /, ''))), el('td', null, outcome(last)), el('td', {class: 'n'}, count(n)), when(dated[0]), when(dated[dated.length - 1]), el('td', null, runLink(last)));
      })))),
    found.length > shown.length && el('p', {class: 'note'}, plural(found.length - shown.length, 'rarer cause')),
    silent > 0 && el('p', {class: 'note'}, plural(silent, 'run') + ' without a reason in the log'));
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
  return el('section', {'data-panel': 'cost'}, el('h2', null, 'Cost'), table(['runs', 'number', 'device hours', 'cost'], [row('all with a figure', known), row('failed', known.filter(i => R.state[i] === FAILED))], [1, 2]),
    known.length < runs.length && el('p', {class: 'note'}, plural(runs.length - known.length, 'run') + ' without a figure'));
}

const SIGNS = {vanished: 'vanished metric', near_miss: 'line almost read', generic: 'generic reading', problem: 'doubtful reading', unread: 'unread lines', inconsistent: 'inconsistent figure', unrecognised: 'not recognised'};

function doubtsSection(most) {
  const shown = D.drift.slice(0, most || D.drift.length);
  return el('section', {'data-panel': 'doubts'}, most && el('h2', null, 'Doubts'), el('p', {class: 'note'}, 'where logs may be misread'), !shown.length ? el('p', {class: 'empty'}, 'None: every log was read as its grammar says.')
    : el('div', {class: 'scroll'}, el('table', null, el('thead', null, el('tr', null, ['doubt', 'what', 'runs', 'of the last 20', 'first', 'last', 'example'].map((t, i) => el('th', {class: i === 2 || i === 3 ? 'n' : null}, t)))),
      el('tbody', null, shown.map(a => el('tr', {class: a.recent ? null : 'over'}, el('th', {scope: 'row'}, SIGNS[a.kind] || a.kind), el('td', null, text(a.about)), el('td', {class: 'n'}, el('a', {href: place('runs', {sign: D.drift.indexOf(a)})}, count(a.runs.length))),
        el('td', {class: 'n'}, count(a.recent)), el('td', {class: 'day'}, day(R.at[a.runs[0]])), el('td', {class: 'day'}, day(R.at[a.runs[a.runs.length - 1]])), el('td', {class: 'example'}, el('code', null, text(a.example)))))))),
    shown.length < D.drift.length && el('p', {class: 'note'}, el('a', {href: place('doubts')}, `all ${D.drift.length}`)));
}

function doubtsPage() {
  return [el('h1', null, 'Doubts'), doubtsSection(0),
    el('section', null, el('h2', null, 'Logs without a receipt'), !D.quarantined ? el('p', {class: 'empty'}, 'None in quarantine.')
      : [el('div', {class: 'scroll'}, el('table', null, el('thead', null, el('tr', null, ['log', 'exit', 'error', 'why'].map(t => el('th', null, t)))), el('tbody', null, D.quarantine.map(q => el('tr', null, q.map(part => el('td', null, String(part)))))))),
        D.quarantined > D.quarantine.length && el('p', {class: 'note'}, `the first ${D.quarantine.length} of ${count(D.quarantined)}`)])];
}
