// Where the boxes and lines of a graph page are: nothing lies over anything else, at any size and with any groups open.
import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { graphView } from '../../../src/fx/viewer/graphView.ts'
import { Arranger, openAtFirst } from '../../../src/fx/viewer/layout/arrange.ts'
import type { Rect, Scene } from '../../../src/fx/viewer/layout/arrange.ts'
import { Layouts } from '../../../src/fx/viewer/layout/layered.ts'
import { makeTree } from '../../../src/fx/viewer/layout/tree.ts'
import type { Group, Item } from '../../../src/fx/viewer/layout/tree.ts'
import { pack, unpack } from '../../../src/fx/viewer/pageData.ts'
import type { PageGraph } from '../../../src/fx/viewer/pageData.ts'

const graphOf = (gm: GraphModule): PageGraph => unpack(pack(graphView(gm, 'g')))

/** A graph without modules: each node reads some of those before it, by how many steps back. */
const drawn = (reads: readonly (readonly number[])[]): PageGraph => {
  const inputs = reads.map((steps, i) => [...new Set(steps.map((step) => i - 1 - (step % Math.max(i, 1))).filter((input) => input >= 0))])
  const nodes = inputs.map((list, index) => ({
    index,
    name: `n${index}`,
    op: 'call_function',
    target: 'f',
    type: null,
    config: {},
    tensors: [],
    spec: null,
    args: [],
    kwargs: [],
    inputs: list,
    users: inputs.flatMap((other, user) => (other.includes(index) ? [user] : [])),
    modules: index % 9 < 5 ? [] : [{ path: `m${Math.floor(index / 9)}`, className: 'M' }],
    origin: null,
    stack: null,
    change: 'same' as const,
    was: null,
  }))
  return { name: 'g', isDiff: false, nodes, code: [] }
}

const overlap = (a: Rect, b: Rect): boolean => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h
const isAround = (group: Group, item: Item): boolean => {
  for (let at = item.parent; at !== null; at = at.parent) if (at === group) return true
  return false
}

/** What is wrong with a scene: boxes or frames over each other, boxes outside of their frame or of the scene. Compares each with those that begin in reach. */
function faults({ boxes, frames, w, h }: Scene): string[] {
  const found: string[] = []
  const all = [...boxes.map((box) => ({ item: box.item, rect: box })), ...frames.map((frame) => ({ item: frame.group, rect: frame }))]
  all.sort((a, b) => a.rect.y - b.rect.y)
  all.forEach(({ item, rect }, i) => {
    if (rect.x < 0 || rect.y < 0 || rect.x + rect.w > w + 0.5 || rect.y + rect.h > h + 0.5) found.push('outside of the scene')
    for (const other of all.slice(i + 1)) {
      if (other.rect.y > rect.y + rect.h) break
      const isNested = (item.kind !== 'node' && isAround(item, other.item)) || (other.item.kind !== 'node' && isAround(other.item, item))
      if (!isNested && overlap(rect, other.rect)) found.push('one over another')
    }
  })
  for (const { group, ...frame } of frames)
    for (const box of boxes)
      if (
        isAround(group, box.item) &&
        !(box.x >= frame.x && box.x + box.w <= frame.x + frame.w && box.y > frame.y && box.y + box.h <= frame.y + frame.h)
      )
        found.push('outside of its frame')
  return found
}

class Block extends nn.Module {
  readonly fc = new nn.Linear(2, 2)
  override forward(x: Tensor): Tensor {
    return torch.relu(this.fc.call(x)).add(x)
  }
}
class Net extends nn.Module {
  readonly blocks: nn.Sequential
  constructor(count: number) {
    super()
    this.blocks = new nn.Sequential(...Array.from({ length: count }, () => new Block()))
  }
  override forward(x: Tensor, y: Tensor): Tensor {
    return this.blocks.call(x).mul(y)
  }
}

describe('the tree of modules', () => {
  test('has a group for each call of a module', () => {
    const { groups, leaves } = makeTree(graphOf(symbolicTrace(new Net(2))))
    expect(groups.map((g) => [g.path, g.className, g.size])).toEqual([
      ['blocks', 'Sequential', 6],
      ['blocks.0', 'Block', 3],
      ['blocks.1', 'Block', 3],
    ])
    expect(leaves.map((leaf) => leaf.parent.path)).toEqual(['', '', 'blocks.0', 'blocks.0', 'blocks.0', 'blocks.1', 'blocks.1', 'blocks.1', '', ''])
  })

  test('cuts long lists into sections where the fewest values are in use', () => {
    const pairs = symbolicTrace((x: Tensor) => Array.from({ length: 100 }).reduce((y: Tensor) => y.neg().add(y), x))
    const { root, leaves } = makeTree(graphOf(pairs))
    expect(root.children.length).toBeGreaterThan(2)
    expect(root.children.every((child) => child.kind === 'section' && child.children.length <= 60)).toBe(true)
    expect(leaves.length).toBe(202)
    // Behind each add one value is in use, behind each neg two.
    for (const section of root.children.slice(0, -1)) {
      const last = section.kind === 'section' ? section.children.at(-1) : undefined
      expect(last?.kind === 'node' ? last.node.target : '').toBe('add')
    }
  })
})

describe('the arrangement', () => {
  const cases: Readonly<Record<string, () => GraphModule>> = {
    'a chain': () => symbolicTrace((x: Tensor) => Array.from({ length: 30 }).reduce((y: Tensor) => y.neg(), x)),
    'a value that all read': () => symbolicTrace((x: Tensor) => Array.from({ length: 30 }).reduce((y: Tensor) => y.add(x), x)),
    'many side by side': () => symbolicTrace((x: Tensor) => torch.cat(Array.from({ length: 30 }, () => x.neg()))),
    'modules in modules': () => symbolicTrace(new Net(6)),
    'more modules than fit into a section': () => symbolicTrace(new Net(130)),
    'one node': () => symbolicTrace((x: Tensor) => x),
  }
  test.each(Object.entries(cases))('%s: nothing lies over anything else, and every edge is drawn', (_, make) => {
    const graph = graphOf(make())
    const arranger = new Arranger(graph, new Layouts())
    const { groups } = arranger.tree
    for (const open of [new Set<Group>(), new Set(groups), new Set(groups.filter((__, i) => i % 3 === 0))]) {
      const scene = arranger.arrange(open)
      expect(faults(scene)).toEqual([])
      const shown = new Set(arranger.tree.leaves.map((leaf) => arranger.shown(leaf, open)))
      expect(new Set(scene.boxes.map((box) => box.item))).toEqual(shown)
      const wanted = new Set(
        graph.nodes.flatMap((node) =>
          node.inputs.flatMap((input) => {
            const [from, to] = [input, node.index]
              .map((i) => arranger.tree.leaves[i])
              .map((leaf) => (leaf === undefined ? null : arranger.shown(leaf, open)))
            return from === to ? [] : [`${scene.boxes.findIndex((b) => b.item === from)}>${scene.boxes.findIndex((b) => b.item === to)}`]
          }),
        ),
      )
      const lines = scene.routes.map(
        ({ from, to }) => `${scene.boxes.findIndex((b) => b.item === from)}>${scene.boxes.findIndex((b) => b.item === to)}`,
      )
      expect(new Set(lines)).toEqual(wanted)
      expect(lines.length).toBe(wanted.size)
      const points = scene.routes.flatMap((route) => route.points)
      expect(points.filter(([x, y]) => x < 0 || y < 0 || x > scene.w || y > scene.h)).toEqual([])
    }
  })

  test('any graph', () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.nat(40), { maxLength: 3 }), { minLength: 1, maxLength: 160 }), fc.nat(7), (reads, which) => {
        const arranger = new Arranger(drawn(reads), new Layouts())
        const scene = arranger.arrange(new Set(arranger.tree.groups.filter((_, i) => (i + which) % 2 === 0)))
        expect(faults(scene)).toEqual([])
        for (const { from, to, points } of scene.routes) {
          const [start, end] = [scene.boxOf.get(from), scene.boxOf.get(to)]
          expect(points[0]).toEqual(start === undefined ? null : [start.x + start.w / 2, start.y + start.h])
          expect(points.filter(([x, y]) => x < 0 || y < -1 || x > scene.w || y > scene.h)).toEqual([])
          expect(points.at(-1)).toEqual(end === undefined ? null : [end.x + end.w / 2, end.y])
        }
      }),
      { numRuns: 25 },
    )
  })

  test('lines pass beside the boxes of the rows between their ends', () => {
    // Each step reads the input: its lines pass all the steps before.
    const graph = graphOf(symbolicTrace((x: Tensor) => Array.from({ length: 12 }).reduce((y: Tensor) => y.add(x), x)))
    const arranger = new Arranger(graph, new Layouts())
    const { boxes, routes } = arranger.arrange(new Set())
    for (const { from, to, points } of routes)
      for (const [x, y] of points.slice(1, -1))
        for (const box of boxes) if (box.item !== from && box.item !== to) expect(overlap(box, { x, y, w: 0.1, h: 0.1 })).toBe(false)
  })

  test('large graphs are about as wide as high, and each repeated part is laid out once', () => {
    const graph = graphOf(symbolicTrace((x: Tensor) => Array.from({ length: 400 }).reduce((y: Tensor) => y.neg().exp().add(y).relu(), x)))
    const layouts = new Layouts()
    const arranger = new Arranger(graph, layouts)
    const { w, h, boxes } = arranger.arrange(new Set())
    expect(boxes.length).toBe(1602)
    expect(w / h).toBeGreaterThan(0.7)
    expect(w / h).toBeLessThan(3)
    expect(layouts.computed).toBeLessThan(8)
    // A page brings its layouts along, and computes none.
    const known = new Layouts(JSON.parse(JSON.stringify(layouts)))
    const again = new Arranger(graph, known).arrange(new Set())
    expect([known.computed, again.w, again.h, again.boxes.at(-1)?.x]).toEqual([0, w, h, boxes.at(-1)?.x])
  })

  test('small graphs open with their modules open, large ones with all closed', () => {
    const open = (count: number): number => openAtFirst(makeTree(graphOf(symbolicTrace(new Net(count))))).size
    expect([open(10), open(60)]).toEqual([11, 0])
  })
})
