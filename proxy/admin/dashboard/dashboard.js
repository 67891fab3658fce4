// The dashboard: asks /stats and /history every two seconds while somebody can see it, and shows what they say.
// Names of hosts and lines of the log come from strangers: whatever is shown is put in as text (textContent), and
// no markup is ever made of it.
'use strict';

(() => {
  const every = 2000, patience = 8000;
  const byId = (id) => document.getElementById(id);

  // ---- Numbers in words, as the server's summary has them.

  const known = (value) => value !== null && value !== undefined;
  const group = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
  const number = (value) => (known(value) ? group.format(value) : '–');

  function bytes(value) {
    if (!known(value)) return '–';
    if (value < 1024) return `${number(value)} ${value === 1 ? 'byte' : 'bytes'}`;
    const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
    let scaled = value / 1024, unit = 0;
    while (scaled >= 1023.5 && unit + 1 < units.length) { scaled /= 1024; ++unit; }
    return `${scaled.toFixed(scaled < 9.95 ? 1 : 0)} ${units[unit]}`;
  }

  function percent(share, most = 1) {
    if (!known(share)) return '–';
    const value = share * 100;
    if (value > 0 && value < 0.5 * 10 ** -most) return `< ${10 ** -most} %`;
    return `${value.toFixed(value > 0 && value < 9.95 ? most : 0)} %`;
  }

  function latency(seconds) {
    if (!known(seconds)) return '–';
    if (seconds < 0.000995) return `${Math.round(seconds * 1e6)} µs`;
    if (seconds < 0.995) return `${(seconds * 1e3).toFixed(seconds < 0.00995 ? 1 : 0)} ms`;
    return `${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s`;
  }

  /// Of a power of ten.
  const decade = (seconds) => {
    const power = Math.round(Math.log10(seconds));
    return power >= 0 ? `${10 ** power} s` : power >= -3 ? `${10 ** (power + 3)} ms` : `${10 ** (power + 6)} µs`;
  };

  function time(seconds) {
    if (!known(seconds)) return '–';
    for (const [size, name] of [[86400, 'days'], [3600, 'hours'], [60, 'minutes']]) {
      if (seconds >= 2 * size) return `${number(Math.floor(seconds / size))} ${name}`;
    }
    return seconds < 10 && seconds % 1 ? `${seconds.toFixed(1)} seconds` : `${number(Math.floor(seconds))} seconds`;
  }

  const sentence = (text) => text && text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');

  const two = (value) => String(value).padStart(2, '0');
  const clock = (when, withSeconds) =>
    `${two(when.getHours())}:${two(when.getMinutes())}${withSeconds ? `:${two(when.getSeconds())}` : ''}`;
  const dated = (when) => (new Date().toDateString() === when.toDateString() ? clock(when, true)
    : `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())} ${clock(when)}`);

  // ---- The page's parts.

  function make(name, { text, kind, ...attributes } = {}, ...inside) {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...inside);
    return element;
  }

  /// Nothing is touched that has not changed: neither what is selected nor what a screen reader reads.
  const shown = new WeakMap();
  function put(element, what, elements) {
    const print = JSON.stringify(what);
    if (shown.get(element) === print) return;
    shown.set(element, print);
    element.replaceChildren(...elements());
  }

  function text(id, value) {
    const element = byId(id);
    if (element.textContent !== value) element.textContent = value;
  }

  /// rows: [name, value, kind]
  function pairs(id, rows) {
    put(byId(id), rows, () => rows.map(([name, value, kind]) =>
      make('div', { kind }, make('dt', { text: name }), make('dd', { text: value }))));
  }

  /// A head or a cell is a text, or { text, kind, code }.
  function table(id, caption, heads, rows) {
    const cell = (what) => {
      if (typeof what !== 'object') return make('td', { text: what });
      const inside = what.code ? [make('code', { text: what.text })] : [what.text];
      return make('td', { kind: what.kind }, ...inside);
    };
    put(byId(id), [heads, rows], () => rows.length === 0 ? [] : [
      make('caption', { kind: 'unseen', text: caption }),
      make('thead', {}, make('tr', {}, ...heads.map((head) => make('th', { scope: 'col', ...(typeof head === 'object' ? head : { text: head }) })))),
      make('tbody', {}, ...rows.map(([first, ...others]) => {
        const name = typeof first === 'object' ? first : { text: first };
        return make('tr', { kind: name.row }, make('th', { scope: 'row' },
          make('span', { kind: 'host', text: name.text, title: name.text })), ...others.map(cell));
      })),
    ]);
    byId(id).parentElement.hidden = rows.length === 0;
  }

  function bar(id, part, whole, words, wrong = false) {
    const element = byId(id), share = whole > 0 ? Math.min(part / whole, 1) : 0;
    element.firstElementChild.style.width = `${share * 100}%`;
    element.classList.toggle('wrong', wrong);
    element.setAttribute('aria-label', words);
  }

  // ---- Charts.

  let colours = {};
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ['ink', 'soft', 'line', 'card', 'spared', 'spared-soft', 'costs', 'bar']) {
      colours[name] = style.getPropertyValue(`--${name}`).trim();
    }
  }

  // A legend says which line is dotted.
  const legend = Chart.defaults.plugins.legend.labels, makeLabels = legend.generateLabels;
  legend.generateLabels = (chart) => makeLabels(chart).map((label) =>
    ({ ...label, lineDash: chart.data.datasets[label.datasetIndex].borderDash || [] }));

  const charts = {};
  function makeCharts() {
    for (const one of Object.values(charts)) one.destroy();
    readColours();
    const defaults = Chart.defaults;
    defaults.animation = false;
    defaults.responsive = true;
    defaults.maintainAspectRatio = false;
    defaults.color = colours.soft;
    defaults.borderColor = colours.line;
    defaults.font.family = getComputedStyle(document.body).fontFamily;
    defaults.font.size = 12;
    defaults.interaction = { mode: 'index', intersect: false };
    Object.assign(defaults.plugins.legend, { align: 'start' });
    Object.assign(defaults.plugins.legend.labels, { boxWidth: 18, boxHeight: 8, padding: 18, usePointStyle: true });
    Object.assign(defaults.plugins.tooltip, {
      backgroundColor: colours.ink, titleColor: colours.card, bodyColor: colours.card, boxPadding: 4, padding: 10,
    });
    const ago = () => ({
      type: 'linear', grid: { display: false },
      ticks: { maxRotation: 0, autoSkip: false, callback: (value) => atTime(value) },
    });
    const line = (label, colour, more) => ({
      label, data: [], borderColor: colour, backgroundColor: colour, borderWidth: 2, pointRadius: 0, pointHitRadius: 8,
      pointStyle: 'line', cubicInterpolationMode: 'monotone', ...more,
    });
    charts.hits = new Chart(byId('hits-chart'), {
      type: 'line',
      data: { datasets: [
        line('Hit ratio', colours.spared, { order: 1 }),
        line('Byte hit ratio', colours.spared, { borderDash: [2, 4], order: 2 }),
        line('Requests a second (right)', colours.bar, { yAxisID: 'rate', fill: true, borderWidth: 0, pointStyle: 'rect', order: 3 }),
      ] },
      options: {
        scales: {
          x: ago(),
          y: { min: 0, max: 100, ticks: { stepSize: 25, callback: (value) => `${value} %` }, border: { display: false } },
          rate: { position: 'right', beginAtZero: true, suggestedMax: 1, grid: { display: false },
            ticks: { maxTicksLimit: 5 } },
        },
        plugins: { tooltip: { callbacks: {
          title: (items) => (items.length ? atTime(items[0].parsed.x, true) : ''),
          label: (item) => ` ${item.dataset.label.replace(' (right)', '')}: ` +
            (item.dataset.yAxisID === 'rate' ? item.parsed.y.toFixed(1) : `${item.parsed.y.toFixed(1)} %`),
        } } },
      },
    });
    const column = (label, colour) => ({ label, data: [], backgroundColor: colour, borderRadius: 2,
      maxBarThickness: 22, pointStyle: 'rect' });
    charts.admission = new Chart(byId('admission-chart'), {
      type: 'bar',
      data: { labels: [], datasets: [column('Kept out', colours['spared-soft']), column('Hits that it cost', colours.costs)] },
      options: { scales: {
        x: { stacked: false, grid: { display: false }, ticks: { maxRotation: 0, autoSkipPadding: 16 } },
        y: { beginAtZero: true, suggestedMax: 4, ticks: { maxTicksLimit: 5, precision: 0 }, border: { display: false } },
      } },
    });
    charts.latency = new Chart(byId('latency-chart'), {
      type: 'bar',
      data: { labels: ['Hits', 'Misses', 'Passed'], datasets: [
        column('p50', colours.spared), column('p90', colours['spared-soft']), column('p99', colours.soft),
      ] },
      options: {
        indexAxis: 'y',
        scales: {
          x: { type: 'logarithmic', ticks: { maxRotation: 0, callback: (value) => decade(value) } },
          y: { grid: { display: false } },
        },
        plugins: { tooltip: { callbacks: { label: (item) => ` ${item.dataset.label}: ${latency(item.raw)}` } } },
      },
    });
    charts.whatIf = new Chart(byId('what-if-chart'), {
      type: 'bar',
      data: { labels: [], datasets: [column('Hit ratio', colours.spared)] },
      options: {
        indexAxis: 'y',
        scales: {
          x: { min: 0, suggestedMax: 10, ticks: { callback: (value) => `${value} %` } },
          y: { grid: { display: false }, ticks: { autoSkip: false } },
        },
        plugins: { legend: { display: false },
          tooltip: { callbacks: { label: (item) => ` ${item.raw.toFixed(1)} %` } } },
      },
    });
  }

  // ---- What the charts show.

  let span = 'hour', history = null, historyAt = 0, stats = null;
  const lengths = { hour: 3600, day: 86400 };
  function atTime(ago, exact) {
    const when = new Date(historyAt + ago * 1000);
    return exact ? clock(when, span === 'hour') : clock(when);
  }

  /// Times of day that are round, between `from` seconds and now.
  function roundTimes(from, step) {
    const offset = new Date(historyAt).getTimezoneOffset() * 60;
    const now = historyAt / 1000 - offset, times = [];
    for (let at = Math.floor(now / step) * step; at >= now + from; at -= step) times.unshift({ value: at - now });
    return times;
  }

  const sum = (list, from, to) => list.slice(from, to).reduce((all, one) => all + one, 0);

  /// For each sample the share over itself and the `before` ones in front of it, so that a few requests make no spikes.
  function shares(of, part, whole, before) {
    return of.ended_seconds_ago.map((ago, at) => {
      const from = Math.max(0, at - before), all = sum(of[whole], from, at + 1);
      return { x: -ago, y: all ? (100 * sum(of[part], from, at + 1)) / all : null };
    });
  }

  /// Sums over `step` seconds that begin at round times: [{ from (a Date), of(name) }], the oldest first. A sample counts
  /// where its middle lies.
  function buckets(of, step) {
    const offset = new Date(historyAt).getTimezoneOffset() * 60;
    const places = of.ended_seconds_ago.map((ago, at) =>
      Math.floor((historyAt / 1000 - offset - ago - of.seconds[at] / 2) / step));
    const all = [];
    places.forEach((place, at) => {
      if (at > 0 && place === places[at - 1]) return;
      const end = places.lastIndexOf(place) + 1;
      all.push({ from: new Date((place * step + offset) * 1000), of: (name) => sum(of[name], at, end) });
    });
    return all;
  }

  const isNarrow = () => byId('hits-chart').clientWidth < 500;

  function showHistory() {
    if (!history) return;
    const of = history[span], hits = charts.hits, before = span === 'hour' ? 5 : 0;
    const [ratio, byteRatio, rate] = hits.data.datasets;
    ratio.data = shares(of, 'hits', 'requests', before);
    byteRatio.data = shares(of, 'body_bytes_from_store', 'body_bytes', before);
    rate.data = of.ended_seconds_ago.map((ago, at) => {
      const from = Math.max(0, at - before);
      return { x: -ago, y: sum(of.requests, from, at + 1) / Math.max(sum(of.seconds, from, at + 1), 1) };
    });
    const covered = Math.min(lengths[span], of.ended_seconds_ago[0] + of.seconds[0]);
    const from = -Math.max(covered, span === 'hour' ? 300 : 3600);
    const steps = [60, 300, 600, 900, 3600, 10800, 14400];
    const narrow = isNarrow() ? 5 : 8;
    const step = steps.find((one) => -from / one <= narrow) || 21600;
    Object.assign(hits.options.scales.x, { min: from, max: 0, afterBuildTicks: (axis) => { axis.ticks = roundTimes(from, step); } });
    hits.update('none');
    const asked = sum(of.requests, 0), unit = span === 'hour' ? 'hour' : 'day';
    text('hits-note', asked === 0 ? `Nothing was asked for in the last ${unit}.`
      : `${number(asked)} requests in the last ${covered < lengths[span] * 0.99 ? time(covered) : unit}.` +
        (span === 'hour' ? ' Each point is of the minute before it.' : ' Each point is of five minutes.'));

    const parts = buckets(of, span === 'day' ? 3600 : covered <= 900 ? 60 : 300);
    const when = parts.map((one) => clock(one.from));
    const share = (one, part, whole) => percent(one.of(whole) ? one.of(part) / one.of(whole) : null);
    table('hits-table', 'Hits over time', ['From', 'Requests', 'Hit ratio', 'Bytes', 'Byte hit ratio', 'Failed at origins'],
      parts.map((one, at) => [when[at], number(one.of('requests')), share(one, 'hits', 'requests'),
        bytes(one.of('body_bytes')), share(one, 'body_bytes_from_store', 'body_bytes'),
        number(one.of('unreached') + one.of('unresolved') + one.of('untrusted') + one.of('ill_answered'))]).reverse());

    const admission = charts.admission;
    admission.data.labels = when;
    admission.data.datasets[0].data = parts.map((one) => one.of('kept_out'));
    admission.data.datasets[1].data = parts.map((one) => one.of('hits_lost'));
    admission.update('none');
    table('admission-table', 'Admission over time', ['From', 'Kept out', 'Bytes kept out', 'Hits that it cost'],
      parts.map((one, at) => [when[at], number(one.of('kept_out')), bytes(one.of('kept_out_bytes')),
        number(one.of('hits_lost'))]).reverse());
  }

  // ---- What stands beside them.

  function showFirst(summary) {
    document.body.dataset.state = summary.well ? 'well' : 'unwell';
    if (byId('headline').textContent !== summary.headline) {
      text('headline', summary.headline);
      text('said', [summary.headline, ...summary.not_well].join(' '));
      document.title = `Reprise: ${summary.headline}`;
    }
    put(byId('troubles'), summary.not_well, () => summary.not_well.map((one) => make('li', { text: one })));
    put(byId('notes'), summary.notes, () => summary.notes.map((one) => make('li', { text: one })));
    text('text', summary.text);
    put(byId('figures'), summary.figures, () => summary.figures.map((one) => make('div', { kind: one.kind },
      make('dt', { text: one.label }), make('dd', { kind: 'value', text: one.value }),
      make('dd', { kind: 'more', text: one.more }))));
  }

  function showAdmission(of) {
    const { admission, store, summary, disk } = of, filter = admission.filter;
    pairs('admission-pairs', [
      [summary.writes_spared.of === 'disk' ? 'Kept out: writes spared the disk' : 'Kept out',
        `${number(summary.writes_spared.objects)} objects`, summary.writes_spared.objects ? 'spared' : ''],
      ['Bytes of these', bytes(summary.writes_spared.bytes), summary.writes_spared.bytes ? 'spared' : ''],
      ['Would have been hits without it', number(admission.hits_lost), admission.hits_lost ? 'costs' : ''],
      ['Bytes of these', bytes(admission.hit_bytes_lost), admission.hits_lost ? 'costs' : ''],
      ['Objects let in', number(admission.admitted)],
      ['Remembered, about', `${number(filter.remembered)} objects`],
      ['For how long', filter.remembers_for_seconds > 0 ? time(filter.remembers_for_seconds) : '–'],
      ['Taken for seen, wrongly', percent(filter.false_positive_rate, 2)],
      ['Saved on probation', number(store.probation.admitted)],
      ...(disk.capacity_bytes ? [['Written to disk', bytes(disk.written_bytes)]] : []),
    ]);
    const costly = Object.entries(admission.hits_lost_by_host || {}).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    table('costly-table', 'Hosts by hits that admission cost', ['Host', 'Hits', 'Of all'],
      costly.slice(0, 12).map(([host, hits]) => [host, { text: number(hits), kind: 'costs' }, percent(hits / admission.hits_lost)]));
    text('costly-note', (costly.length === 0 ? 'None yet. ' : '') +
      'A hit that admission cost is a request that went to its origin though its URL had been asked for before: had the ' +
      'answer then been stored, it had been a hit. Where one host has most of them, a rule for it in admission.rules may be worth it.');
  }

  function showStore({ store, disk, process, admission, purges }) {
    bar('memory-bar', store.bytes, store.capacity_bytes,
      `${bytes(store.bytes)} of ${bytes(store.capacity_bytes)} are used`);
    pairs('memory-pairs', [
      ['Used', `${bytes(store.bytes)} of ${bytes(store.capacity_bytes)}`],
      ['Objects', number(store.objects)],
      ['On probation', number(store.probation.objects)],
      ['Evicted', `${number(store.evicted)} (${bytes(store.evicted_bytes)})`],
      ['Unused before eviction', known(store.eviction_age_seconds) ? time(store.eviction_age_seconds) : 'nothing evicted yet'],
      ['Refreshed by a 304', number(store.refreshed)],
      ['Dropped by purges', number(purges.responses)],
      ["Admission's filter", bytes(admission.filter.memory_bytes)],
      ['The whole process', bytes(process.resident_bytes)],
    ]);
    if (disk.state === 'none') {
      bar('disk-bar', 0, 0, 'There is no store on disk');
      pairs('disk-pairs', [['State', 'none: disk.path is not set']]);
      return;
    }
    const wrong = disk.state === 'off' || disk.state === 'reading';
    bar('disk-bar', disk.bytes, disk.capacity_bytes, `${bytes(disk.bytes)} of ${bytes(disk.capacity_bytes)} are used`, wrong);
    const states = { loading: 'its index is loading', ready: 'ready', reading: 'takes nothing new: writing fails', off: 'off' };
    pairs('disk-pairs', [
      ['State', states[disk.state] || disk.state, wrong ? 'wrong' : ''],
      ...(disk.trouble ? [['Why', disk.trouble, 'wrong long']] : []),
      ['Used', `${bytes(disk.bytes)} of ${bytes(disk.capacity_bytes)}`],
      ...(known(disk.free_bytes) ? [['Left on its file system', bytes(disk.free_bytes), disk.room_is_short ? 'wrong' : '']] : []),
      ['Objects', number(disk.objects)],
      ['Evicted', `${number(disk.evicted)} (${bytes(disk.evicted_bytes)})`],
      ['Oldest', disk.segments ? `${time(disk.oldest_seconds)} old` : '–'],
      ['Found there', `${number(disk.lookups.hit)} of ${number(disk.lookups.hit + disk.lookups.miss)} look-ups`],
      ['Written, of every kind', bytes(disk.written_bytes)],
      ['Not worth writing, or not taken', number(disk.skipped)],
      ['Not taken: the disk was too slow', number(disk.overrun), disk.overrun ? 'costs' : ''],
      ['Errors reading, writing', `${number(disk.read_errors)}, ${number(disk.write_errors)}`,
        disk.read_errors + disk.write_errors ? 'wrong' : ''],
    ]);
  }

  function showLatency({ latency: { first_byte: first, complete } }) {
    const classes = [['hit', 'Hits'], ['miss', 'Misses'], ['pass', 'Passed']];
    table('latency-table', 'Time to the first byte, and to the last', ['Outcome', 'Requests', 'p50', 'p90', 'p99', 'p99, whole'],
      classes.map(([name, title]) => [title, number(first[name].count), latency(first[name].p50_seconds),
        latency(first[name].p90_seconds), latency(first[name].p99_seconds), latency(complete[name].p99_seconds)]));
    ['p50_seconds', 'p90_seconds', 'p99_seconds'].forEach((quantile, at) => {
      charts.latency.data.datasets[at].data = classes.map(([name]) => first[name][quantile]);
    });
    // A logarithmic axis has no zero to begin at: a power of ten below all there is.
    const all = classes.flatMap(([name]) => [first[name].p50_seconds, first[name].p99_seconds]).filter((one) => one > 0);
    const scale = charts.latency.options.scales.x;
    const [least, most] = all.length ? [Math.floor(Math.log10(Math.min(...all)) - 0.05), Math.ceil(Math.log10(Math.max(...all)))] : [-5, 0];
    const decades = Array.from({ length: most - least + 1 }, (_, at) => ({ value: 10 ** (least + at) }));
    Object.assign(scale, { min: 10 ** least, max: 10 ** most, afterBuildTicks: (axis) => { axis.ticks = decades; } });
    charts.latency.update('none');
  }

  function showOrigins({ origins, dns, collapsing, requests, bodies, failures, responses }) {
    const asked = origins.opened + origins.reused;
    const worst = Object.entries(failures).filter(([, times]) => times > 0).sort((a, b) => b[1] - a[1])[0];
    pairs('origins-pairs', [
      ['Connections open', number(origins.open)],
      ['Requests on a kept connection', percent(asked ? origins.reused / asked : null)],
      ['Received', bytes(origins.received_bytes)],
      ['Connections that failed', number(origins.failed), origins.failed ? 'costs' : ''],
      ['Names that did not resolve', number(dns.failures), dns.failures ? 'costs' : ''],
      ['Answers of 500 and above to clients', number(responses['5xx']), responses['5xx'] ? 'costs' : ''],
      ['Most frequent failure', worst ? `${worst[0].replaceAll('_', ' ')} (${number(worst[1])})` : 'none'],
    ]);
    pairs('collapsing-pairs', [
      ['Fetches begun', number(collapsing.fetches_started)],
      ['Requests that joined one', number(collapsing.joined), collapsing.joined ? 'spared' : ''],
      ['Answered that way', number(requests.collapsed)],
      ['Bytes spared', bytes(bodies.from_collapsing_bytes), bodies.from_collapsing_bytes ? 'spared' : ''],
      ['Sent on after all', number(collapsing.released)],
      ['Fetches that failed', number(collapsing.fetches_ended.failed)],
    ]);
  }

  function showHosts({ hosts, clients }) {
    const from = hosts.from_store_bytes || {};
    const rows = Object.entries(hosts.bytes || {}).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    table('hosts-table', 'Hosts by bytes to clients', ['Host', 'Bytes', 'Of all', 'From the store', 'Of these'],
      rows.slice(0, 12).map(([host, sent]) => [host, bytes(sent), percent(Math.min(sent / clients.sent_bytes, 1)),
        { text: bytes(from[host]), kind: from[host] ? 'spared' : '' }, percent(sent ? from[host] / sent : null)]));
    text('hosts-note', rows.length === 0 ? 'None yet.' :
      'About: of many small answers some stand for the others. Tunnels are among them, and nothing of them is stored; ' +
      'what siblings gave is not counted as from the store.');
  }

  function showSiblings({ siblings, parents, digest, peering }) {
    const names = Object.keys(siblings.usable || {});
    const states = { never: 'not seen yet', current: 'well', failing: 'lost; last digest used', outdated: 'lost' };
    table('siblings-table', 'Siblings', ['Sibling', { text: 'State', kind: 'left' }, 'Asked', 'Hits', 'False', 'Late, failed', 'Bytes', 'Time saved', 'p50', 'p99'],
      names.map((name) => {
        const asked = siblings.asked[name], state = siblings.state[name], trouble = siblings.trouble[name];
        const lost = state === 'failing' || state === 'outdated' || (state === 'never' && trouble !== 'none');
        const gain = siblings.saved_seconds[name] - siblings.lost_seconds[name], hits = asked['true-hit'];
        return [name, { text: (states[state] || state) + (trouble !== 'none' ? ` (${trouble.replaceAll('_', ' ')})` : ''), kind: lost ? 'left wrong' : 'left' },
          number(hits + asked['false-hit'] + asked.late + asked.failed),
          { text: number(hits), kind: hits ? 'spared' : '' }, number(asked['false-hit']), number(asked.late + asked.failed),
          bytes(siblings.bytes[name]), { text: gain === 0 ? '–' : `${gain < 0 ? '−' : ''}${latency(Math.abs(gain))}`, kind: gain < 0 ? 'costs' : gain > 0 ? 'spared' : '' },
          hits ? latency(siblings.latency_p50_seconds[name]) : '–', hits ? latency(siblings.latency_p99_seconds[name]) : '–'];
      }));
    const up = Object.entries(parents.up || {});
    const withoutParent = { loop_detected: 'leads back here', parent_refused: 'does not know us (407)',
      parent_certificate: 'has a certificate that is not believed' };
    text('siblings-note', (names.length === 0 ? 'There are none (peers is not set).'
      : `Of ${number(peering.misses)} misses that siblings might have answered; ${number(digest.listed)} objects here are listed for them.`) +
      (up.length ? ` Parents: ${up.map(([name, well]) => `${name} ${well ? 'answers' : withoutParent[parents.trouble[name]] || 'does not answer'}`).join(', ')}.` : ''));
  }

  function showWhatIf({ what_if: whatIf }) {
    text('advice', sentence(whatIf.advice));
    const names = Object.keys(whatIf.hit_ratio || {});
    byId('what-if-box').hidden = byId('what-if-more').hidden = names.length === 0;
    if (names.length === 0) return;
    const isNow = (name) => name === whatIf.in_force;
    const chart = charts.whatIf;
    byId('what-if-box').style.height = `${names.length * 1.75 + 2.5}rem`;
    chart.data.labels = names.map((name) => (isNow(name) ? `${name} (now)` : name))
      .map((name) => (isNarrow() && name.includes(' with ') ? name.split(/ (?=with )/) : name));
    chart.data.datasets[0].data = names.map((name) => 100 * whatIf.hit_ratio[name]);
    chart.data.datasets[0].backgroundColor = names.map((name) => (isNow(name) ? colours.spared : colours['spared-soft'] + '66'));
    chart.update('none');
    table('what-if-table', 'Other settings', ['Setting', 'Hit ratio', 'Byte hit ratio', 'Would have been stored'],
      names.map((name) => [isNow(name) ? { text: `${name} (now)`, row: 'now' } : name, percent(whatIf.hit_ratio[name]),
        percent(whatIf.byte_hit_ratio[name]), bytes(whatIf.written_bytes[name])]));
  }

  function showTunnels({ tunnels: { advice } }) {
    const why = { off: 'nothing is opened yet', 'not-listed': 'not listed', port: 'another port', except: 'named in intercept.except' };
    table('tunnels-table', 'Hosts whose tunnels move most bytes', ['Host', 'Bytes', 'Tunnels', { text: 'Why', kind: 'left' }, { text: 'What would open them', kind: 'left' }],
      advice.slice(0, 12).map((one) => [`${one.host}:${one.port}`, bytes(one.bytes), number(one.tunnels), { text: why[one.why] || one.why, kind: 'left' },
        one.line ? { text: one.line, kind: 'words', code: true } : { text: 'nothing would', kind: 'words' }]));
    text('tunnels-note', advice.length === 0 ? 'No tunnel has ended yet.'
      : 'Open only hosts that serve downloads which many share, never ones where people sign in.');
  }

  // ---- The log: asked for when it has grown.

  let logSeen = -1;
  async function showLog({ log }) {
    const lines = log.lines.warning + log.lines.error;
    if (lines === logSeen) return;
    const answer = await ask('/log');
    if (answer.status === 401 || answer.status === 403) {
      logSeen = lines;
      text('log-note', 'They are shown on the machine itself; from elsewhere GET /log wants the token.');
      return;
    }
    const told = await answer.json();
    logSeen = lines;
    put(byId('log-lines'), told.lines, () => told.lines.map((one) => make('li', { kind: one.level },
      make('time', { datetime: one.time, text: dated(new Date(one.time)) }),
      make('span', { kind: 'level', text: one.level }), make('span', { kind: 'said', text: one.text }))));
    text('log-note', lines === 0 ? 'There have been none since the start.'
      : lines > told.lines.length ? `The last ${told.lines.length} of ${number(lines)}.` : '');
  }

  // ---- Requests as they end: only while somebody wants to see them, and at most so many rows.

  const mostRows = 50, shownEvery = 500;
  let feed = null, rows = [], leftOut = 0, seen = 0, liveTimer = 0, liveDirty = false;

  function showLive() {
    if (!liveDirty) return;
    liveDirty = false;
    table('live-table', 'Requests as they end', ['URL', { text: 'Outcome', kind: 'left' }, 'Status', 'Bytes', 'Time', 'At'],
      rows.map((one) => [`${one.method && one.method !== 'GET' ? `${one.method} ` : ''}${one.url || ''}`,
        { text: one.outcome.replaceAll('_', ' '), kind: `left ${['hit', 'revalidated', 'sibling', 'collapsed'].includes(one.outcome) ? 'spared' : ['error', 'cut_short'].includes(one.outcome) ? 'wrong' : ''}` },
        one.status ? String(one.status) : '–', bytes(one.bytes_out), latency(one.ms / 1000), clock(new Date(one.time), true)]));
    text('live-note', `${number(seen)} shown${leftOut ? `, ${number(leftOut)} more left out` : ''} since you watch. Values of queries are hidden.`);
  }

  function unwatch(why) {
    if (feed) feed.close();
    feed = null;
    clearInterval(liveTimer);
    const button = byId('live-switch');
    button.textContent = 'Watch';
    button.setAttribute('aria-pressed', 'false');
    if (why) text('live-note', why);
  }

  function watch() {
    unwatch();
    rows = [];
    leftOut = seen = 0;
    liveDirty = true;
    const wish = new URLSearchParams();
    const host = byId('live-host').value.trim();
    if (host) wish.set('host', host);
    if (byId('live-outcome').value) wish.set('outcome', byId('live-outcome').value);
    feed = new EventSource(`/live?${wish}`);
    feed.addEventListener('message', (event) => {
      rows.unshift(JSON.parse(event.data));
      rows.length = Math.min(rows.length, mostRows);
      ++seen;
      liveDirty = true;
    });
    feed.addEventListener('left_out', (event) => {
      leftOut += Number(event.data);
      liveDirty = true;
    });
    feed.addEventListener('error', () => {
      if (feed && feed.readyState === EventSource.CLOSED) {
        unwatch('It may not be watched from here: on the machine itself, by few at a time; from elsewhere GET /live wants the token.');
      }
    });
    const button = byId('live-switch');
    button.textContent = 'Stop';
    button.setAttribute('aria-pressed', 'true');
    liveTimer = setInterval(showLive, shownEvery);
    showLive();
  }

  function makeLive(outcomes) {
    const choice = byId('live-outcome');
    if (choice.options.length > 1) return;
    choice.append(...outcomes.map((one) => make('option', { text: one.replaceAll('_', ' '), value: one })));
  }

  // ---- Asking.

  async function ask(page) {
    return fetch(page, { cache: 'no-store', credentials: 'omit', signal: AbortSignal.timeout(patience) });
  }

  async function json(page) {
    const answer = await ask(page);
    if (!answer.ok) throw new Error(`${page}: ${answer.status}`);
    return answer.json();
  }

  function show() {
    showFirst(stats.summary);
    showAdmission(stats);
    showStore(stats);
    showLatency(stats);
    showOrigins(stats);
    showHosts(stats);
    showSiblings(stats);
    showWhatIf(stats);
    showTunnels(stats);
    showHistory();
    makeLive(Object.keys(stats.requests));
    text('version', stats.version);
    byId('since').dateTime = stats.summary.since;
    text('since', dated(new Date(stats.summary.since)));
  }

  let timer = 0, asking = false, lastGood = null;
  async function poll() {
    clearTimeout(timer);
    if (asking || document.hidden) return;
    asking = true;
    try {
      [stats, history] = await Promise.all([json('/stats'), json('/history')]);
      historyAt = Date.now();
      lastGood = new Date();
      show();
      await showLog(stats);
      text('fresh', `As of ${clock(lastGood, true)}`);
    } catch {
      document.body.dataset.state = 'lost';
      const since = lastGood ? `since ${clock(lastGood, true)}` : 'yet';
      text('fresh', `No answer ${since}`);
      text('headline', 'Reprise does not answer.');
      text('said', `Reprise does not answer ${since}.`);
      put(byId('troubles'), since, () => [make('li', { text: lastGood
        ? `What is below was so at ${clock(lastGood, true)}. It is asked again every two seconds.`
        : 'It is asked again every two seconds.' })]);
    }
    asking = false;
    timer = setTimeout(poll, every);
  }

  for (const part of document.querySelectorAll('.scripted')) part.hidden = false;
  makeCharts();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { makeCharts(); if (stats) show(); });
  document.addEventListener('visibilitychange', poll);
  for (const input of document.querySelectorAll('input[name=span]')) {
    input.addEventListener('change', () => { span = input.value; showHistory(); });
  }
  byId('live-switch').addEventListener('click', () => { if (feed) unwatch(); else watch(); });
  for (const id of ['live-host', 'live-outcome']) byId(id).addEventListener('change', () => { if (feed) watch(); });
  document.addEventListener('visibilitychange', () => { if (document.hidden && feed) unwatch('It is watched no more, since nobody saw it.'); });
  if (location.hash === '#live') watch();
  poll();
})();
