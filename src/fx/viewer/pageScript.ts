// The script of a graph page as text, which is embedded in the page. It is plain JavaScript without template literals.
//
// The layout is layered: nodes are assigned to rows by the longest path from the inputs, ordered within rows to keep edges short, and then placed. An expanded module
// is laid out first and is one large box in the layout of its parent; a collapsed module is a small box.
export const PAGE_SCRIPT = String.raw`
'use strict';
const view = JSON.parse(document.getElementById('data').textContent);
const byName = new Map(view.nodes.map((n) => [n.name, n]));
const svg = document.querySelector('#canvas svg');
const SVG = 'http://www.w3.org/2000/svg';
const LINE = 16, PAD = 9, GAP_X = 26, GAP_Y = 34, HEAD = 24, INSET = 14;

// ---- the tree of modules: consecutive nodes that were recorded in the same call form a group ----

function makeTree() {
  const root = { key: '', label: '', children: [], parent: null, open: true };
  const stack = [root];
  let serial = 0;
  for (const node of view.nodes) {
    let depth = 0;
    while (depth < node.modules.length && depth + 1 < stack.length && stack[depth + 1].path === node.modules[depth].path) depth++;
    stack.length = depth + 1;
    for (; depth < node.modules.length; depth++) {
      const module = node.modules[depth];
      const parent = stack[stack.length - 1];
      const group = { key: 'g' + serial++, path: module.path, label: module.path, className: module.className, children: [], parent, open: true };
      parent.children.push(group);
      stack.push(group);
    }
    const leaf = { key: node.name, node, parent: stack[stack.length - 1] };
    leaf.parent.children.push(leaf);
    node.item = leaf;
  }
  return root;
}
const root = makeTree();
const groups = [];
(function collect(group) { for (const child of group.children) if (child.children) { groups.push(child); collect(child); } })(root);
const sizeOf = (group) => group.children.reduce((n, c) => n + (c.children ? sizeOf(c) : 1), 0);
if (view.nodes.length > 150) for (const group of groups) group.open = false;

/** The item that currently represents a node: the node itself, or the outermost collapsed module around it. */
function shown(item) {
  let found = item;
  for (let at = item.parent; at !== null; at = at.parent) if (!at.open) found = at;
  return found;
}

// ---- layout ----

const measure = document.createElement('canvas').getContext('2d');
function textWidth(text, bold) {
  measure.font = (bold ? '600 13px ' : '11px ') + 'system-ui, -apple-system, "Segoe UI", sans-serif';
  return measure.measureText(text).width;
}
const clip = (text, length) => (text.length > length ? text.slice(0, length - 1) + '…' : text);
function linesOf(node) {
  const lines = [{ text: clip(node.name, 34), bold: true }];
  if (node.op !== 'placeholder' && node.op !== 'output' && node.target !== node.name) lines.push({ text: clip(node.target, 40) });
  if (node.spec) lines.push({ text: clip(node.spec, 40) });
  return lines;
}
function sizeItem(item) {
  if (item.node) {
    item.lines = linesOf(item.node);
    item.w = Math.max(46, ...item.lines.map((l) => textWidth(l.text, l.bold))) + 2 * PAD;
    item.h = item.lines.length * LINE + 2 * PAD - 3;
  } else if (item.open) {
    layoutGroup(item);
    item.w = Math.max(item.inner.w + 2 * INSET, textWidth(item.label + ' ' + item.className, true) + 50);
    item.h = item.inner.h + HEAD + INSET;
  } else {
    item.lines = [{ text: clip(item.label, 34), bold: true }, { text: item.className + ', ' + sizeOf(item) + ' nodes' }];
    item.w = Math.max(...item.lines.map((l) => textWidth(l.text, l.bold))) + 2 * PAD + 16;
    item.h = 2 * LINE + 2 * PAD - 3;
  }
}

/** The child of the group that contains the item. */
function childOf(group, item) {
  let at = item;
  while (at !== null && at.parent !== group) at = at.parent;
  return at;
}

function layoutGroup(group) {
  const items = group.children;
  items.forEach((item, i) => { sizeItem(item); item.index = i; item.preds = []; item.succs = []; item.via = new Map(); item.entry = []; item.exit = []; item.fromOutside = item.toOutside = false; });
  const seen = new Set();
  (function visit(g) {
    for (const child of g.children) {
      if (child.children) { visit(child); continue; }
      for (const name of child.node.inputs) {
        const source = byName.get(name);
        const from = source && childOf(group, source.item), to = childOf(group, child);
        if (source && !from) to.fromOutside = true;
        if (!from || from === to || from.index > to.index || seen.has(from.index + '>' + to.index)) continue;
        seen.add(from.index + '>' + to.index);
        from.succs.push(to);
        to.preds.push(from);
      }
      for (const name of child.node.users) {
        const user = byName.get(name);
        if (user && !childOf(group, user.item)) childOf(group, child).toOutside = true;
      }
    }
  })(group);
  for (const item of items) item.row = item.preds.reduce((row, p) => Math.max(row, p.row + 1), 0);
  // Put parameters and other sources near their users.
  for (const item of items) if (item.preds.length === 0 && item.succs.length > 0) item.row = Math.min(...item.succs.map((s) => s.row)) - 1;
  const least = Math.min(0, ...items.map((i) => i.row));
  const rows = [];
  for (const item of items) { item.row -= least; (rows[item.row] = rows[item.row] || []).push(item); }
  for (let r = 0; r < rows.length; r++) rows[r] = rows[r] || [];
  // Edges that span several rows or leave the group are routed between the boxes.
  for (const item of items) { item.up = []; item.down = []; }
  const lane = (from, first, end, to, index) => {
    const bends = [];
    let last = from;
    if (end - first <= 40) {
      for (let r = first; r < end; r++) {
        const bend = { bend: true, w: 10, h: 0, up: [], down: [], index };
        if (last) { last.down.push(bend); bend.up.push(last); }
        rows[r].push(bend);
        bends.push(bend);
        last = bend;
      }
    }
    if (to && last) { last.down.push(to); to.up.push(last); }
    return bends;
  };
  for (const item of items) {
    for (const to of item.succs) item.via.set(to, lane(item, item.row + 1, to.row, to, item.index));
    if (item.fromOutside) item.entry = lane(null, 0, item.row, item, item.index + 0.5);
    if (item.toOutside) item.exit = lane(item, item.row + 1, rows.length, null, item.index);
  }
  const place = (row) => row.forEach((item, i) => { item.order = i; });
  rows.forEach((row) => { row.sort((a, b) => a.index - b.index); place(row); });
  const mean = (list) => list.reduce((n, x) => n + x.order, 0) / list.length;
  for (let sweep = 0; sweep < 6; sweep++) {
    const down = sweep % 2 === 0;
    for (let k = 1; k < rows.length; k++) {
      const row = rows[down ? k : rows.length - 1 - k];
      for (const item of row) { const near = down ? item.up : item.down; item.wish = near.length > 0 ? mean(near) : item.order; }
      row.sort((a, b) => a.wish - b.wish || a.order - b.order);
      place(row);
    }
  }
  let y = 0;
  for (const row of rows) {
    const height = Math.max(0, ...row.map((i) => i.h));
    let x = 0;
    for (const item of row) { item.cx = x + item.w / 2; x += item.w + GAP_X; item.y = y + (item.bend ? height / 2 : 0); }
    y += height + GAP_Y;
  }
  for (let pass = 0; pass < 12; pass++) {
    const down = pass % 2 === 0;
    for (let k = 0; k < rows.length; k++) {
      const row = rows[down ? k : rows.length - 1 - k];
      const wish = row.map((item) => {
        const near = down ? item.up : item.down;
        return near.length > 0 ? near.reduce((n, i) => n + i.cx, 0) / near.length : item.cx;
      });
      const apart = (i) => (row[i - 1].w + row[i].w) / 2 + GAP_X;
      const left = wish.slice(), right = wish.slice();
      for (let i = 1; i < row.length; i++) left[i] = Math.max(wish[i], left[i - 1] + apart(i));
      for (let i = row.length - 2; i >= 0; i--) right[i] = Math.min(wish[i], right[i + 1] - apart(i + 1));
      row.forEach((item, i) => { item.cx = (left[i] + right[i]) / 2; });
    }
  }
  const all = rows.flat();
  const minX = Math.min(0, ...all.map((i) => i.cx - i.w / 2)), maxX = Math.max(0, ...all.map((i) => i.cx + i.w / 2));
  for (const item of all) { item.x = item.cx - item.w / 2 - minX; }
  group.inner = { w: maxX - minX, h: Math.max(0, y - GAP_Y) };
}

function resolve(group, x, y) {
  for (const item of group.children) {
    item.ax = x + item.x;
    item.ay = y + item.y;
    for (const bends of [...item.via.values(), item.entry, item.exit]) for (const bend of bends) { bend.ax = x + bend.x + bend.w / 2; bend.ay = y + bend.y; }
    if (item.children && item.open) resolve(item, item.ax + (item.w - item.inner.w) / 2, item.ay + HEAD);
  }
}

// ---- drawing ----

const make = (name, attributes, parent, text) => {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
};
let scene, current = null, hits = new Set(), edges = [];

function draw() {
  layoutGroup(root);
  resolve(root, 0, 0);
  if (scene) scene.remove();
  scene = make('g', {}, svg);
  const boxes = make('g', {}, scene), lines = make('g', {}, scene), nodes = make('g', {}, scene);
  (function each(group) {
    for (const item of group.children) {
      if (item.children && item.open) {
        const g = make('g', {}, boxes);
        make('rect', { class: 'group', x: item.ax, y: item.ay, width: item.w, height: item.h, rx: 9 }, g);
        const head = make('g', { class: 'head', 'data-group': item.key }, g);
        make('rect', { x: item.ax, y: item.ay, width: item.w, height: HEAD, fill: 'transparent' }, head);
        make('text', { x: item.ax + 10, y: item.ay + 16, class: 'small' }, head, '▾ ' + item.label + (item.className ? '  ' + item.className : ''));
        head.addEventListener('click', () => toggle(item));
        each(item);
      } else drawBox(item, nodes);
    }
  })(root);
  edges = [];
  const drawn = new Map();
  for (const node of view.nodes) for (const name of node.inputs) {
    const source = byName.get(name);
    if (!source) continue;
    const from = shown(source.item), to = shown(node.item);
    if (from === to) continue;
    const key = from.key + '>' + to.key;
    let path = drawn.get(key);
    if (!path) { path = make('path', { class: 'edge', d: route(from, to), 'marker-end': 'url(#arrow)' }, lines); drawn.set(key, path); }
    edges.push({ from: name, to: node.name, path });
  }
  mark();
}

function drawBox(item, parent) {
  const node = item.node;
  const kind = node ? node.op : 'call_module';
  const change = node ? node.change : changeOf(item);
  const g = make('g', { class: 'node ' + (change === 'same' ? '' : change), tabindex: 0, role: 'button' }, parent);
  g.setAttribute(node ? 'data-node' : 'data-group', node ? node.name : item.key);
  g.setAttribute('aria-label', node ? node.name : item.label);
  if (!node) make('rect', { class: 'box', x: item.ax + 4, y: item.ay + 4, width: item.w, height: item.h, rx: 7, fill: 'var(--group)' }, g);
  make('rect', { class: 'box', x: item.ax, y: item.ay, width: item.w, height: item.h, rx: 7, fill: 'var(--' + kind + ')' }, g);
  item.lines.forEach((line, i) => make('text', { class: line.bold ? 'title' : 'small', x: item.ax + item.w / 2, y: item.ay + PAD + 11 + i * LINE, 'text-anchor': 'middle' }, g, (i === 0 && !node ? '▸ ' : '') + line.text));
  const act = () => (node ? select(node.name) : toggle(item));
  g.addEventListener('click', act);
  g.addEventListener('keydown', (e) => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); act(); } });
  item.element = g;
}
const changeOf = (group) => (group.children.some((c) => (c.children ? changeOf(c) : c.node.change) !== 'same') ? 'changed' : 'same');

function route(from, to) {
  const points = [[from.ax + from.w / 2, from.ay + from.h]];
  const pass = (bends) => { for (const bend of bends) points.push([bend.ax, bend.ay]); };
  // Route the edge out of the modules around one end, across, and into those around the other end.
  let common = from.parent, a = from, b = to;
  for (; !childOf(common, to); a = common, common = common.parent) pass(a.exit);
  const into = [];
  for (; b.parent !== common; b = b.parent) into.unshift(b.entry);
  pass(a.via.get(b) || []);
  into.forEach(pass);
  points.push([to.ax + to.w / 2, to.ay - 5]);
  let d = 'M' + points[0][0] + ',' + points[0][1];
  for (let i = 1; i < points.length; i++) {
    const [x0, y0] = points[i - 1], [x1, y1] = points[i];
    const bow = Math.max(14, Math.abs(y1 - y0) * 0.45);
    d += 'C' + x0 + ',' + (y0 + bow) + ' ' + x1 + ',' + (y1 - bow) + ' ' + x1 + ',' + y1;
  }
  return d;
}

function toggle(group) {
  const anchor = [group.ax, group.ay];
  group.open = !group.open;
  draw();
  // Keep the clicked module at its position on the screen.
  move.x += (anchor[0] - group.ax) * move.k;
  move.y += (anchor[1] - group.ay) * move.k;
  apply();
}
function setAll(open) { for (const group of groups) group.open = open; draw(); fit(); }
function reveal(item) {
  let changed = false;
  for (let at = item.parent; at !== null; at = at.parent) if (!at.open) { at.open = true; changed = true; }
  if (changed) draw();
}

// ---- pan and zoom ----

const move = { x: 0, y: 0, k: 1 };
const canvas = document.getElementById('canvas');
const apply = () => scene.setAttribute('transform', 'translate(' + move.x + ',' + move.y + ') scale(' + move.k + ')');
function fit() {
  const { clientWidth: w, clientHeight: h } = canvas;
  move.k = Math.min(1.25, (w - 40) / Math.max(root.inner.w, 1), (h - 40) / Math.max(root.inner.h, 1));
  // Show a tall graph from its top, at a readable size.
  const tall = move.k < 0.45;
  if (tall) move.k = Math.min(0.8, Math.max(0.45, (w - 40) / root.inner.w));
  move.x = (w - root.inner.w * move.k) / 2;
  move.y = tall ? 20 : (h - root.inner.h * move.k) / 2;
  apply();
}
function center(item) {
  const at = shown(item);
  move.k = Math.max(move.k, 0.8);
  move.x = canvas.clientWidth / 2 - (at.ax + at.w / 2) * move.k;
  move.y = canvas.clientHeight / 2 - (at.ay + at.h / 2) * move.k;
  apply();
}
canvas.addEventListener('wheel', (e) => {
  e.preventDefault();
  const box = canvas.getBoundingClientRect();
  const x = e.clientX - box.left, y = e.clientY - box.top;
  const k = Math.min(4, Math.max(0.03, move.k * Math.exp(-e.deltaY * 0.0015)));
  move.x = x - ((x - move.x) * k) / move.k;
  move.y = y - ((y - move.y) * k) / move.k;
  move.k = k;
  apply();
}, { passive: false });
let drag = null;
canvas.addEventListener('pointerdown', (e) => { drag = { x: e.clientX, y: e.clientY, moved: false }; });
canvas.addEventListener('pointermove', (e) => {
  if (!drag || e.buttons === 0) { drag = null; return; }
  const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
  if (!drag.moved && Math.hypot(dx, dy) < 4) return;
  if (!drag.moved) { drag.moved = true; canvas.setPointerCapture(e.pointerId); canvas.classList.add('dragging'); }
  move.x += dx; move.y += dy; drag.x = e.clientX; drag.y = e.clientY;
  apply();
});
canvas.addEventListener('pointerup', () => { drag = null; canvas.classList.remove('dragging'); });

// ---- selection, search, panel ----

const panel = document.getElementById('panel'), code = document.getElementById('code');
const html = (tag, attributes, ...children) => {
  const element = document.createElement(tag);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  element.append(...children);
  return element;
};
const link = (name) => {
  const a = html('a', { class: 'node', 'data-link': name }, name);
  a.addEventListener('click', () => { const node = byName.get(name); if (node) { reveal(node.item); select(name); center(node.item); } });
  return a;
};
/** The text with %names turned into links. */
function linked(text) {
  return text.split(/(%[\w.]+)/).map((part) => (part[0] === '%' && byName.has(part.slice(1)) ? link(part.slice(1)) : part));
}
function separated(names) { return names.flatMap((name, i) => (i === 0 ? [link(name)] : [', ', link(name)])); }

function select(name) {
  current = name;
  const node = byName.get(name);
  panel.replaceChildren();
  panel.append(html('h2', {}, node.name));
  const sub = html('div', { class: 'sub' }, node.op + ' ');
  if (node.change !== 'same') sub.append(html('span', { class: 'badge ' + node.change }, node.change));
  panel.append(sub);
  const list = html('dl', {});
  const row = (title, content) => { if (content.length > 0) list.append(html('dt', {}, title), html('dd', {}, ...content)); };
  row('target', [node.target]);
  if (node.spec) row('value', [node.spec]);
  row('args', node.args.flatMap((a, i) => [...(i > 0 ? [', '] : []), ...linked(a)]));
  for (const key in node.kwargs) row(key, linked(node.kwargs[key]));
  row('users', separated(node.users));
  row('module', node.modules.map((m) => m.path + ' (' + m.className + ')').join(' › ') ? [node.modules.map((m) => m.path + ' (' + m.className + ')').join(' › ')] : []);
  panel.append(list);
  if (node.was) panel.append(html('div', { class: 'label' }, 'before'), html('pre', {}, node.was));
  const lines = view.code.filter((l) => l.node === name).map((l) => l.text.trim());
  if (lines.length > 0) panel.append(html('div', { class: 'label' }, 'generated code'), html('pre', { id: 'line' }, lines.join('\n')));
  if (node.origin) panel.append(html('div', { class: 'label' }, node.origin.file + ':' + node.origin.line + ' in ' + node.origin.fn), html('pre', { id: 'origin' }, node.origin.code || ''));
  if (node.stack) {
    const details = html('details', {}, html('summary', { class: 'label' }, 'stack'));
    details.append(html('pre', {}, node.stack));
    panel.append(details);
  }
  mark();
}

function mark() {
  for (const node of view.nodes) {
    const at = shown(node.item);
    if (at.element) at.element.classList.remove('current', 'hit', 'faded');
  }
  for (const node of view.nodes) {
    const at = shown(node.item);
    if (!at.element) continue;
    if (hits.has(node.name)) at.element.classList.add('hit');
    if (node.name === current) at.element.classList.add('current');
  }
  if (hits.size > 0) {
    const lit = new Set([...hits].map((name) => shown(byName.get(name).item)));
    for (const node of view.nodes) { const at = shown(node.item); if (at.element && !lit.has(at)) at.element.classList.add('faded'); }
  }
  for (const { from, to, path } of edges) path.classList.remove('near');
  for (const { from, to, path } of edges) if (from === current || to === current) path.classList.add('near');
  for (const div of code.children) div.classList.toggle('current', current !== null && div.dataset.node === current);
}

for (const line of view.code) {
  const div = html('div', { class: (line.node ? 'link ' : '') + (line.change === 'same' ? '' : line.change) }, line.text || ' ');
  if (line.node) {
    div.dataset.node = line.node;
    div.addEventListener('click', () => { const { item } = byName.get(line.node); reveal(item); select(line.node); center(item); });
  }
  code.append(div);
}
for (const tab of document.querySelectorAll('.tabs button')) {
  tab.addEventListener('click', () => {
    for (const other of document.querySelectorAll('.tabs button')) other.setAttribute('aria-selected', String(other === tab));
    panel.hidden = tab.dataset.tab !== 'panel';
    code.hidden = tab.dataset.tab !== 'code';
  });
}

const search = document.getElementById('search'), count = document.getElementById('hits');
let turn = -1;
search.addEventListener('input', () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (n) => [n.name, n.op, n.target, n.spec, ...n.modules.map((m) => m.path + ' ' + m.className)].join(' ').toLowerCase();
  hits = new Set(words.length === 0 ? [] : view.nodes.filter((n) => words.every((w) => text(n).includes(w))).map((n) => n.name));
  turn = -1;
  count.textContent = words.length === 0 ? '' : hits.size + ' found';
  mark();
});
search.addEventListener('keydown', (e) => {
  if (e.key === 'Escape') { search.value = ''; search.dispatchEvent(new Event('input')); search.blur(); }
  if (e.key !== 'Enter' || hits.size === 0) return;
  turn = (turn + (e.shiftKey ? hits.size - 1 : 1)) % hits.size;
  const name = [...hits][turn];
  reveal(byName.get(name).item);
  select(name);
  center(byName.get(name).item);
  count.textContent = turn + 1 + ' of ' + hits.size;
});
document.getElementById('fit').addEventListener('click', fit);
document.getElementById('open').addEventListener('click', () => setAll(true));
document.getElementById('close').addEventListener('click', () => setAll(false));
if (groups.length === 0) for (const id of ['open', 'close']) document.getElementById(id).hidden = true;
addEventListener('keydown', (e) => {
  if (e.target === search || e.ctrlKey || e.metaKey) return;
  if (e.key === '/') { e.preventDefault(); search.focus(); }
  if (e.key === 'f') fit();
});
draw();
fit();
`
