// Documents besides receipts: their lists, a page for each, and those of one run.
const kinds = D.documents.listed, pages = D.documents.pages;
const nouns = (n, noun) => plural(n, noun);
const documentPlace = digest => place('document/' + digest);
const documentLink = digest => digest in pages ? el('a', {href: documentPlace(digest)}, digest.slice(0, 8)) : digest.slice(0, 8);
const runOf = (run, name) => run !== null && run !== undefined ? runLink(run) : name || '–';

function documentsSection() {
  if (!kinds.length) return null;
  const told = kinds.map(kind => nouns(kind.rows.length, kind.noun)).join(', ');
  return el('section', {'data-panel': 'documents'}, el('h2', null, 'Documents'), el('p', null, el('a', {href: place('documents')}, told)), courseTables(6));
}

// What scores and other figures did from document to document, a table for each lane.
function courseTables(most) {
  return D.documents.course.filter(group => group.rows.length).map(group => {
    const rows = group.rows.slice(0, most), more = group.rows.length - rows.length + group.more;
    return [el('h3', null, group.title), table(['figure', 'first', 'last', 'since the one before'], rows.map(([name, first, last, since]) =>
      [name, first || '–', last, el('span', {class: since.startsWith('✗') ? 'bad' : since.startsWith('✓') ? 'good' : 'dim'}, since || '–')]), [1, 2]),
      more > 0 && el('p', {class: 'note'}, most < 40 ? el('a', {href: place('documents')}, `${count(more)} more`) : `${count(more)} more`)];
  });
}

function documentsPage() {
  const broken = D.documents.unreadable;
  return [el('h1', null, 'Documents'),
    !kinds.length && el('p', {class: 'empty'}, 'The store has no document besides receipts.'),
    kinds.map(kind => el('section', {'data-kind': kind.kind}, el('h2', null, nouns(kind.rows.length, kind.noun)),
      table(['document', 'when', ...kind.titles, 'run'], kind.rows.map(([digest, at, run, name, ...cells]) =>
        [documentLink(digest), at === null ? '–' : iso(at), ...cells.map((cell) => (cell === '-' ? '–' : cell)), runOf(run, name)]), []))),
    D.documents.course.length > 0 && el('section', null, el('h2', null, 'From document to document'), courseTables(40)),
    D.documents.left_out > 0 && el('p', {class: 'note'}, `${count(D.documents.left_out)} older ones are left out`),
    broken.length > 0 && el('section', null, el('h2', null, 'Unreadable'), table(['file', 'why'], broken, []))];
}

function documentPage(digest) {
  const page = pages[digest];
  if (!page) return missing('There is no such document.');
  return [el('p', {class: 'crumbs'}, el('a', {href: place('documents')}, 'Documents'), ' / ', page.noun),
    el('h1', null, page.title),
    el('p', {class: 'span'}, [page.at !== null && iso(page.at) + ' UTC', page.digest].filter(Boolean).join(' · '), ' · run ', runOf(page.run, page.name)),
    el('section', null, el('h2', null, page.noun), table(['field', 'value'], page.facts, [])),
    page.tables.map(one => el('section', {'data-table': one.title}, el('h2', null, one.title),
      table(one.heads, one.rows, one.heads.map((_, i) => i).slice(1)), one.more > 0 && el('p', {class: 'note'}, `${count(one.more)} more in the document`)))];
}

function documentsOf(run) {
  const mine = kinds.flatMap(kind => kind.rows.filter(row => row[2] === run).map(row => [documentLink(row[0]), kind.noun, row[1] === null ? '–' : iso(row[1]), (pages[row[0]] || {title: '–'}).title]));
  return mine.length > 0 && el('section', {'data-panel': 'documents'}, el('h2', null, 'Documents'), table(['document', 'kind', 'when', 'about'], mine, []));
}
