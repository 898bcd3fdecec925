// The script of a graph page as text, which is embedded in the page. It is plain JavaScript without template literals.
import { PAGE_CAMERA } from './pageCamera.ts'
import { PAGE_LAYOUT } from './pageLayout.ts'

const DRAWING = String.raw`
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
function setAll(open) { for (const group of groups) group.open = open; draw(); start(); }
function reveal(item) {
  let changed = false;
  for (let at = item.parent; at !== null; at = at.parent) if (!at.open) { at.open = true; changed = true; }
  if (changed) draw();
}
`

const PANEL = String.raw`
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
  if (e.key === '+' || e.key === '=') zoom(1.4);
  if (e.key === '-') zoom(1 / 1.4);
});
draw();
start();
// A page that is opened in the background, or in a hidden frame, has no size yet.
if (canvas.clientWidth === 0 || canvas.clientHeight === 0) {
  const observer = new ResizeObserver(() => { if (canvas.clientWidth > 0 && canvas.clientHeight > 0) { observer.disconnect(); start(); } });
  observer.observe(canvas);
}
`

/** The parts share one scope and run in this order. */
export const PAGE_SCRIPT: string = [PAGE_LAYOUT, DRAWING, PAGE_CAMERA, PANEL].join('')
