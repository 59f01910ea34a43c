// Curves of several runs in one chart: over steps, tokens or time.
const MOST_DRAWN = COLORS - 1, MOST_LISTED = 200;
const AXES = {step: 'steps', tokens: 'tokens', time: 'time'};

const curveOf = (run, metric) => ((D.details[run] || {}).curves || []).find(c => text(c[1]) === metric);

// What a step is worth along an axis; null where the run does not contain it.
function perStep(run, axis) { return axis === 'step' ? 1 : axis === 'tokens' ? R.step_tokens[run] : R.step_time[run]; }

function overlayPage(filter) {
  const runs = chosen(filter).reverse();
  const names = tally(runs.flatMap(run => ((D.details[run] || {}).curves || []).map(c => text(c[1])))).map(([name]) => name);
  const title = el('h1', null, 'Overlay');
  if (!names.length) return [title, el('p', {class: 'empty'}, 'No run here has curves: ', el('code', null, 'receipt store build --series'), ' keeps the records that a report draws.')];
  const metric = names.includes(filter.metric) ? filter.metric : names.includes('loss') ? 'loss' : names[0], axis = AXES[filter.x] ? filter.x : 'step';
  const able = runs.filter(run => curveOf(run, metric)), fit = able.filter(run => perStep(run, axis));
  const wanted = filter.runs === undefined ? fit.slice(0, 4) : filter.runs.split(',').map(digest => BY_DIGEST.get(digest)).filter(run => fit.includes(run)).slice(0, MOST_DRAWN);
  const go = changed => location.replace(place('overlay', {...filter, ...changed}));
  const select = (name, values, now, key) => el('label', null, name + ' ', el('select', {change: event => go({[key]: event.target.value})}, values.map(([value, shown]) => el('option', {value, selected: value === now}, shown))));
  const flat = wanted.map(run => curveOf(run, metric)[3]), far = Math.max(1, ...wanted.map((run, i) => flat[i][flat[i].length - 2] * perStep(run, axis)));
  const [divisor, unit] = axis === 'time' ? (far < 600 ? [1, 's'] : far < 36000 ? [60, 'minutes'] : [3600, 'hours']) : axis === 'tokens' ? (far < 1e6 ? [1, 'tokens'] : far < 1e10 ? [1e6, 'million tokens'] : [1e9, 'billion tokens']) : [1, 'steps'];
  const series = wanted.map((run, n) => {
    const line = [];
    for (let i = 0; i < flat[n].length; i += 2) line.push([flat[n][i] * perStep(run, axis) / divisor, flat[n][i + 1], run]);
    return {name: text(R.name[run]), color: n, lines: [line], bad: []};
  });
  const toggle = run => go({runs: (wanted.includes(run) ? wanted.filter(other => other !== run) : [...wanted, run]).map(other => R.digest[other]).join(',')});
  const notes = [`over ${unit}`, axis === 'time' && 'steps times the median step time of the run', axis === 'tokens' && 'steps times the tokens of a step in the header',
    able.length > fit.length && plural(able.length - fit.length, 'run') + ' without this axis', runs.length > able.length && plural(runs.length - able.length, 'run') + ' without this curve'].filter(Boolean);
  return [title, el('p', {class: 'choose'}, select('metric', names.slice().sort().map(name => [name, label(name)]), metric, 'metric'), select('over', Object.entries(AXES), axis, 'x')),
    wanted.length ? chart({metric, series, x: 'run', height: 360, describe: `${label(metric)} of ${plural(wanted.length, 'run')} over ${unit}`, open: p => { location.hash = runPlace(p[2]); },
      say: p => [measure(metric, p[1]), text(R.name[p[2]]), `${num(p[0], 4)} ${unit}`]}) : el('p', {class: 'empty'}, 'No run is chosen.'),
    el('ul', {class: 'legend'}, series.map((one, i) => el('li', null, el('span', {class: 'swatch c' + one.color}), runLink(wanted[i])))),
    el('p', {class: 'note'}, notes.join(' · ')),
    el('h2', null, 'Runs'), el('p', {class: 'note'}, `up to ${MOST_DRAWN} at once; the search above narrows the list`),
    el('ul', {class: 'pick'}, fit.slice(0, MOST_LISTED).map(run => el('li', null, el('label', null, el('input', {type: 'checkbox', checked: wanted.includes(run), disabled: !wanted.includes(run) && wanted.length >= MOST_DRAWN, change: () => toggle(run)}), ' ', text(R.name[run])), ' ', el('span', {class: 'dim'}, [text(R.model[run]), iso(R.at[run])].filter(Boolean).join(' · '))))),
    fit.length > MOST_LISTED && el('p', {class: 'note'}, plural(fit.length - MOST_LISTED, 'more run'))];
}
