// The frame: navigation, filter, theme and keys; a place in the address is a page.
const THEMES = ['auto', 'light', 'dark'];
let theme = 'auto', controls = null;

function remember(value) { try { if (value) localStorage.setItem('receipt-theme', value); return localStorage.getItem('receipt-theme'); } catch { return value; } }

function setTheme(value) {
  theme = THEMES.includes(value) ? value : 'auto';
  if (theme === 'auto') delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme;
  controls.theme.textContent = {auto: '◐ auto', light: '☀ light', dark: '☾ dark'}[theme];
}

function options(field, any) {
  const names = [...new Set(R[field])].map(text);
  return [el('option', {value: ''}, any), ...names.sort().map(name => el('option', {value: '=' + name}, name || 'none'))];
}

function header() {
  const set = () => {
    const now = readPlace(), filter = {...now.filter};
    delete filter.q; delete filter.lane; delete filter.preset; delete filter.state;
    if (controls.q.value.trim()) filter.q = controls.q.value.trim();
    for (const key of ['lane', 'preset']) if (controls[key].value) filter[key] = controls[key].value.slice(1);
    if (controls.state.value) filter.state = controls.state.value;
    const page = [undefined, 'runs', 'overlay'].includes(now.path[0]) ? now.path[0] || '' : 'runs';
    history.replaceState(null, '', place(page, filter));
    render(false);
  };
  let waiting = 0;
  const later = () => { clearTimeout(waiting); waiting = setTimeout(set, 120); };
  controls = {
    q: el('input', {type: 'search', id: 'q', placeholder: 'Search runs  /', 'aria-label': 'Search runs', input: later, spellcheck: 'false', autocomplete: 'off'}),
    lane: el('select', {'aria-label': 'Lane', change: set}, options('lane', 'all lanes')),
    preset: el('select', {'aria-label': 'Preset', change: set}, options('preset', 'all presets')),
    state: el('select', {'aria-label': 'Outcome', change: set}, el('option', {value: ''}, 'any outcome'), STATES.map(([name, words]) => el('option', {value: name}, words.slice(2)))),
    clear: el('button', {type: 'button', click: () => { for (const key of ['q', 'lane', 'preset', 'state']) controls[key].value = ''; history.replaceState(null, '', place(readPlace().path[0] || '')); render(false); }}, 'clear'),
    theme: el('button', {type: 'button', id: 'theme', title: 'Colours (t)', click: () => setTheme(remember(THEMES[(THEMES.indexOf(theme) + 1) % 3]))}),
    count: el('span', {id: 'count', role: 'status'}),
  };
  const links = [['', 'Overview'], ['lanes', 'Lanes'], ['runs', 'Runs'], ['overlay', 'Overlay'], ...(D.documents.listed.length ? [['documents', 'Documents']] : []), ['doubts', 'Doubts']];
  document.getElementById('top').append(el('span', {class: 'mark'}, 'receipt'),
    D.kind === 'store' && el('nav', {'aria-label': 'Pages'}, links.map(([to, name]) => el('a', {href: place(to), 'data-to': to}, name))) || '',
    D.kind === 'store' && el('form', {class: 'filter', role: 'search', submit: event => event.preventDefault()}, controls.q, controls.lane, controls.preset, controls.state, controls.clear, controls.count) || '',
    controls.theme);
}

function pageFor({path, filter}) {
  if (D.kind === 'run') return runPage(0);
  switch (path[0]) {
    case undefined: return overview(filter);
    case 'lanes': return lanesPage();
    case 'lane': return lanePage(Number(path[1]));
    case 'runs': return runsPage(filter);
    case 'run': { const run = findRun(path.slice(1).join('/')); return run !== null ? runPage(run) : missing('There is no such run, or more than one.'); }
    case 'overlay': return overlayPage(filter);
    case 'documents': return documentsPage();
    case 'document': return documentPage(path[1]);
    case 'doubts': return doubtsPage();
    default: return missing('There is no such page.');
  }
}

function render(moved) {
  const now = readPlace(), main = document.getElementById('main');
  charts = [];
  tell(null);
  main.replaceChildren(...[pageFor(now)].flat(9).filter(Boolean));
  for (const table of main.querySelectorAll('table:not(.runs)')) {  // on a narrow screen a row is a card, and each cell names its column
    const heads = [...table.querySelectorAll('thead th')].map(head => head.textContent);
    for (const row of table.querySelectorAll('tbody tr')) [...row.cells].forEach((cell, i) => { if (heads[i]) cell.dataset.label = heads[i]; if (cell.textContent === '–') cell.classList.add('none'); });
  }
  for (const end of main.querySelectorAll('.tail.end')) {  // at the error, or at the end of the log
    const cause = end.querySelector('.bad');
    end.scrollTop = cause ? cause.offsetTop + cause.offsetHeight + 30 - end.clientHeight : end.scrollHeight;
  }
  drawCharts();
  if (D.kind === 'store') {
    const filter = now.filter, filtered = [undefined, 'runs', 'overlay'].includes(now.path[0]);
    document.querySelector('.filter').classList.toggle('idle', !filtered);
    if (document.activeElement !== controls.q) controls.q.value = filtered ? filter.q || '' : '';
    for (const key of ['lane', 'preset']) controls[key].value = filtered && filter[key] !== undefined ? '=' + filter[key] : '';
    controls.state.value = (filtered && filter.state) || '';
    const some = filtered && Object.keys(filter).some(key => !['sort', 'cols', 'metric', 'x', 'runs'].includes(key));
    controls.clear.hidden = !some;
    controls.count.textContent = some ? `${count(chosen(filter).length)} of ${count(N)}` : plural(N, 'run');
    const page = {lane: 'lanes', run: 'runs', document: 'documents'}[now.path[0]] || now.path[0] || '';
    for (const link of document.querySelectorAll('nav a')) if (link.dataset.to === page) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  const title = main.querySelector('h1');
  document.title = [title && title.firstChild.textContent !== D.title && title.firstChild.textContent, D.title].filter(Boolean).join(' · ') + ' · receipt';
  if (moved) { window.scrollTo(0, 0); main.focus({preventScroll: true}); }
}

header();
setTheme(remember());
render(false);
document.documentElement.dataset.ready = 'yes';
window.addEventListener('hashchange', () => render(true));
let resizing = 0;
window.addEventListener('resize', () => { clearTimeout(resizing); resizing = setTimeout(drawCharts, 80); });
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === 'Escape' && typing) { event.target.blur(); return; }
  if (typing) return;
  if (event.key === '/' && D.kind === 'store') { event.preventDefault(); controls.q.focus(); controls.q.select(); }
  else if (event.key === 't') controls.theme.click();
  else if (D.kind === 'store' && '12345'.includes(event.key)) location.hash = place(['', 'lanes', 'runs', 'doubts', 'overlay'][Number(event.key) - 1]);
});
