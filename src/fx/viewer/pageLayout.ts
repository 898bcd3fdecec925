// The first part of a graph page's script: the tree of modules, and where each box goes.
//
// The layout is layered: nodes are assigned to rows by the longest path from the inputs, ordered within rows to keep edges short, and then placed. An expanded module
// is laid out first and is one large box in the layout of its parent; a collapsed module is a small box.
export const PAGE_LAYOUT = String.raw`
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
`
