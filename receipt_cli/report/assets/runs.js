// The table of runs: sorted by any column, searched, and only as many rows on the page as fit the window.
const ROW = 30;
const TABLE = [
  {key: 'at', name: 'when', show: i => iso(R.at[i])},
  {key: 'name', name: 'run', show: i => runLink(i), by: i => text(R.name[i]).toLowerCase()},
  {key: 'model', name: 'model', show: i => text(R.model[i]), by: i => text(R.model[i]).toLowerCase()},
  {key: 'state', name: 'outcome', show: i => outcome(i)},
  {key: 'cause', name: 'cause', show: i => text(R.cause[i]), by: i => text(R.cause[i]) || null},
  {key: 'step', name: 'steps', n: true, show: i => (R.step[i] === null ? '–' : count(R.step[i]) + (R.planned[i] && R.planned[i] > R.step[i] + 1 ? ' of ' + count(R.planned[i]) : ''))},
  {key: 'loss', name: 'last loss', n: true, metric: 'loss'},
  {key: 'wall', name: 'time', n: true, metric: 'training_time_s'},
  {key: 'val_loss', name: 'val loss', n: true, metric: 'val_loss'},
  {key: 'step_time', name: 'step time', n: true, metric: 'step_time_s'},
  {key: 'tokens', name: 'tokens/s', n: true, metric: 'tokens_per_s'},
  {key: 'mfu', name: 'MFU', n: true, metric: 'mfu_ratio'},
  {key: 'memory', name: 'memory', n: true, metric: 'peak_memory_bytes'},
  {key: 'goodput', name: 'in steps', n: true, metric: 'goodput_ratio'},
  {key: 'device_hours', name: 'device hours', n: true, show: i => (R.device_hours[i] === null ? '–' : num(R.device_hours[i], 3))},
  {key: 'cost', name: 'cost', n: true, show: i => (R.cost[i] === null ? '–' : num(R.cost[i], 4) + ' ' + text(R.currency[i]))},
  {key: 'signs', name: 'doubts', n: true, show: i => signsOf[i].length || '·', by: i => signsOf[i].length},
  {key: 'lane', name: 'lane', show: i => text(R.lane[i]), by: i => text(R.lane[i])},
  {key: 'preset', name: 'preset', show: i => text(R.preset[i]), by: i => text(R.preset[i])},
  {key: 'path', name: 'path', show: i => text(R.path[i]), by: i => text(R.path[i])},
  {key: 'trainer', name: 'trainer', show: i => text(R.trainer[i]), by: i => text(R.trainer[i]).toLowerCase()},
  {key: 'grammar', name: 'grammar', show: i => text(R.grammar[i]), by: i => text(R.grammar[i])},
  {key: 'accelerator', name: 'accelerator', show: i => text(R.accelerator[i]), by: i => text(R.accelerator[i])},
  {key: 'commit', name: 'commit', show: i => text(R.commit[i]).slice(0, 12), by: i => text(R.commit[i])},
];

const outcome = i => el('span', {class: 'state ' + STATES[R.state[i]][0]}, STATES[R.state[i]][1]);
const NARROW = ['name', 'state', 'cause', 'step', 'loss', 'wall', 'at'];
const HIDDEN = ['trainer', 'grammar', 'accelerator', 'commit', 'step_time'];
// The columns that the address names, else those that are usual and of which some run has a value.
function shownColumns(filter) {
  if (filter.cols !== undefined) return TABLE.filter(c => filter.cols.split(',').includes(c.key));
  if (window.innerWidth <= 600) return NARROW.map(key => TABLE.find(c => c.key === key));
  return TABLE.filter(c => !HIDDEN.includes(c.key) && (!R[c.key] || R[c.key].some(value => value !== null && value !== -1)));
}

function columnChooser(filter, columns) {
  const set = () => { location.replace(place('runs', {...filter, cols: boxes.filter(box => box.checked).map(box => box.value).join(',')})); };
  const boxes = TABLE.map(c => el('input', {type: 'checkbox', value: c.key, checked: columns.includes(c), change: set}));
  return el('details', {class: 'chooser', open: filter.cols !== undefined}, el('summary', null, 'Columns'), el('div', null, TABLE.map((c, i) => el('label', null, boxes[i], ' ' + c.name))));
}

function runsPage(filter) {
  const columns = shownColumns(filter);
  const column = TABLE.find(c => c.key === (filter.sort || 'at').replace('-', '')) || TABLE[0];
  const down = filter.sort ? filter.sort.startsWith('-') : true;
  const of = column.by || (i => R[column.key][i]);
  const keyed = chosen(filter).map(i => [of(i), i]);
  keyed.sort((a, b) => (a[0] === null || a[0] === '') - (b[0] === null || b[0] === '') || (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]) * (down ? -1 : 1));
  const runs = keyed.map(pair => pair[1]);
  const heads = columns.map(c => {
    const mine = c === column;
    return el('th', {class: c.n ? 'n' : null, 'aria-sort': mine ? (down ? 'descending' : 'ascending') : null},
      el('a', {href: place('runs', {...filter, sort: (mine && down ? '' : '-') + c.key})}, c.name, mine && (down ? ' ↓' : ' ↑')));
  });
  const body = el('tbody'), above = el('tbody', {class: 'space', 'aria-hidden': 'true'}, el('tr', null, el('td', {colspan: columns.length})));
  const below = above.cloneNode(true);
  const box = el('div', {class: 'window', tabindex: '0', role: 'region', 'aria-label': 'Runs: arrow keys choose, Enter opens'}, el('table', {class: 'runs', 'aria-rowcount': runs.length}, el('thead', null, el('tr', null, heads)), above, body, below));
  let at = -1, first = -1, last = -1;
  const draw = force => {
    const from = Math.max(0, Math.floor(box.scrollTop / ROW) - 8), to = Math.min(runs.length, from + Math.ceil((box.clientHeight || 600) / ROW) + 16);
    if (!force && from === first && to === last) return;
    [first, last] = [from, to];
    body.replaceChildren(...runs.slice(from, to).map((run, i) => el('tr', {'aria-rowindex': from + i + 1, class: from + i === at ? 'at' : null}, columns.map(c => el('td', {class: c.n ? 'n' : null}, c.show ? c.show(run) : measure(c.metric, R[c.key][run]))))));
    above.firstChild.firstChild.style.height = from * ROW + 'px';
    below.firstChild.firstChild.style.height = (runs.length - to) * ROW + 'px';
  };
  box.addEventListener('scroll', () => requestAnimationFrame(() => draw(false)));
  box.addEventListener('keydown', event => {
    const move = {ArrowDown: 1, ArrowUp: -1, j: 1, k: -1}[event.key];
    if (move && !event.ctrlKey && !event.metaKey && runs.length) {
      event.preventDefault();
      at = Math.min(runs.length - 1, Math.max(0, at + move));
      if (at * ROW < box.scrollTop) box.scrollTop = at * ROW;
      if ((at + 3) * ROW > box.scrollTop + box.clientHeight) box.scrollTop = (at + 3) * ROW - box.clientHeight;
      draw(true);
    } else if (event.key === 'Enter' && at >= 0 && event.target === box) location.hash = runPlace(runs[at]);
  });
  charts.push({draw: () => draw(true)});
  return [el('h1', null, 'Runs'), el('p', {class: 'span', id: 'found'}, runs.length === N ? plural(N, 'run') : `${count(runs.length)} of ${plural(N, 'run')}`, filter.reason !== undefined && [' that failed with ', el('b', null, filter.reason)],
    filter.sign !== undefined && D.drift[filter.sign] && [' with the doubt ', el('b', null, text(D.drift[filter.sign].about))]), columnChooser(filter, columns), runs.length ? box : el('p', {class: 'empty'}, 'No run fits the filter.')];
}
