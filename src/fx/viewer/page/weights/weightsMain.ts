// The program of a page that shows a file of weights: the tree of its tensors, what is known of the one that is selected, and the search.
import { sizeText } from '../../../../protocol/sizeText.ts'
import { isTensorItem, unpackWeights } from '../../weights.ts'
import type { PackedWeights, StoredTensor } from '../../weights.ts'
import { byId, element, onClick } from '../elements/dom.ts'
import { VirtualList } from '../elements/virtualList.ts'
import { chooseFile } from '../files/files.ts'
import { figures, histogram, short } from '../histogram.ts'
import { below, linesOf, search, treeOf } from './weightsTree.ts'
import type { TreeItem } from './weightsTree.ts'

const { weights: packed }: { readonly weights: PackedWeights } = JSON.parse(byId('data', HTMLScriptElement).textContent)
const view = unpackWeights(packed)
const root = treeOf(view)
const all = [...below(root)]
const groups = all.filter(({ item }) => item === null)
/** With at most this many tensors, all groups are open at first. */
const FEW = 60
const open = new Set(
  all.length <= FEW ? groups : groups.filter(({ depth, children }) => depth === 0 && root.children.length === 1 && children.length <= FEW),
)
const input = byId('search', HTMLInputElement)
const side = byId('side', HTMLElement)
const panel = byId('panel', HTMLElement)
let selected: TreeItem | null = null
let hits: ReadonlySet<TreeItem> | null = null
let lines: readonly TreeItem[] = []

const isOpen = (item: TreeItem): boolean => open.has(item)
const shapeText = ({ dtype, shape }: StoredTensor): string => `${dtype}[${shape.join(', ')}]`

// ---- the tree ----

/** Deeper lines are not moved further to the right. */
const DEEPEST = 12

function line(i: number): HTMLElement {
  const at = lines[i]
  if (at === undefined) return element('div')
  const { name, item, depth, tensors, bytes } = at
  const isGroup = item === null
  const tensor = item !== null && isTensorItem(item) ? item : null
  const facts = isGroup
    ? `${tensors} ${tensors === 1 ? 'tensor' : 'tensors'}`
    : tensor === null
      ? item !== null && 'text' in item
        ? item.text
        : ''
      : shapeText(tensor)
  const made = element(
    'div',
    {
      class: `row${isGroup ? ' group' : ''}${at === selected ? ' current' : ''}`,
      role: 'treeitem',
      'aria-level': String(depth + 1),
      'aria-selected': String(at === selected),
      'aria-expanded': isGroup ? String(isOpen(at)) : null,
      'data-path': at.path,
    },
    element(
      'span',
      { class: 'name' },
      element('span', { class: 'twist' }, isGroup ? (isOpen(at) || hits !== null ? '▾' : '▸') : ''),
      element('b', {}, name),
    ),
    element('code', {}, facts),
    element('span', { class: 'spark' }, tensor === null || tensor.statistics === null ? '' : histogram(tensor.statistics)),
    element(
      'span',
      { class: 'moments' },
      tensor === null || tensor.statistics === null ? '' : `${short(tensor.statistics.mean)} ± ${short(tensor.statistics.std)}`,
    ),
    element('span', { class: 'size' }, isGroup || tensor !== null ? sizeText(bytes) : ''),
  )
  made.style.setProperty('--indent', `${16 * Math.min(depth, DEEPEST)}px`)
  made.addEventListener('click', () => {
    select(at)
    if (isGroup) toggle(at)
  })
  return made
}
const list = new VirtualList(byId('tree', HTMLElement), { count: 0, height: 28, line }, 'rows')

function draw(): void {
  lines = linesOf(root, isOpen, hits)
  list.show({ count: lines.length, height: 28, line })
}

function toggle(group: TreeItem): void {
  if (!open.delete(group)) open.add(group)
  draw()
}

// ---- what is selected ----

function select(item: TreeItem | null): void {
  selected = item
  const shown = item?.item ?? null
  document.body.classList.toggle('with-side', shown !== null)
  side.hidden = shown === null
  if (item !== null && shown !== null) {
    panel.replaceChildren(...describe(item))
    byId('said', HTMLElement).textContent = `${item.path} selected`
    if (location.protocol !== 'about:') history.replaceState(null, '', `#tensor=${encodeURIComponent(item.path)}`)
  }
  list.draw()
}

function describe({ path, item }: TreeItem): readonly HTMLElement[] {
  const head = element('header', {}, element('h2', {}, path.split('.').at(-1) ?? path), element('p', { class: 'sub' }, element('code', {}, path)))
  const row = (name: string, value: string): HTMLElement[] => [element('dt', {}, name), element('dd', {}, element('code', {}, value))]
  if (item === null || !isTensorItem(item)) return [head, element('section', {}, element('pre', {}, item === null ? '' : item.text))]
  const { shape, dtype, bytes, statistics } = item
  const count = shape.reduce((product, size) => product * size, 1)
  const values = element(
    'section',
    {},
    element('h3', {}, 'Values'),
    statistics === null ? element('p', { class: 'label' }, 'not read') : histogram(statistics),
    statistics === null ? null : figures(statistics),
  )
  return [
    head,
    element(
      'section',
      {},
      element('h3', {}, 'Tensor'),
      element(
        'dl',
        {},
        row('shape', `[${shape.join(', ')}]`),
        row('dtype', dtype),
        row('elements', count.toLocaleString('en-US')),
        row('size', sizeText(bytes)),
      ),
    ),
    values,
  ]
}

/** Opens the groups around an item, and shows it. */
function go(item: TreeItem): void {
  for (let at = item.parent; at !== null; at = at.parent) open.add(at)
  draw()
  select(item)
  list.reveal(lines.indexOf(item))
}

// ---- search, buttons and keys ----

input.addEventListener('input', () => {
  hits = search(root, input.value)
  byId('hits', HTMLElement).textContent = hits === null ? '' : `${hits.size} found`
  draw()
})
function clear(): void {
  input.value = ''
  hits = null
  byId('hits', HTMLElement).textContent = ''
  select(null)
  draw()
}
function step(by: number): void {
  const next = lines[Math.max(0, Math.min(lines.length - 1, (selected === null ? -1 : lines.indexOf(selected)) + by))]
  if (next === undefined) return
  select(next)
  list.reveal(lines.indexOf(next))
}
function setAll(isAll: boolean): void {
  open.clear()
  if (isAll) for (const group of groups) open.add(group)
  draw()
}
function turn(isOpening: boolean): void {
  if (selected === null) return
  if (selected.item === null && isOpen(selected) !== isOpening) toggle(selected)
  else if (!isOpening && selected.parent !== null && selected.parent !== root) go(selected.parent)
}
const KEYS: Readonly<Record<string, () => void>> = {
  '/': () => input.focus(),
  Escape: clear,
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  ArrowRight: () => turn(true),
  ArrowLeft: () => turn(false),
  Enter: () => (selected?.item === null ? toggle(selected) : undefined),
  o: () => setAll(true),
  c: () => setAll(false),
  e: chooseFile,
}
addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || (event.target instanceof HTMLInputElement && event.key !== 'Escape')) return
  const act = KEYS[event.key]
  if (act === undefined) return
  event.preventDefault()
  act()
})
onClick('open-all', () => setAll(true))
onClick('close-all', () => setAll(false))
onClick('close-side', () => select(null))

// ---- printing and the first view ----

/** At most this many tensors are printed. */
const MOST_PRINTED = 2000
addEventListener('beforeprint', () => {
  const rows = all.flatMap(({ path, item }) =>
    item !== null && isTensorItem(item)
      ? [
          [
            path,
            shapeText(item),
            sizeText(item.bytes),
            item.statistics === null ? '' : `${short(item.statistics.mean)} ± ${short(item.statistics.std)}`,
          ],
        ]
      : [],
  )
  byId('print', HTMLElement).replaceChildren(
    element('table', {}, ...rows.slice(0, MOST_PRINTED).map((cells) => element('tr', {}, ...cells.map((cell) => element('td', {}, cell))))),
  )
})

for (const [key, text] of view.metadata) {
  const shown = text.length > 120 ? `${text.slice(0, 120)}…` : text
  byId('tree', HTMLElement).before(element('p', { class: 'metadata' }, element('b', {}, key), ` ${shown}`))
}
draw()
const wanted = new URLSearchParams(location.hash.replace(/^#/, '')).get('tensor')
const found = wanted === null ? undefined : all.find(({ path }) => path === wanted)
if (found !== undefined) go(found)
