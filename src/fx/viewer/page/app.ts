// The state of a graph page, and what changes it: which groups are open, what is selected and found, and which part is seen. Everything that is drawn follows from it,
// at most once a frame.
import { Arranger, HEADING, openAtFirst } from '../layout/arrange.ts'
import type { Frame, Rect } from '../layout/arrange.ts'
import type { Layouts } from '../layout/layered.ts'
import type { Group, Item } from '../layout/tree.ts'
import type { PageGraph, PageNode } from '../pageData.ts'
import { centered, firstView, fit, isSeen, kept, seen, zoomed } from './camera.ts'
import type { Camera, Screen } from './camera.ts'
import { groupOf, onHeading, paint } from './paint.ts'
import type { Marks } from './paint.ts'
import type { ViewState } from './permalink.ts'
import { SpatialIndex } from './spatialIndex.ts'
import { CanvasSurface } from './surface.ts'
import { DARK, LIGHT } from '../theme.ts'
import type { Theme } from '../theme.ts'
import type { Heat } from './cost.ts'

/** What the rest of the page does when the state has changed. */
export interface Listeners {
  /** A node was selected, or none. */
  readonly selected: (node: PageNode | null) => void
  /** Boxes are elsewhere: groups were opened or closed. */
  readonly arranged: () => void
  /** The picture was drawn. */
  readonly painted: () => void
}

export class App {
  readonly graph: PageGraph
  readonly arranger: Arranger
  /** Times from a profile; null without one. */
  readonly heat: Heat | null
  readonly #canvas: HTMLCanvasElement
  readonly #surface: CanvasSurface
  readonly #context: CanvasRenderingContext2D
  readonly #listeners: Listeners
  readonly #dark = matchMedia('(prefers-color-scheme: dark)')
  #open: ReadonlySet<Group>
  #index: SpatialIndex
  #camera: Camera = { x: 0, y: 0, scale: 1 }
  #selected: PageNode | null = null
  #hits: readonly number[] | null = null
  #isWaiting = false

  constructor(graph: PageGraph, layouts: Layouts, heat: Heat | null, canvas: HTMLCanvasElement, listeners: Listeners) {
    const context = canvas.getContext('2d')
    if (context === null) throw new Error('The browser has no canvas to draw on.')
    this.graph = graph
    this.heat = heat
    this.arranger = new Arranger(graph, layouts)
    this.#canvas = canvas
    this.#context = context
    this.#surface = new CanvasSurface(context)
    this.#listeners = listeners
    this.#open = openAtFirst(this.arranger.tree)
    this.#index = new SpatialIndex(this.arranger.arrange(this.#open))
    this.#dark.addEventListener('change', () => {
      this.#listeners.arranged()
      this.redraw()
    })
  }

  get index(): SpatialIndex {
    return this.#index
  }

  get camera(): Camera {
    return this.#camera
  }

  get selected(): PageNode | null {
    return this.#selected
  }

  get theme(): Theme {
    return this.#dark.matches ? DARK : LIGHT
  }

  get screen(): Screen {
    return { w: this.#canvas.clientWidth, h: this.#canvas.clientHeight }
  }

  /** The part of the scene that is seen. */
  get part(): Rect {
    return seen(this.#camera, this.screen)
  }

  /** What is special about boxes. A closed group stands for the nodes in it. */
  get marks(): Marks {
    const shown = (index: number): Item[] => this.#shown(index) ?? []
    return {
      selected: this.#selected === null ? null : (shown(this.#selected.index)[0] ?? null),
      hits: this.#hits === null ? null : new Set(this.#hits.flatMap(shown)),
      heat: this.heat,
    }
  }

  #shown(index: number): [Item] | null {
    const leaf = this.arranger.tree.leaves[index]
    return leaf === undefined ? null : [this.arranger.shown(leaf, this.#open)]
  }

  /** The box that shows a node: its own, or that of the closed group around it. */
  boxOf(index: number): Rect | null {
    const [item] = this.#shown(index) ?? []
    return item === undefined ? null : (this.#index.scene.boxOf.get(item) ?? null)
  }

  // ---- what is seen ----

  /** The first view of the page; of a difference, its first change. */
  start(first: number): void {
    this.look(firstView(this.#index.scene, this.screen, this.boxOf(first)))
  }

  fit(): void {
    this.look(fit(this.#index.scene, this.screen))
  }

  look(camera: Camera): void {
    this.#camera = kept(camera, this.#index.scene, this.screen)
    this.redraw()
  }

  drag(dx: number, dy: number): void {
    const { x, y, scale } = this.#camera
    this.look({ x: x + dx, y: y + dy, scale })
  }

  zoom(factor: number, x: number = this.screen.w / 2, y: number = this.screen.h / 2): void {
    this.look(zoomed(this.#camera, factor, x, y, this.#index.scene, this.screen))
  }

  /** Moves a point of the scene to the middle. */
  center(x: number, y: number, scale: number = this.#camera.scale): void {
    const { w, h } = this.screen
    this.look({ x: w / 2 - x * scale, y: h / 2 - y * scale, scale })
  }

  // ---- selection and search ----

  select(node: PageNode | null): void {
    this.#selected = node
    this.#listeners.selected(node)
    this.redraw()
  }

  /** Opens the groups around a node, selects it, and shows it. */
  go(index: number): void {
    const node = this.graph.nodes[index]
    const leaf = this.arranger.tree.leaves[index]
    if (node === undefined || leaf === undefined) return
    const open = new Set(this.#open)
    for (let at: Group | null = leaf.parent; at !== null; at = at.parent) if (at.kind === 'group') open.add(at)
    if (open.size !== this.#open.size) this.#arrange(open)
    this.select(node)
    const box = this.boxOf(index)
    if (box !== null && !(isSeen(this.#camera, box, this.screen) && this.#camera.scale > 0.4)) this.look(centered(this.#camera, box, this.screen))
  }

  found(hits: readonly number[] | null): void {
    this.#hits = hits
    this.redraw()
  }

  /** A click at a point of the screen. */
  click(x: number, y: number): void {
    const found = this.#at(x, y)
    if (found === null) this.select(null)
    else if ('group' in found) {
      if (this.#isOnHeading(found, x, y)) this.toggle(found.group)
      else this.select(null)
    } else {
      const group = groupOf(found.item)
      if (group !== null) this.toggle(group)
      else if (found.item.kind === 'node') this.select(found.item.node)
    }
  }

  /** Whether a click at a point of the screen does something. */
  isActive(x: number, y: number): boolean {
    const found = this.#at(x, y)
    return found !== null && (!('group' in found) || this.#isOnHeading(found, x, y))
  }

  #at(x: number, y: number): ReturnType<SpatialIndex['at']> {
    const { x: left, y: top, scale } = this.#camera
    return this.#index.at((x - left) / scale, (y - top) / scale)
  }

  #isOnHeading(frame: Frame, x: number, y: number): boolean {
    const { x: left, y: top, scale } = this.#camera
    // A heading is at least a finger high.
    return onHeading(frame, (x - left) / scale, (y - top) / scale, Math.max(HEADING, 24 / scale))
  }

  // ---- groups ----

  toggle(group: Group): void {
    const open = new Set(this.#open)
    if (!open.delete(group)) open.add(group)
    const before = this.#place(group)
    this.#arrange(open)
    const after = this.#place(group)
    // The group stays where it is on the screen.
    if (before !== null && after !== null) this.drag((before.x - after.x) * this.#camera.scale, (before.y - after.y) * this.#camera.scale)
  }

  /** Opens or closes all groups. */
  setAll(isOpen: boolean): void {
    this.#arrange(new Set(isOpen ? this.arranger.tree.groups : []))
    this.start(this.#selected?.index ?? 0)
  }

  #place(group: Group): Rect | null {
    const { scene } = this.#index
    return scene.boxOf.get(group) ?? scene.frames.find((frame) => frame.group === group) ?? null
  }

  #arrange(open: ReadonlySet<Group>): void {
    this.#open = open
    this.#index = new SpatialIndex(this.arranger.arrange(open))
    this.#listeners.arranged()
    this.redraw()
  }

  // ---- permalinks ----

  get state(): ViewState {
    const { groups } = this.arranger.tree
    const usual = openAtFirst(this.arranger.tree)
    const isUsual = usual.size === this.#open.size && [...usual].every((group) => this.#open.has(group))
    const { x, y, w, h } = this.part
    return {
      node: this.#selected?.name ?? null,
      view: [x + w / 2, y + h / 2, this.#camera.scale],
      open: isUsual ? null : groups.flatMap((group, i) => (this.#open.has(group) ? [i] : [])),
    }
  }

  /** Shows what an address says; what it does not say stays as it is. */
  restore({ node, view, open }: ViewState): void {
    const { groups } = this.arranger.tree
    if (open !== null) this.#arrange(new Set(open.flatMap((i) => groups[i] ?? [])))
    const index = node === null ? -1 : this.graph.nodes.findIndex((n) => n.name === node)
    const selected = this.graph.nodes[index]
    // First the node, whose panel takes some of the screen.
    if (selected !== undefined && view === null) this.go(index)
    else if (selected !== undefined) this.select(selected)
    if (view !== null) this.center(...view)
  }

  // ---- drawing ----

  /** Draws in the next frame. */
  redraw(): void {
    if (this.#isWaiting) return
    this.#isWaiting = true
    requestAnimationFrame(() => {
      this.#isWaiting = false
      this.#paint()
    })
  }

  #paint(): void {
    const { w, h } = this.screen
    const ratio = devicePixelRatio
    const [width, height] = [Math.round(w * ratio), Math.round(h * ratio)]
    if (this.#canvas.width !== width || this.#canvas.height !== height) [this.#canvas.width, this.#canvas.height] = [width, height]
    const { x, y, scale } = this.#camera
    this.#context.setTransform(1, 0, 0, 1, 0, 0)
    this.#context.clearRect(0, 0, width, height)
    this.#context.setTransform(scale * ratio, 0, 0, scale * ratio, x * ratio, y * ratio)
    paint(this.#surface, this.#index, this.part, scale, this.theme, this.marks)
    this.#listeners.painted()
  }
}
