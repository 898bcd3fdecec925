// The part of a graph page's script that moves the view: the first view, Fit, dragging, the wheel, pinching, and the buttons.
export const PAGE_CAMERA = String.raw`
// ---- pan and zoom ----

const move = { x: 0, y: 0, k: 1 };
const canvas = document.getElementById('canvas');
const MARGIN = 20, READABLE = 0.7, MOST = 4;
const apply = () => scene.setAttribute('transform', 'translate(' + move.x + ',' + move.y + ') scale(' + move.k + ')');
/** The scale at which everything fits. */
function wholeScale() {
  const room = (length) => Math.max(length - 2 * MARGIN, 1);
  return Math.min(1.25, room(canvas.clientWidth) / Math.max(root.inner.w, 1), room(canvas.clientHeight) / Math.max(root.inner.h, 1));
}
function fit() {
  move.k = wholeScale();
  move.x = (canvas.clientWidth - root.inner.w * move.k) / 2;
  move.y = (canvas.clientHeight - root.inner.h * move.k) / 2;
  apply();
}
/** The first view: everything, or, where that would be too small to read, the top of the graph with the first node. */
function start() {
  fit();
  if (move.k >= READABLE || view.nodes.length === 0) return;
  const { clientWidth: w, clientHeight: h } = canvas;
  const first = shown(view.nodes[0].item);
  move.k = 0.8;
  const seen = (from, length, offset, room) => from * move.k + offset >= 0 && (from + length) * move.k + offset <= room;
  move.x = (w - root.inner.w * move.k) / 2;
  if (!seen(first.ax, first.w, move.x, w)) move.x = w / 2 - (first.ax + first.w / 2) * move.k;
  move.y = MARGIN;
  if (!seen(first.ay, first.h, move.y, h)) move.y = MARGIN - first.ay * move.k;
  apply();
}
function center(item) {
  const at = shown(item);
  move.k = Math.max(move.k, 0.8);
  move.x = canvas.clientWidth / 2 - (at.ax + at.w / 2) * move.k;
  move.y = canvas.clientHeight / 2 - (at.ay + at.h / 2) * move.k;
  apply();
}
/** Zooms; what is at (x, y) of the canvas stays there. */
function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const k = Math.min(MOST, Math.max(Math.min(0.03, wholeScale()), move.k * factor));
  move.x = x - ((x - move.x) * k) / move.k;
  move.y = y - ((y - move.y) * k) / move.k;
  move.k = k;
  apply();
}
canvas.addEventListener('wheel', (e) => {
  e.preventDefault();
  const box = canvas.getBoundingClientRect();
  zoom(Math.exp(-e.deltaY * 0.0015), e.clientX - box.left, e.clientY - box.top);
}, { passive: false });
document.getElementById('in').addEventListener('click', () => zoom(1.4));
document.getElementById('out').addEventListener('click', () => zoom(1 / 1.4));

// One pointer drags; two pinch: their distance zooms, and their middle drags.
const pointers = new Map();
let dragging = false;
const grip = () => {
  const [a, b = a] = [...pointers.values()];
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, spread: Math.hypot(a.x - b.x, a.y - b.y) };
};
const release = (e) => {
  pointers.delete(e.pointerId);
  if (pointers.size === 0) { dragging = false; canvas.classList.remove('dragging'); }
};
canvas.addEventListener('pointerdown', (e) => {
  if (e.target.closest('button') || pointers.size === 2) return;
  pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
});
canvas.addEventListener('pointermove', (e) => {
  const at = pointers.get(e.pointerId);
  if (!at) return;
  if (e.buttons === 0) { release(e); return; }
  // A click may move a little.
  if (!dragging && pointers.size === 1 && Math.hypot(e.clientX - at.x, e.clientY - at.y) < 4) return;
  if (!dragging) { dragging = true; canvas.classList.add('dragging'); }
  // The click at the end of a drag then belongs to the canvas, not to a node.
  for (const id of pointers.keys()) canvas.setPointerCapture(id);
  const before = grip();
  at.x = e.clientX;
  at.y = e.clientY;
  const now = grip(), box = canvas.getBoundingClientRect();
  move.x += now.x - before.x;
  move.y += now.y - before.y;
  apply();
  if (before.spread > 0 && now.spread > 0) zoom(now.spread / before.spread, now.x - box.left, now.y - box.top);
});
for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, release);
`
