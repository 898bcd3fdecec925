// The program of a page that shows a graph: it reads the page's data, and connects the parts with each other.
import { Layouts } from '../layout/layered.ts'
import { unpack } from '../pageData.ts'
import type { PackedPage } from '../pageData.ts'
import { App } from './app.ts'
import { Heat } from './cost.ts'
import { CodeList } from './elements/codeList.ts'
import { byId, element, onClick } from './elements/dom.ts'
import { everything, save, toPng, toSvg } from './exporting.ts'
import { chooseFile } from './files/files.ts'
import { Minimap } from './minimap.ts'
import { describe } from './panel.ts'
import { fromHash, toHash } from './permalink.ts'
import { listen } from './pointer.ts'
import { SearchBox } from './searchBox.ts'
import { LIGHT } from '../theme.ts'

const packed: PackedPage = JSON.parse(byId('data', HTMLScriptElement).textContent)
const graph = unpack(packed.graph)
const canvas = byId('canvas', HTMLCanvasElement)
const side = byId('side', HTMLElement)
const panel = byId('panel', HTMLElement)
const said = byId('said', HTMLElement)
const code = new CodeList(byId('code', HTMLElement), graph.code, graph.isDiff, (node) => app.go(node))
const minimap = new Minimap(byId('minimap', HTMLCanvasElement), (x, y) => app.center(x, y))
const changes = graph.nodes.filter((node) => node.change !== 'same').map((node) => node.index)

const app: App = new App(graph, new Layouts(packed.layouts), packed.costs === null ? null : new Heat(packed.costs), canvas, {
  selected(node) {
    if (node === null) {
      if (tab === 'panel') show(null)
    } else {
      panel.replaceChildren(...describe(node, { graph, heat: app.heat, go: (index) => app.go(index) }))
      panel.scrollTop = 0
      said.textContent = `${node.name} selected`
      if (tab !== 'code') show('panel')
    }
    code.select(node?.index ?? -1)
  },
  arranged: () => minimap.draw(app.index, app.theme),
  painted() {
    minimap.frame(app.part, app.theme)
    remember()
  },
})

// ---- the side: the node, or the code ----

type Tab = 'panel' | 'code'
let tab: Tab | null = null

/** Shows a tab of the side, or closes it. What is selected stays in view, though the canvas has another size. */
function show(next: Tab | null): void {
  tab = next
  document.body.classList.toggle('with-side', next !== null)
  side.hidden = next === null
  for (const name of ['panel', 'code'] as const) {
    byId(name, HTMLElement).hidden = name !== next
    document.querySelector(`[data-tab="${name}"]`)?.setAttribute('aria-selected', String(name === next))
  }
  if (next === 'code') code.draw()
  if (next === 'panel' && app.selected === null) panel.replaceChildren(element('p', { class: 'label' }, 'Click a node to see what it computes.'))
}
for (const button of document.querySelectorAll<HTMLElement>('[data-tab]'))
  button.addEventListener('click', () => show(button.dataset['tab'] === 'code' ? 'code' : 'panel'))
onClick('close-side', () => show(null))
onClick('show-code', () => show(tab === 'code' ? null : 'code'))

// ---- buttons and keys ----

let change = -1
/** Goes to the next change, or the one before, and around. */
function goToChange(step: number): void {
  if (changes.length === 0) return
  change = (change + step + changes.length) % changes.length
  app.go(changes[change] ?? 0)
  byId('change', HTMLElement).textContent = `${change + 1} of ${changes.length}`
}
/** Goes to the first input or user of the selected node, or to the node before or behind it. */
function step(key: string): void {
  const node = app.selected
  const beside = key === 'ArrowLeft' ? (node?.index ?? 0) - 1 : (node?.index ?? -1) + 1
  const target = node === null ? 0 : key === 'ArrowUp' ? node.inputs[0] : key === 'ArrowDown' ? node.users[0] : beside
  if (target !== undefined) app.go(target)
}
const search: SearchBox = new SearchBox(graph.nodes, { found: (hits) => app.found(hits), go: (index) => app.go(index) })
const help = byId('help', HTMLDialogElement)
const menu = byId('export', HTMLElement)

const KEYS: Readonly<Record<string, () => void>> = {
  '/': () => search.focus(),
  '?': () => help.showModal(),
  f: () => app.fit(),
  '0': () => app.start(app.selected?.index ?? 0),
  '+': () => app.zoom(1.4),
  '=': () => app.zoom(1.4),
  '-': () => app.zoom(1 / 1.4),
  o: () => app.setAll(true),
  c: () => app.setAll(false),
  g: () => show(tab === 'code' ? null : 'code'),
  e: () => chooseFile(),
  n: () => goToChange(1),
  p: () => goToChange(-1),
  Escape: () => {
    menu.hidden = true
    search.clear()
    show(null)
    app.select(null)
  },
  ArrowUp: () => step('ArrowUp'),
  ArrowDown: () => step('ArrowDown'),
  ArrowLeft: () => step('ArrowLeft'),
  ArrowRight: () => step('ArrowRight'),
}
addEventListener('keydown', (event) => {
  if (
    event.target instanceof HTMLInputElement ||
    event.target instanceof HTMLSelectElement ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    help.open
  )
    return
  const act = KEYS[event.key]
  if (act === undefined) return
  event.preventDefault()
  act()
})
onClick('fit', () => app.fit())
onClick('in', () => app.zoom(1.4))
onClick('out', () => app.zoom(1 / 1.4))
onClick('open-all', () => app.setAll(true))
onClick('close-all', () => app.setAll(false))
onClick('next', () => goToChange(1))
onClick('previous', () => goToChange(-1))
onClick('show-help', () => help.showModal())
onClick('close-help', () => help.close())

// ---- files, links and printing ----

const fileName = graph.name.replace(/[^\w.-]+/g, '-')
const picture = (): string => toSvg(app.index, everything(app.index.scene), app.theme, app.marks)
onClick('show-export', () => (menu.hidden = !menu.hidden))
onClick('export-svg', () => save(new Blob([picture()], { type: 'image/svg+xml' }), `${fileName}.svg`))
onClick('export-png', async () => save(await toPng(app.index, everything(app.index.scene), app.theme, app.marks), `${fileName}.png`))
byId('copy-link', HTMLElement).hidden = location.protocol === 'about:'
onClick('copy-link', async () => {
  history.replaceState(null, '', toHash(app.state))
  await navigator.clipboard.writeText(location.href)
  said.textContent = 'The link was copied'
})
menu.addEventListener('click', () => (menu.hidden = true))
addEventListener('beforeprint', () => {
  // A large graph is printed as it is seen.
  const isLarge = app.index.scene.boxes.length > 400
  const part = isLarge ? app.part : everything(app.index.scene)
  byId('print', HTMLElement).innerHTML = toSvg(app.index, part, LIGHT, { selected: null, hits: null, heat: app.heat }, '#ffffff')
})
addEventListener('afterprint', () => byId('print', HTMLElement).replaceChildren())

let waiting: ReturnType<typeof setTimeout> | undefined
let written = ''
/** Writes what is seen into the address, when it has not changed for a while. */
function remember(): void {
  clearTimeout(waiting)
  waiting = setTimeout(() => {
    // A page that is embedded as text has no address of its own.
    if (location.protocol === 'about:') return
    written = toHash(app.state)
    history.replaceState(null, '', written)
  }, 300)
}
addEventListener('hashchange', () => {
  if (location.hash !== written) app.restore(fromHash(location.hash))
})

// ---- the first view ----

function begin(): void {
  minimap.draw(app.index, app.theme)
  app.start(0)
  if (location.hash !== '') app.restore(fromHash(location.hash))
  else if (changes.length > 0) {
    change = -1
    goToChange(1)
  }
}

listen(canvas, {
  drag: (dx, dy) => app.drag(dx, dy),
  zoom: (factor, x, y) => app.zoom(factor, x, y),
  click(x, y) {
    menu.hidden = true
    app.click(x, y)
  },
  hover: (x, y) => canvas.classList.toggle('active', app.isActive(x, y)),
})
for (const id of ['open-all', 'close-all']) byId(id, HTMLElement).hidden = app.arranger.tree.groups.length === 0
byId('changes', HTMLElement).hidden = changes.length === 0
let isBegun = false
// A page that is opened in the background, or in a hidden frame, has no size yet.
new ResizeObserver(() => {
  if (canvas.clientWidth === 0 || canvas.clientHeight === 0) return
  if (isBegun) app.redraw()
  else begin()
  isBegun = true
}).observe(canvas)

/** For programs that embed the page: where a node is, in pixels of the window. */
Object.assign(globalThis, {
  graphPage: {
    boxOf(name: string): DOMRect | null {
      const index = graph.nodes.findIndex((node) => node.name === name)
      const box = index < 0 ? null : app.boxOf(index)
      if (box === null) return null
      const { x, y, scale } = app.camera
      const { left, top } = canvas.getBoundingClientRect()
      return new DOMRect(left + x + box.x * scale, top + y + box.y * scale, box.w * scale, box.h * scale)
    },
    select: (name: string) => app.go(graph.nodes.findIndex((node) => node.name === name)),
    get scale(): number {
      return app.camera.scale
    },
    get selected(): string | null {
      return app.selected?.name ?? null
    },
    get shown(): number {
      return app.index.scene.boxes.length
    },
  },
})
