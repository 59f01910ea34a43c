// The page of one run: verdict, failure, curves, statistics, and where all of it comes from.

function runPage(run) {
  const d = D.details[run], lane = LANE_OF.get(run), state = STATES[R.state[run]];
  const runs = lane === undefined ? [] : D.lanes[lane].runs, at = runs.indexOf(run);
  const step = R.step[run] === null ? null : 'step ' + count(R.step[run]) + (R.planned[run] ? ' of ' + count(R.planned[run]) : '');
  const facts = [R.at[run] !== null && iso(R.at[run]) + ' UTC', text(R.accelerator[run]), step, R.loss[run] !== null && 'loss ' + num(R.loss[run], 4),
    R.tokens[run] !== null && measure('tokens_per_s', R.tokens[run]), R.commit[run] !== null && 'commit ' + text(R.commit[run]).slice(0, 12), text(R.grammar[run])];
  return [
    D.kind === 'store' && el('p', {class: 'crumbs'}, el('a', {href: place('runs')}, 'Runs'), lane !== undefined && [' / ', el('a', {href: lanePlace(lane)}, laneName(D.lanes[lane]))],
      at > 0 && el('a', {class: 'step', href: runPlace(runs[at - 1]), rel: 'prev'}, '← earlier'), at >= 0 && at < runs.length - 1 && el('a', {class: 'step', href: runPlace(runs[at + 1]), rel: 'next'}, 'later →')),
    el('h1', null, text(R.name[run]), ' ', el('span', {class: 'badge ' + state[0]}, state[1])),
    D.kind === 'run' ? el('pre', {class: 'card'}, PLAIN.trimEnd().split('\n').map(line => el('span', null, line + '\n'))) : el('p', {class: 'span'}, facts.filter(Boolean).join(' · ')),
    D.kind === 'run' && (R.lane[run] !== null || R.preset[run] !== null) && el('p', {class: 'span'}, [text(R.lane[run]), text(R.preset[run])].filter(Boolean).join(' · ')),
    d ? detailSections(run, d) : [checkList(D.checks.map((name, i) => [name, {1: true, 0: false, '-': null}[R.checks[run][i]]])),
      el('p', {class: 'empty'}, 'The rest of this run is left out, so that a report of so many runs stays below 8 MB. Its receipt has it.')],
  ];
}

function detailSections(run, d) {
  return [D.kind === 'run' && curves(d), d.failure || R.reason[run] !== null ? failure(run, d.failure || {}) : null, checkList(d.checks || []), D.kind === 'store' && curves(d), statistics(d), goodput(d), documentsOf(run), doubts(d), sinceBefore(run), provenance(d)];
}

function checkList(checks) {
  return el('ul', {class: 'checklist'}, checks.map(([name, value], i) => {
    const tone = value === true ? 'good' : value === false ? (i < 4 ? 'bad' : 'warn') : 'unknown';
    return el('li', {class: tone}, el('span', {'aria-hidden': 'true'}, value === true ? '✓' : value === false ? '✗' : '?'), ' ' + name.replaceAll('_', ' '), el('span', {class: 'sr'}, value === null ? ': unknown' : value ? ': true' : ': false'));
  }));
}

function failure(run, f) {
  const said = (f.message || '').split('\n')[0].slice(0, 80), tail = f.tail || [], at = said ? tail.findLastIndex(line => line.includes(said)) : -1;
  return el('section', {class: 'failure ' + STATES[R.state[run]][0]}, el('h2', null, STATES[R.state[run]][1].slice(2), ': ', text(R.cause[run]) || text(R.reason[run]), el('span', {class: 'dim'}, f.line && ' · log:' + f.line)),
    f.message && el('p', {class: 'message'}, f.message),
    f.tail && [el('h3', null, 'The end of the log'), el('pre', {class: 'tail end', tabindex: '0'}, at < 0 ? tail.join('\n') : [tail.slice(0, at).map(line => line + '\n'), el('b', {class: 'bad'}, tail[at]), tail.slice(at + 1).map(line => '\n' + line)])]);
}

function curves(d) {
  const found = d.curves || [];
  if (!found.length) return D.kind === 'store' ? el('p', {class: 'note'}, 'A receipt keeps statistics, not every record: ', el('code', null, 'receipt parse LOG --html FILE'), ' draws the curves of a log.') : null;
  const several = new Set(found.map(c => c[0])).size > 1;
  // Of memory, the first record alone is often lower: a curve that is constant from the second on shows nothing.
  const flatness = ([, , , flat, bad]) => !bad.length && flat.length > 4 && flat.every((value, i) => i % 2 === 0 || i < 3 || value === flat[3]);
  const rises = name => name in D.metrics && D.metrics[name][3] === 'counter' && !name.endsWith('_count');
  const constant = found.filter(flatness).map(([, name, , flat]) => `${label(text(name))} ${measure(text(name), flat[3])}` + (flat[1] === flat[3] ? '' : ` (first ${measure(text(name), flat[1])})`));
  return el('section', null, el('h2', null, 'Curves'), constant.length > 0 && el('p', {class: 'note'}, 'constant: ' + constant.join(' · ')), el('div', {class: 'grid2'}, found.filter(c => !flatness(c) && !rises(text(c[1]))).map(([phase, name, records, flat, bad, broken]) => {
    const metric = text(name), points = [];
    for (let i = 0; i < flat.length; i += 2) points.push([flat[i], flat[i + 1]]);
    const entry = (d.metrics || []).find(m => text(m[0]) === metric && m[1] === 0);
    const steady = entry && text(entry[2]) === 'steady' && phase === found[0][0] && entry[9] !== null && entry[10] > entry[9] ? [entry[9], entry[10]] : null;
    const room = steady && (steady[1] - steady[0]) * 0.15, bounds = steady && [Math.max(steady[0] - room, steady[0] >= 0 ? 0 : -Infinity), steady[1] + room];
    const outside = bounds ? points.filter(p => p[1] < bounds[0] || p[1] > bounds[1]).length : 0;
    const jumps = (phase === found[0][0] && (d.jumps || {})[metric]) || [0, []];
    const notes = [`${plural(records, 'record')}` + (records > points.length + broken ? `, drawn from ${count(points.length)}: the least and greatest of every stretch` : ''), broken && `${count(broken)} not finite (red)`, outside && `${plural(outside, 'value')} outside of the steady state at the edge`, jumps[0] && plural(jumps[0], 'jump') + (jumps[0] > jumps[1].length ? ` (orange: the first ${jumps[1].length})` : ' (orange)')];
    const phaseName = several && d.phases && d.phases[phase] ? ' · ' + (d.phases[phase][0] || 'phase ' + (phase + 1)) : '';
    return el('section', {class: 'panel', 'data-curve': metric}, el('h3', null, label(metric) + phaseName), chart({metric, x: 'step', height: 190, marks: phase === found[0][0] && d.saved ? [{x: d.saved, label: 'checkpoint', tone: ''}] : [], bounds, linear: metric !== 'learning_rate', series: [{name: metric, color: 0, lines: [points], bad, jumps: jumps[1].filter(p => p[0] !== null)}], describe: `${label(metric)} over ${records} records`, say: p => [measure(metric, p[1]), 'step ' + count(p[0])]}),
      el('p', {class: 'note'}, notes.filter(Boolean).join(' · ')));
  })));
}

function statistics(d) {
  const heads = ['metric', 'first', 'last', 'median', 'min', 'max', 'records'];
  const rows = (d.metrics || []).map(m => {
    const name = text(m[0]), shown = value => (m[1] === 2 ? (value === null ? '–' : num(value, 4)) : measure(name, value));
    const title = [m[1] === 2 ? name : label(name), m[1] === 1 && el('span', {class: 'dim'}, ' recomputed'), m[3] !== null && text(m[3]) !== 'global' && el('span', {class: 'dim'}, ' ' + text(m[3])), text(m[2]) === 'steady' && el('span', {class: 'dim', title: 'without warm-up and implausible records'}, ' steady')];
    return [el('span', {title: [name, text(m[4])].filter(Boolean).join(': ')}, title), ...[7, 8, 11, 9, 10].map(i => shown(m[i])), count(m[5]) + (m[6] ? ` (${count(m[6])} not finite)` : '')];
  });
  const s = d.steps;
  const notes = s ? [`${plural(s[3], 'record')}, steps ${s[0] === null ? '–' : count(s[0])} to ${s[1] === null ? '–' : count(s[1])}` + (s[2] === null ? '' : ` of ${count(s[2])} planned`), s[4] && `restarted ${plural(s[4], 'time')}, ${plural(s[5], 'superseded record')} left out`,
    `steady state: ${plural(s[6], 'record')} without ${count(s[7])} of warm-up` + (s[8] ? ` and ${count(s[8])} implausible` : ''), d.time && 'training time as printed ' + measure('training_time_s', d.time), d.ranks && plural(d.ranks, 'rank'), d.omitted && plural(d.omitted, 'more metric')] : [];
  return el('section', null, el('h2', null, 'Statistics'), rows.length ? table(heads, rows, [1, 2, 3, 4, 5, 6]) : el('p', {class: 'empty'}, 'The log prints no metric that was read.'), el('p', {class: 'note'}, notes.filter(Boolean).join(' · ')),
    d.consistency && d.consistency.filter(c => c[4] === false).map(c => el('p', {class: 'warn'}, `! ${label(c[0])}: the log prints ${measure(c[0], c[1])}, its batch size and step time give ${measure(c[0], c[2])}` + (c[3] === null ? '' : ` (ratio ${num(c[3], 3)})`))),
    d.phases && d.phases.length > 1 && table(['phase', 'records', 'first step', 'last step', 'last loss', 'tokens/s'], d.phases.map((p, i) => [p[0] || 'phase ' + (i + 1), count(p[1]), p[2] === null ? '–' : count(p[2]), p[3] === null ? '–' : count(p[3]), measure('loss', p[4]), measure('tokens_per_s', p[5])]), [1, 2, 3, 4, 5]));
}

function goodput(d) {
  const g = d.goodput;
  return g ? el('section', null, el('h2', null, 'Time'), el('div', {class: 'narrow'}, table(['time', 'seconds', 'share'], [['in steps', g.step], ...Object.entries(g.lost).sort((a, b) => b[1] - a[1]).map(([name, value]) => ['lost to ' + name.replaceAll('_', ' '), value, g.inferred.includes(name) ? '~' : '']), ['wall time', g.wall]].map(([name, value, about = '']) => [name, value === null ? '–' : about + num(value, 4), value === null || !g.wall ? '–' : num(100 * value / g.wall, 3) + ' %']), [1, 2])), el('p', {class: 'note'}, 'evidence: ' + g.evidence.replaceAll('_', ' ') + (g.inferred.some(name => g.lost[name]) ? ' · ~: inferred' : ''))) : null;
}

function doubts(d) {
  if (!(d.doubts || d.near || d.problems || d.unread)) return null;
  return el('section', {'data-panel': 'doubts'}, el('h2', null, 'Doubts'), d.doubts && el('ul', null, d.doubts.map(doubt => el('li', null, doubt))),
    d.near && [el('h3', null, plural(d.near[0], 'line') + ' almost read'), table(['rule', 'line', 'text'], d.near[1].map(n => [n[0], n[1] === null ? '–' : count(n[1]), el('code', null, n[2])]), [1])],
    d.problems && [el('h3', null, 'Where the reading is in doubt'), table(['kind', 'line', 'detail', 'text'], d.problems[1].map(p => [p[0].replaceAll('_', ' '), p[1] === null ? '–' : count(p[1]), p[2], el('code', null, p[3])]), [1])],
    d.unread && [el('h3', null, 'Lines that look like metrics and are not read'), el('pre', {class: 'tail', tabindex: '0'}, d.unread.join('\n'))]);
}

function sinceBefore(run) {
  const lane = LANE_OF.get(run), runs = lane === undefined ? [] : D.lanes[lane].runs, at = runs.indexOf(run);
  const mine = D.details[run], old = at > 0 ? D.details[runs[at - 1]] : null;
  if (!old) return null;
  const told = d => new Map((d.header || []).map(i => [text(D.facts[i][0]), text(D.facts[i][1])]));
  const before = told(old), now = told(mine), rows = [];
  for (const key of new Set([...before.keys(), ...now.keys()])) if (before.get(key) !== now.get(key)) rows.push([key, before.get(key) || 'unknown', now.get(key) || 'unknown']);
  return el('section', null, el('h2', null, 'Changed since the run before'), rows.length ? table(['field', 'before', 'now'], rows, []) : el('p', {class: 'empty'}, 'No recorded header field.'));
}

function provenance(d) {
  const rows = key => (d[key] || []).map(i => D.facts[i]).map(f => [text(f[0]), text(f[1]), key === 'origin' && f[2] >= 0 ? el('code', {title: text(f[2])}, text(f[2]).slice(0, 16)) : text(f[2])]);
  const lines = d.lines, times = d.times.map((t, i) => t && [['started', 'finished', 'header collected'][i], t, '']).filter(Boolean);
  return el('section', null, el('h2', null, 'Provenance'), el('div', {class: 'grid2'},
    el('div', null, el('h3', null, 'The run, and where each value is from'), table(['field', 'value', 'source'], [...times, ...(d.exit === undefined ? [] : [['exit code', String(d.exit), '']]), ...rows('header')], [])),
    el('div', null, el('h3', null, 'The receipt'), table(['from', 'what', 'sha256'], [['log', 'decompressed bytes', el('code', {title: d.digest}, (d.digest || '').slice(0, 16))], ...rows('origin'),
      ...(d.attachments || []).map(a => [a[0], a[1], el('code', {title: a[2] || ''}, (a[2] || '').slice(0, 16))])], []),
      lines && el('p', {class: 'note'}, `records: ${count(lines[0])} matched, ${count(lines[1])} ignored on purpose, ${count(lines[2])} unmatched, ${count(lines[3])} with bytes that are no text`))));
}

function table(heads, rows, numeric) {
  return el('div', {class: 'scroll'}, el('table', null, el('thead', null, el('tr', null, heads.map((h, i) => el('th', {class: numeric.includes(i) ? 'n' : null}, h)))),
    el('tbody', null, rows.map(row => el('tr', null, row.map((cell, i) => el(i ? 'td' : 'th', {class: numeric.includes(i) ? 'n' : null, scope: i ? null : 'row'}, cell)))))));
}
