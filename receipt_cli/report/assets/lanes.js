// Lanes: all of them in a table, and one with its charts, changes and runs.
const LEADING = ['tokens_per_s', 'tokens_per_s_per_device', 'samples_per_s', 'step_time_s', 'mfu_ratio'];

function lanesPage() {
  const rows = D.lanes.map((lane, i) => ({lane, i, lead: LEADING.map(name => lane.metrics.find(m => m.metric === name)).find(Boolean),
    changes: lane.metrics.flatMap(m => m.changes.map(c => ({m, c}))).sort((a, b) => a.c.run - b.c.run)}));
  return [el('h1', null, 'Lanes and groups'), el('div', {class: 'scroll'}, el('table', {class: 'lanes'}, el('thead', null, el('tr', null, ['lane', 'runs', 'last run', 'finished', 'figure', 'last', 'over the runs', 'changes', 'newest change'].map((t, i) => el('th', {class: [1, 3, 5, 7].includes(i) ? 'n' : null}, t)))),
    el('tbody', null, rows.map(({lane, i, lead, changes}) => {
      const last = lane.runs[lane.runs.length - 1], newest = changes[changes.length - 1];
      return el('tr', null, el('th', {scope: 'row'}, el('a', {href: lanePlace(i)}, laneName(lane))), el('td', {class: 'n'}, count(lane.runs.length + lane.undated)), el('td', null, last === undefined ? '–' : day(R.at[last])),
        el('td', {class: 'n'}, count(lane.finished)), el('td', null, lead ? label(lead.metric) : '–'), el('td', {class: 'n'}, lead ? measure(lead.metric, lead.values[lead.values.length - 1]) : '–'),
        el('td', null, lead && spark(thinned(lead.values, 120), 140, 22)), el('td', {class: 'n'}, changes.length || '·'),
        el('td', {class: newest && newest.c.outcome}, newest ? `${label(newest.m.metric)} ${change(newest.m.metric, newest.c.before, newest.c.after)}, ${day(R.at[newest.c.run])}` : '–'));
    }))))];
}

function thinned(values, most) {
  const width = Math.ceil(values.length / most);
  return width < 2 ? values : Array.from({length: Math.ceil(values.length / width)}, (_, i) => median(values.slice(i * width, (i + 1) * width)));
}

function lanePage(number) {
  const lane = D.lanes[number];
  if (!lane) return missing('There is no such lane.');
  const runs = lane.runs, changes = lane.metrics.flatMap(m => m.changes.map(c => ({m, c}))).sort((a, b) => b.c.run - a.c.run);
  const facts = [plural(runs.length, 'run'), runs.length && `${day(R.at[runs[0]])} to ${day(R.at[runs[runs.length - 1]])}`, `${count(lane.finished)} finished`, lane.undated && `${plural(lane.undated, 'run')} without a time left out`];
  return [el('p', {class: 'crumbs'}, el('a', {href: place('lanes')}, 'Lanes')), el('h1', null, laneName(lane)), el('p', {class: 'span'}, facts.filter(Boolean).join(' · '), ' · ',
    el('a', {href: place('runs', {lane: text(lane.lane), preset: text(lane.preset)})}, 'its runs in a table')),
    el('section', null, el('h2', null, 'Changes'), changes.length ? el('ul', {class: 'changes'}, changes.map(({m, c}) => changeItem(m.metric, c))) : el('p', {class: 'empty'}, lane.searched ? 'No figure changed its level.' : 'Too few finished runs to find a change: 8, or a name (receipt store lane).')),
    el('div', {class: 'grid2'}, lane.metrics.map(m => laneChart(m)))];
}

function laneChart(m) {
  const points = m.at.map((run, i) => [R.at[run], m.values[i], run]), share = m.metric === 'healthy';
  const spikes = new Map(m.spikes);
  const half = Math.max(7, Math.round(points.length / 50));
  const line = share ? points.map((p, i) => [p[0], mean(points.slice(Math.max(0, i - half), i + half + 1).map(q => q[1]))]) : rolling(points);
  const marks = m.changes.map(c => ({x: R.at[c.run], label: change(m.metric, c.before, c.after), tone: c.outcome}));
  return el('section', {class: 'panel', 'data-metric': m.metric}, el('h2', null, label(m.metric)), el('p', {class: 'note'}, share ? `runs (0 %: failed), and the mean over ${2 * half + 1} of them` : 'runs, and the median over neighbouring ones'),
    chart({metric: m.metric, x: 'time', marks, linear: share, fixed: share, bounds: share ? [-0.05, 1.05] : null, series: [{name: label(m.metric), color: 0, points, lines: [line]}],
      describe: `${label(m.metric)} of ${points.length} runs, ${m.changes.length} changes`, open: point => { location.hash = runPlace(point[2]); },
      say: point => [share ? (point[1] ? 'did not fail' : 'failed') : measure(m.metric, point[1]), text(R.name[point[2]]), iso(R.at[point[2]]), spikes.has(point[2]) && 'a jump: it sticks out alone']}),
    m.spikes.length > 0 && el('p', {class: 'note'}, 'alone, and no change: ', m.spikes.slice(0, 5).map(([run, value], i) => [i > 0 && ', ', runLink(run), ` (${measure(m.metric, value)})`]), m.spikes.length > 5 && ` and ${m.spikes.length - 5} more`));
}

const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;
const missing = what => [el('h1', null, 'Not here'), el('p', {class: 'empty'}, what, ' ', el('a', {href: '#/'}, 'To the overview'))];
