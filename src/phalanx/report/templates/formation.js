"use strict";
// Draws the raster that report/cells.py made. Text from traces only ever goes through textContent and fillText.
const NOTHING = 0, SCHEDULED = 1, STARTED = 2, COMPLETED = 3, NOT_ENTERED = 4;
const GUTTER = 74, RULER = 18;
const byId = (id) => document.getElementById(id);
const canvas = byId("canvas"), pen = canvas.getContext("2d"), tip = byId("tip"), stage = byId("stage");
let about, low, high, state, jumps, rows = [], shown = [], mips = [], culprits, victims, suspects, held = null, found = -1;
let labels = [], labelOf = [], view = { x: 0, y: 0, sx: 8, sy: 12 }, colours, dim = null, pending = false;

async function unpack(name) {
  const text = atob(byId("data-" + name).textContent);
  const bytes = Uint8Array.from(text, (one) => one.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

async function load() {
  [low, high, state] = [await unpack("low"), await unpack("high"), await unpack("state")];
  jumps = new Int32Array((await unpack("jumps")).buffer);
  about = JSON.parse(new TextDecoder().decode(await unpack("about")));
  rows = about.ranks.map((rank, index) => ({ rank, index })).concat(about.absent.map((rank) => ({ rank, index: -1 })));
  rows.sort((a, b) => a.rank - b.rank);
  culprits = new Set(about.culprits); victims = new Set(about.victims);
  for (const row of rows) describe(row);
  suspects = culprits.size ? culprits : new Set(rows.filter((row) => row.index < 0 || row.missed).map((row) => row.rank));
  labels = [...new Set(Object.values(about.groups).map((group) => group[1]))].sort();
  labelOf = about.kinds.map((kind) => kind[0]);
  fillGroups();
  chooseColours();
  drawLegend();
  fromHash();
  document.documentElement.dataset.ready = rows.length + "x" + about.width;
}

// What a row needs for sorting: where it ends, and whether it missed a call that others wait in.
function describe(row) {
  row.end = -1; row.missed = false; row.waits = -1;
  if (row.index < 0) return;
  const from = row.index * about.width;
  for (let x = about.width - 1; x >= 0; x--) {
    const what = state[from + x] & 7;
    if (what === NOT_ENTERED) row.missed = true;
    else if (what !== NOTHING && row.end < 0) row.end = x;
    if (what === STARTED || what === SCHEDULED) row.waits = x;
  }
  row.late = about.late[row.index] || 0;
}

function kindAt(row, x) {
  const at = row.index * about.width + x;
  return row.index < 0 ? -1 : low[at] + 256 * high[at] - 1;
}
function groupAt(row, kind) {
  const own = about.local.rows[about.local.which[row.index]];
  return about.groups[own[about.kinds[kind][0]]] || ["?", "?", []];
}
function members(spans) {
  const all = [];
  for (let i = 0; i < spans.length; i += 3) for (let n = 0; n < spans[i + 2]; n++) all.push(spans[i] + n * spans[i + 1]);
  return all;
}

// The number of a call: counted from the first of its group in this row, and put right where the count jumps.
function seqAt(row, x) {
  const wanted = about.kinds[kindAt(row, x)], first = about.first.rows[about.first.which[row.index]];
  let seq = null;
  for (let i = 0; i < first.length; i += 3) if (first[i] === wanted[0] && !!first[i + 1] === wanted[5]) seq = first[i + 2];
  const same = (kind) => kind >= 0 && about.kinds[kind][0] === wanted[0] && about.kinds[kind][5] === wanted[5];
  let count = -1;
  for (let at = 0; at <= x; at++) if (same(kindAt(row, at))) count++;
  let from = 0, to = jumps.length / 3;
  while (from < to) { const middle = (from + to) >> 1; if (jumps[middle * 3] < row.index) from = middle + 1; else to = middle; }
  for (let i = from; i < jumps.length / 3 && jumps[i * 3] === row.index; i++)
    if (jumps[i * 3 + 1] <= x && same(kindAt(row, jumps[i * 3 + 1]))) seq += jumps[i * 3 + 2];
  return seq === null ? "?" : seq + count;
}

function sortRows() {
  const by = byId("order").value, weigh = (row) => (culprits.has(row.rank) ? 0 : row.index < 0 ? 1 : row.missed ? 2 : row.waits >= 0 ? 3 : 4);
  const wanted = byId("group").value;
  shown = rows.slice();
  if (wanted.startsWith("g:") && about.groups[wanted.slice(2)]) {
    const inside = new Set(members(about.groups[wanted.slice(2)][2]));
    shown = shown.filter((row) => inside.has(row.rank));
  }
  if (by === "broken") shown.sort((a, b) => weigh(a) - weigh(b) || a.end - b.end || a.rank - b.rank);
  if (by === "end") shown.sort((a, b) => a.end - b.end || a.rank - b.rank);
  if (by === "late") shown.sort((a, b) => (b.late || 0) - (a.late || 0) || a.rank - b.rank);
  const label = wanted.startsWith("g:") ? (about.groups[wanted.slice(2)] || [])[1] : wanted.startsWith("l:") ? labels[+wanted.slice(2)] : null;
  dim = label === null || label === undefined ? null : label;
  mips = [];
  plan();
}

// Pyramids over the shown rows: of each 4, 16, … rows the worst cell of a column, so that one odd rank in 10,000 stays visible.
function mip(level) {
  while (mips.length <= level) {
    const number = mips.length, below = number ? mips[number - 1] : null;
    const size = Math.ceil((below ? below.rows : shown.length) / 4), cells = new Int32Array(size * about.width).fill(-1);
    for (let y = 0; y < size; y++) for (let part = 0; part < 4; part++) {
      const from = y * 4 + part;
      if (from >= (below ? below.rows : shown.length)) break;
      const base = below ? from * about.width : shown[from].index * about.width;
      if (!below && shown[from].index < 0) continue;
      for (let x = 0; x < about.width; x++) {
        const at = below ? below.cells[base + x] : base + x;
        if (at < 0 || !state[at]) continue;
        const now = cells[y * about.width + x];
        if (now < 0 || worse(at, now)) cells[y * about.width + x] = at;
      }
    }
    mips.push({ rows: size, cells });
  }
  return mips[level];
}
const RANKING = [0, 2, 3, 1, 4];
function worse(a, b) { return RANKING[state[a] & 7] - RANKING[state[b] & 7] || state[a] - state[b] ? (RANKING[state[a] & 7] - RANKING[state[b] & 7] || state[a] - state[b]) > 0 : false; }

const TINTS_LIGHT = ["#8fb8de", "#9fd0b0", "#c9b8e0", "#b9cf87", "#86cfd0", "#d3b79a", "#aab4c4", "#dba9c4"];
const TINTS_DARK = ["#2f5d8a", "#2f6b4a", "#5b4a86", "#55682a", "#1f6a6c", "#6e5238", "#4a5566", "#7a3f60"];
function chooseColours() {
  const style = getComputedStyle(document.documentElement), get = (name) => style.getPropertyValue(name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  colours = { ink: get("--ink"), soft: get("--soft"), paper: get("--paper"), empty: get("--cell-empty"), bad: get("--bad"), wait: get("--wait"), queue: get("--queue"), late: get("--late"), line: get("--line"), tints: dark ? TINTS_DARK : TINTS_LIGHT };
  colours.packed = {};
  canvas.dataset.theme = dark ? "dark" : "light";
}
function tint(label) { return colours.tints[labels.indexOf(label) % colours.tints.length]; }
function colourOf(at) {
  const what = state[at] & 7, late = state[at] >> 3;
  if (what === NOT_ENTERED) return colours.bad;
  if (what === STARTED) return colours.wait;
  if (what === SCHEDULED) return colours.queue;
  if (what === NOTHING) return colours.empty;
  const row = (at / about.width) | 0, kind = low[at] + 256 * high[at] - 1;
  const own = about.local.rows[about.local.which[row]], group = about.groups[own[about.kinds[kind][0]]];
  const label = group ? group[1] : "?";
  if (dim !== null && label !== dim) return colours.empty;
  return late ? mixed(tint(label), colours.late, [0, 0.35, 0.65, 1][late]) : tint(label);
}
function parts(hex) { return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)); }
function mixed(a, b, share) {
  const key = a + b + share;
  if (!colours.packed[key]) { const p = parts(a), q = parts(b); colours.packed[key] = "#" + p.map((one, i) => Math.round(one + (q[i] - one) * share).toString(16).padStart(2, "0")).join(""); }
  return colours.packed[key];
}
const WORDS = new Map();
function word(hex) {
  if (!WORDS.has(hex)) { const [r, g, b] = parts(hex); WORDS.set(hex, (255 << 24) | (b << 16) | (g << 8) | r); }
  return WORDS.get(hex);
}

function plan() { if (!pending) { pending = true; requestAnimationFrame(() => { pending = false; draw(); }); } }
function limits() {
  const width = stage.clientWidth - GUTTER, height = stage.clientHeight - RULER;
  view.sx = Math.min(60, Math.max(view.sx, Math.min(60, width / (about.width + 2))));
  view.sy = Math.min(48, Math.max(view.sy, Math.min(28, height / Math.max(1, shown.length))));
  view.x = Math.max(0, Math.min(view.x, Math.max(0, about.width + 2 - width / view.sx)));
  view.y = Math.max(0, Math.min(view.y, Math.max(0, shown.length - height / view.sy)));
}

function draw() {
  const scale = devicePixelRatio || 1, width = stage.clientWidth, height = stage.clientHeight;
  if (canvas.width !== width * scale || canvas.height !== height * scale) { canvas.width = width * scale; canvas.height = height * scale; }
  limits();
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.fillStyle = colours.paper; pen.fillRect(0, 0, width, height);
  pen.save(); pen.beginPath(); pen.rect(GUTTER, RULER, width - GUTTER, height - RULER); pen.clip();
  if (view.sx >= 3 && view.sy >= 4) drawCells(width, height); else drawPixels(width, height, scale);
  drawMarks(width, height);
  pen.restore();
  drawGutter(width, height);
  const last = Math.min(shown.length, Math.ceil(view.y + (height - RULER) / view.sy));
  byId("where").textContent = `${shown.length} ranks · rows ${Math.floor(view.y) + 1}–${last} · slots ${Math.floor(view.x)}–${Math.min(about.width, Math.ceil(view.x + (width - GUTTER) / view.sx))} of ${about.width}`;
}

function drawCells(width, height) {
  const gap = view.sx > 6 ? 1 : 0, rise = view.sy > 7 ? 1 : 0;
  for (let y = Math.floor(view.y); y < shown.length; y++) {
    const top = RULER + (y - view.y) * view.sy;
    if (top > height) break;
    const row = shown[y];
    if (row.index < 0) continue;
    for (let x = Math.floor(view.x); x < about.width; x++) {
      const left = GUTTER + (x - view.x) * view.sx;
      if (left > width) break;
      const at = row.index * about.width + x, what = state[at] & 7;
      if (what === NOTHING) continue;
      pen.fillStyle = colourOf(at);
      pen.fillRect(left, top, Math.max(1, view.sx - gap), Math.max(1, view.sy - rise));
      if (view.sx >= 6 && view.sy >= 6) sign(pen, what, state[at] >> 3, left, top, view.sx - gap, view.sy - rise);
    }
  }
}

// States are told by a sign too, not by colour alone: a stroke for started, dots for queued, a cross for never entered, bars for late.
function sign(to, what, late, left, top, w, h) {
  to.strokeStyle = to.fillStyle = what === NOT_ENTERED ? colours.paper : "#1b1f24"; to.lineWidth = 1.2;
  to.beginPath();
  if (what === STARTED) { to.moveTo(left + 1, top + h - 1); to.lineTo(left + w - 1, top + 1); to.stroke(); }
  if (what === SCHEDULED) to.fillRect(left + w / 2 - 1, top + h / 2 - 1, 2, 2);
  if (what === NOT_ENTERED) { to.moveTo(left + 1.5, top + 1.5); to.lineTo(left + w - 1.5, top + h - 1.5); to.moveTo(left + w - 1.5, top + 1.5); to.lineTo(left + 1.5, top + h - 1.5); to.stroke(); }
  for (let n = 0; n < late; n++) to.fillRect(left + 1 + n * 2, top + h - 3, 1, 2);
}

function drawPixels(width, height, scale) {
  const w = Math.floor((width - GUTTER) * scale), h = Math.floor((height - RULER) * scale);
  if (w <= 0 || h <= 0) return;
  const image = pen.createImageData(w, h), words = new Uint32Array(image.data.buffer), empty = word(colours.empty), paper = word(colours.paper);
  const step = 1 / (view.sy * scale), across = 1 / (view.sx * scale);
  let level = -1;
  while (Math.pow(4, level + 2) <= step && level < 6) level++;
  const rowsAt = level < 0 ? shown.length : mip(level).rows, shrink = level < 0 ? 1 : Math.pow(4, level + 1);
  let before = "";
  for (let y = 0; y < h; y++) {
    const top = Math.floor((view.y + y * step) / shrink), bottom = Math.max(top + 1, Math.floor((view.y + (y + 1) * step) / shrink));
    const key = top + ":" + bottom;
    if (key === before) { words.copyWithin(y * w, (y - 1) * w, y * w); continue; }
    before = key;
    if (top >= rowsAt) { words.fill(paper, y * w, (y + 1) * w); continue; }
    for (let x = 0; x < w; x++) {
      const left = Math.floor(view.x + x * across), right = Math.max(left + 1, Math.floor(view.x + (x + 1) * across));
      let worst = -1;
      for (let r = top; r < Math.min(bottom, rowsAt); r++) {
        const base = level < 0 ? shown[r].index * about.width : r * about.width;
        if (level < 0 && shown[r].index < 0) continue;
        for (let c = left; c < Math.min(right, about.width); c++) {
          const at = level < 0 ? base + c : mips[level].cells[base + c];
          if (at >= 0 && state[at] && (worst < 0 || worse(at, worst))) worst = at;
        }
      }
      words[y * w + x] = left >= about.width ? paper : worst < 0 ? empty : word(colourOf(worst));
    }
  }
  pen.putImageData(image, GUTTER * scale, RULER * scale);
}

// Rows of culprits and of ranks without a trace are drawn over everything, at least two pixels high, whatever the zoom.
function drawMarks(width, height) {
  for (let y = 0; y < shown.length; y++) {
    const row = shown[y], top = RULER + (y - view.y) * view.sy;
    if (top > height || top + view.sy < RULER - 4) continue;
    const tall = Math.max(2, view.sy);
    if (row.index < 0) {
      pen.strokeStyle = colours.bad; pen.setLineDash([6, 4]); pen.lineWidth = Math.min(2, tall);
      pen.beginPath(); pen.moveTo(GUTTER, top + tall / 2); pen.lineTo(width, top + tall / 2); pen.stroke(); pen.setLineDash([]);
      if (view.sy >= 9) { pen.fillStyle = colours.bad; pen.font = "11px system-ui"; pen.textAlign = "left"; pen.textBaseline = "bottom"; pen.fillText("left no trace", GUTTER + 8, top + tall / 2 - 1); }
    }
    if (suspects.has(row.rank) && row.index >= 0) {
      pen.fillStyle = pen.strokeStyle = colours.bad;
      const from = GUTTER + (row.end + 1 - view.x) * view.sx;
      pen.globalAlpha = 0.3; if (from < width) pen.fillRect(Math.max(GUTTER, from), top, width - from, Math.max(1.5, view.sy - 1)); pen.globalAlpha = 1;
      pen.lineWidth = view.sy < 4 ? 1 : 1.5; pen.strokeRect(GUTTER - 2, top - (view.sy < 4 ? 1 : 0.5), width - GUTTER + 4, tall + (view.sy < 4 ? 1 : 0));
    }
    if (row.rank === found) { pen.strokeStyle = colours.ink; pen.lineWidth = 1.5; pen.setLineDash([2, 2]); pen.strokeRect(GUTTER - 2, top, width - GUTTER + 4, tall); pen.setLineDash([]); }
    if (held && held.row === row) { pen.strokeStyle = colours.ink; pen.lineWidth = 2; pen.strokeRect(GUTTER + (held.x - view.x) * view.sx - 1, top - 1, Math.max(4, view.sx) + 1, tall + 1); }
  }
}

function drawGutter(width, height) {
  pen.font = "11px system-ui"; pen.textBaseline = "middle"; pen.textAlign = "right";
  const every = Math.max(1, Math.ceil(13 / view.sy)), taken = [];
  const write = (y, bad) => {
    const middle = RULER + (y - view.y + 0.5) * view.sy;
    if (middle < RULER || middle > height || taken.some((one) => Math.abs(one - middle) < 12)) return;
    taken.push(middle);
    pen.fillStyle = bad ? colours.bad : colours.soft; pen.font = (bad ? "bold " : "") + "11px system-ui";
    pen.fillText((bad ? "▶ " : "") + shown[y].rank, GUTTER - 8, middle);
  };
  for (let y = 0; y < shown.length; y++) if (suspects.has(shown[y].rank) || shown[y].index < 0) write(y, true);
  const first = Math.ceil(view.y / every) * every, last = Math.min(shown.length, view.y + (height - RULER) / view.sy);
  for (let y = first; y < last; y += every) write(y, false);
  pen.textAlign = "center"; pen.fillStyle = colours.soft; pen.font = "10px system-ui";
  const wide = Math.pow(10, Math.ceil(Math.log10(60 / view.sx))), step = wide / view.sx > 0 && (wide / 2) * view.sx > 60 ? wide / 2 : wide;
  for (let x = about.width - 1; x >= view.x; x -= Math.max(1, step)) {
    const left = GUTTER + (x + 0.5 - view.x) * view.sx, back = about.width - 1 - x;
    if (left < width && left > GUTTER) pen.fillText(back ? "−" + back : "last", left, RULER / 2);
  }
}

const SAID = ["", "queued, not started", "started, not ended", "ended", "not entered"];
function facts(row, x) {
  const list = [["rank", row.rank + (culprits.has(row.rank) ? " ▶ broke formation" : victims.has(row.rank) ? " (suffered from it)" : "")]];
  const host = about.hosts[row.rank];
  if (host) list.push(["host", host]);
  if (row.index < 0) return list.concat([["trace", "none: this rank left no dump"]]);
  const at = row.index * about.width + x, what = state[at] & 7;
  if (what === NOT_ENTERED) return list.concat([["state", "did not come to a call that others of its group wait in"]]);
  if (what === NOTHING) return list.concat([["here", x > row.end ? "nothing: its calls end earlier" : "no call"]]);
  const kind = about.kinds[kindAt(row, x)], group = groupAt(row, kindAt(row, x)), inside = members(group[2]);
  list.push(["call", kind[1] + (kind[6] === null ? "" : " with rank " + (row.rank + kind[6])) + (kind[7] === null ? "" : ", root " + (inside[0] + kind[7]))]);
  list.push(["group", group[1] + " (" + group[0] + ", " + inside.length + " ranks)"]);
  list.push(["number", String(seqAt(row, x)) + (kind[5] ? " (point to point)" : "")]);
  if (kind[2]) list.push(["sizes", kind[2] + (kind[3] ? " " + kind[3] : "")]);
  list.push(["state", SAID[what]]);
  if (kind[4]) list.push(["at", kind[4]]);
  if (row.late > 2) list.push(["late", "usually by " + row.late + " ms"]);
  if (about.overwritten[row.rank]) list.push(["ring", about.overwritten[row.rank] + " older calls were overwritten"]);
  if (about.files[row.index]) list.push(["file", about.files[row.index]]);
  return list;
}
function fill(where, list, pairs) {
  where.replaceChildren(...list.flatMap(([name, value]) => {
    const a = document.createElement(pairs ? "dt" : "b"), b = document.createElement(pairs ? "dd" : "span");
    a.textContent = pairs ? name : name + " "; b.textContent = value;
    return pairs ? [a, b] : [a, b, document.createElement("br")];
  }));
}
function hold(row, x) {
  held = { row, x };
  byId("pinned").hidden = false;
  fill(byId("pinned").querySelector("dl"), facts(row, x), true);
  plan();
}
function cellAt(event) {
  const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
  const row = shown[Math.floor(view.y + (py - RULER) / view.sy)], x = Math.floor(view.x + (px - GUTTER) / view.sx);
  return row && py > RULER && x < about.width ? { row, x: Math.max(0, px < GUTTER ? row.end : x), px, py } : null;
}
function hover(event) {
  const here = cellAt(event);
  tip.hidden = !here;
  if (!here) return;
  fill(tip, facts(here.row, here.x), false);
  tip.style.left = Math.min(here.px + 14, stage.clientWidth - tip.offsetWidth - 6) + "px";
  tip.style.top = (here.py + 16 + tip.offsetHeight > stage.clientHeight ? Math.max(2, here.py - tip.offsetHeight - 8) : here.py + 16) + "px";
}

function zoom(factor, px, py, rowsOnly, slotsOnly) {
  const x = view.x + (px - GUTTER) / view.sx, y = view.y + (py - RULER) / view.sy;
  if (!rowsOnly) view.sx *= factor;
  if (!slotsOnly) view.sy *= factor;
  limits();
  view.x = x - (px - GUTTER) / view.sx; view.y = y - (py - RULER) / view.sy;
  plan();
}
function fit() { view = { x: 0, y: 0, sx: 0, sy: 0 }; plan(); }
function theEnd() {
  view.sx = Math.max(6, (stage.clientWidth - GUTTER) / Math.min(about.width + 2, 90)); view.sy = 0; view.y = 0;
  view.x = about.width; plan();
}
function go(rank, close) {
  const y = shown.findIndex((row) => row.rank === rank);
  if (y < 0) { byId("where").textContent = "no rank " + rank + " here"; return; }
  found = rank;
  if (close) { view.sy = Math.max(view.sy, 14); view.sx = Math.max(view.sx, 7); }
  view.y = y - (stage.clientHeight - RULER) / view.sy / 2;
  const row = shown[y], want = row.end < 0 ? about.width : row.end;
  const span = (stage.clientWidth - GUTTER) / view.sx;
  if (want < view.x || want > view.x + span) view.x = want - span * 0.6;
  plan();
}
let turn = -1;
function nextCulprit() {
  const all = shown.filter((row) => suspects.has(row.rank));
  if (all.length) { turn = (turn + 1) % all.length; go(all[turn].rank, true); }
}

function fillGroups() {
  const select = byId("group"), counts = labels.map((label) => Object.entries(about.groups).filter(([, group]) => group[1] === label));
  const option = (value, text) => { const one = document.createElement("option"); one.value = value; one.textContent = text; return one; };
  labels.forEach((label, number) => {
    select.append(option("l:" + number, `${label} (${counts[number].length} group${counts[number].length > 1 ? "s" : ""})`));
    if (counts[number].length > 1 && counts[number].length <= 64)
      for (const [id, group] of counts[number]) { const all = members(group[2]); select.append(option("g:" + id, `\u2003${group[0]}: ranks ${all.slice(0, 4).join(", ")}${all.length > 4 ? ", …" : ""}`)); }
  });
}
function drawLegend() {
  const items = labels.map((label) => [COMPLETED, 0, label, "ended: " + label]);
  items.push([STARTED, 0, null, "started, not ended"], [SCHEDULED, 0, null, "queued, not started"], [NOT_ENTERED, 0, null, "not entered while others wait"], [COMPLETED, 3, labels[0], "came late (bars: how late)"]);
  byId("legend").replaceChildren(...items.map(([what, late, label, text]) => {
    const span = document.createElement("span"), box = document.createElement("canvas"), words = document.createElement("span");
    box.width = 22; box.height = 14;
    const to = box.getContext("2d");
    to.fillStyle = what === NOT_ENTERED ? colours.bad : what === STARTED ? colours.wait : what === SCHEDULED ? colours.queue : late ? colours.late : tint(label);
    to.fillRect(0, 0, 22, 14); sign(to, what, late, 4, 1, 14, 12);
    words.textContent = text; span.append(box, words);
    return span;
  }));
}

// `#rank=12&order=broken&hold=12,140&view=all` opens the page there: for links in tickets, and for tests.
function fromHash() {
  const wish = new URLSearchParams(location.hash.slice(1));
  if (["broken", "end", "late"].includes(wish.get("order"))) byId("order").value = wish.get("order");
  if (wish.get("group") !== null) { const number = labels.indexOf(wish.get("group")); if (number >= 0) byId("group").value = "l:" + number; }
  sortRows();
  if (wish.get("view") === "all") fit(); else theEnd();
  draw();
  if (wish.get("rank")) go(+wish.get("rank"), true);
  const [rank, x] = (wish.get("hold") || "").split(",").map(Number), row = rows.find((one) => one.rank === rank);
  if (row && wish.get("hold")) hold(row, Number.isInteger(x) ? Math.max(0, Math.min(x, about.width - 1)) : Math.max(0, row.waits >= 0 ? row.waits : row.end));
  draw();
}

let drag = null;
canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, vx: view.x, vy: view.y, moved: false }; canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener("pointermove", (event) => {
  if (!drag) return hover(event);
  if (Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) > 4) { drag.moved = true; canvas.classList.add("dragging"); tip.hidden = true; }
  if (drag.moved) { view.x = drag.vx - (event.clientX - drag.x) / view.sx; view.y = drag.vy - (event.clientY - drag.y) / view.sy; plan(); }
});
canvas.addEventListener("pointerup", (event) => { const here = cellAt(event); if (drag && !drag.moved && here) hold(here.row, here.x); drag = null; canvas.classList.remove("dragging"); });
canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
canvas.addEventListener("wheel", (event) => { event.preventDefault(); const box = canvas.getBoundingClientRect(); zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top, event.shiftKey, event.altKey); }, { passive: false });
addEventListener("keydown", (event) => {
  if (!about || event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = ["INPUT", "SELECT"].includes(document.activeElement.tagName);
  if (event.key === "Escape") { held = null; found = -1; byId("pinned").hidden = true; document.activeElement.blur(); plan(); return; }
  if (typing) return;
  const w = stage.clientWidth, h = stage.clientHeight, move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (move) { view.x += (move[0] * w) / 8 / view.sx; view.y += (move[1] * h) / 8 / view.sy; }
  else if (event.key === "+" || event.key === "=" || event.key === "*") zoom(1.3, w / 2, h / 2, event.shiftKey);
  else if (event.key === "-" || event.key === "_") zoom(1 / 1.3, w / 2, h / 2, event.shiftKey);
  else if (event.key === "PageDown" || event.key === "PageUp") view.y += ((event.key === "PageDown" ? 1 : -1) * h) / view.sy;
  else if (event.key === "Home") view.x = 0;
  else if (event.key === "End") view.x = about.width;
  else if (event.key === "f") fit();
  else if (event.key === "e") theEnd();
  else if (event.key === "c") nextCulprit();
  else if (event.key === "/") byId("rank").focus();
  else return;
  event.preventDefault(); plan();
});
byId("rank").addEventListener("change", () => { if (/^\d+$/.test(byId("rank").value.trim())) go(+byId("rank").value, true); });
byId("group").addEventListener("change", sortRows);
byId("order").addEventListener("change", () => { sortRows(); view.y = 0; });
byId("fit").addEventListener("click", fit);
byId("end").addEventListener("click", theEnd);
byId("culprit").addEventListener("click", nextCulprit);
byId("in").addEventListener("click", () => zoom(1.5, stage.clientWidth / 2, stage.clientHeight / 2));
byId("out").addEventListener("click", () => zoom(1 / 1.5, stage.clientWidth / 2, stage.clientHeight / 2));
addEventListener("resize", () => about && plan());
addEventListener("hashchange", () => about && fromHash());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (about) { chooseColours(); drawLegend(); plan(); } });
load().catch((error) => { byId("where").textContent = "The page could not be drawn: " + error.message; document.documentElement.dataset.failed = error.message; });
