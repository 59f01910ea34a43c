// Runs, filters and places: which runs are meant, and where their pages are.
const FAILED = 1, ENDED_BADLY = [FAILED, 2, 3];
const STATES = [['finished', '✓ finished'], ['failed', '✗ failed'], ['stopped', '■ stopped'], ['cut', '~ cut off'], ['running', '▶ running'], ['unknown', '? unknown']];
// How many of the runs ended in each outcome: the same words and numbers as `receipt store ls`.
const outcomes = runs => STATES.map(([, words], i) => [runs.filter(run => R.state[run] === i).length, words.slice(2)]).filter(([n]) => n);
const ALL = Array.from({length: N}, (_, i) => i);
const BY_DIGEST = new Map(R.digest.map((digest, i) => [digest, i]));

// The run that a word means, as in commands: the first digits of its digest, its name, or the end of a path; null for none or several.
function findRun(word) {
  const digest = word.replace(/^([0-9a-f]{16})[0-9a-f]+/, '$1');
  if (BY_DIGEST.has(digest)) return BY_DIGEST.get(digest);
  const fits = [i => digest.length > 3 && R.digest[i].startsWith(digest), i => text(R.name[i]) === word, i => text(R.path[i]) === word,
    i => text(R.path[i]).endsWith('/' + word), i => text(R.name[i]).startsWith(word)];
  for (const fit of fits) { const found = ALL.filter(fit); if (found.length === 1) return found[0]; }
  return null;
}
const LANE_OF = new Map();
D.lanes.forEach((lane, i) => lane.runs.forEach(run => LANE_OF.set(run, i)));

let haystacks = null;
function haystack(run) {
  if (!haystacks) {
    const parts = ['name', 'lane', 'preset', 'commit', 'reason', 'cause', 'grammar', 'trainer', 'accelerator', 'model', 'path'];
    haystacks = ALL.map(i => [R.digest[i], day(R.at[i]), ...parts.map(part => text(R[part][i]))].join('\n').toLowerCase());
  }
  return haystacks[run];
}

const signsOf = Array.from({length: N}, () => []);
D.drift.forEach((alarm, i) => alarm.runs.forEach(run => signsOf[run].push(i)));

// filter: q (all of its words), lane, preset, state, reason, sign; what is absent takes every run
function chosen(filter) {
  const words = (filter.q || '').toLowerCase().split(/\s+/).filter(Boolean);
  const fields = ['lane', 'preset', 'reason'].filter(field => filter[field] !== undefined);
  const state = STATES.findIndex(([name]) => name === filter.state);
  const sign = filter.sign === undefined ? -1 : Number(filter.sign);
  return ALL.filter(i => (state < 0 || R.state[i] === state)
    && fields.every(field => text(R[field][i]) === filter[field])
    && (sign < 0 || signsOf[i].includes(sign))
    && words.every(word => haystack(i).includes(word)));
}

function readPlace() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  const filter = {};
  for (const [key, value] of new URLSearchParams(query || '')) filter[key] = value;
  return {path: path.split('/').filter(Boolean).map(part => { try { return decodeURIComponent(part); } catch { return part; } }), filter};
}

function place(path, filter) {
  const query = new URLSearchParams(Object.entries(filter || {}).filter(([, value]) => value !== undefined && value !== null));
  return '#/' + path + (String(query) ? '?' + query : '');
}
const runPlace = run => place('run/' + R.digest[run]);
const lanePlace = lane => place('lane/' + lane);
const laneName = lane => [text(lane.lane), text(lane.group), text(lane.preset)].filter(Boolean).join(' · ') || 'no lane';
const runLink = run => el('a', {href: runPlace(run)}, text(R.name[run]) || R.digest[run]);

function median(values) {
  const sorted = Float64Array.from(values).sort(), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// The median over neighbouring runs, more of them where there are many: a line shall show the level, not the noise.
function rolling(points) {
  const half = Math.max(3, Math.round(points.length / 100));
  return points.map((point, i) => [point[0], median(points.slice(Math.max(0, i - half), i + half + 1).map(p => p[1]))]);
}

function tally(values) {
  const found = new Map();
  for (const value of values) found.set(value, (found.get(value) || 0) + 1);
  return [...found].sort((a, b) => b[1] - a[1] || (String(a[0]) < String(b[0]) ? -1 : 1));
}
