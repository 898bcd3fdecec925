// The parts of the page's program that need no browser: search, addresses, the camera, and what is in view.
import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import { graphView } from '../../../../src/fx/viewer/graphView.ts'
import { Arranger } from '../../../../src/fx/viewer/layout/arrange.ts'
import { Layouts } from '../../../../src/fx/viewer/layout/layered.ts'
import { centered, firstView, fit, isSeen, kept, seen, zoomed } from '../../../../src/fx/viewer/page/camera.ts'
import { everything, toSvg } from '../../../../src/fx/viewer/page/exporting.ts'
import { fromHash, toHash } from '../../../../src/fx/viewer/page/permalink.ts'
import { find, kindCounts, parseQuery } from '../../../../src/fx/viewer/page/search.ts'
import { SpatialIndex } from '../../../../src/fx/viewer/page/spatialIndex.ts'
import { pack, unpack } from '../../../../src/fx/viewer/pageData.ts'
import { DARK, LIGHT } from '../../../../src/fx/viewer/theme.ts'

class Net extends nn.Module {
  readonly conv = new nn.Conv2d(1, 2, 3)
  readonly pool = new nn.MaxPool2d(2)
  override forward(x: Tensor): Tensor {
    return torch.relu(this.pool.call(this.conv.call(x))).flatten(1)
  }
}
const graph = unpack(pack(graphView(symbolicTrace(new Net()), 'g')))
const index = new SpatialIndex(new Arranger(graph, new Layouts()).arrange(new Set()))

describe('search', () => {
  const found = (query: string): string[] | null => find(graph.nodes, parseQuery(query))?.map((i) => graph.nodes[i]?.name ?? '') ?? null
  test.each([
    ['', null],
    ['  ', null],
    ['conv', ['conv']],
    ['MaxPool', ['pool']],
    ['kind:call_module', ['conv', 'pool']],
    ['kind:activation', ['relu']],
    ['kind:conv2d', ['conv']],
    ['kind:call_module pool', ['pool']],
    ['kind:shape kind:call_method', ['flatten']],
    ['call_module conv', ['conv']],
    ['no_such', []],
    ['kind:no_such', []],
  ])('%s', (query, names) => {
    expect(found(query)).toEqual(names)
  })

  test('names that begin with the word come first', () => {
    const twice = unpack(
      pack(
        graphView(
          symbolicTrace((a: Tensor, x: Tensor) => a.exp().add(x)),
          'g',
        ),
      ),
    )
    // `a` is in call_method, too.
    expect(find(twice.nodes, parseQuery('a'))?.map((i) => twice.nodes[i]?.name)).toEqual(['a', 'add', 'x', 'exp'])
  })

  test('counts nodes by kind', () => {
    expect([...kindCounts(graph.nodes)]).toEqual([
      ['input', 2],
      ['layer', 1],
      ['pooling', 1],
      ['activation', 1],
      ['shape', 1],
    ])
  })
})

describe('addresses', () => {
  test('come back', () => {
    fc.assert(
      fc.property(
        fc.option(fc.string({ minLength: 1 })),
        fc.option(fc.tuple(fc.integer({ min: -1e6, max: 1e6 }), fc.integer({ min: -1e6, max: 1e6 }), fc.constantFrom(0.0123, 0.85, 2, 4))),
        fc.option(fc.uniqueArray(fc.nat(500))),
        (node, view, open) => {
          const sorted = open === null ? null : [...open].sort((a, b) => a - b)
          expect(fromHash(toHash({ node, view, open }))).toEqual({ node, view, open: sorted })
        },
      ),
    )
  })

  test('neighbours are written as a range', () => {
    expect(toHash({ node: null, view: null, open: [7, 0, 1, 2, 3] })).toBe('#open=0-3.7')
  })

  test.each(['#', '#node', '#view=1,2', '#view=1,x,2', '#view=1,2,0', '#view=1,2,-1', '#open=a.b', '#open=5-2', '#open=0-99999999999'])(
    '%s says nothing',
    (hash) => {
      const { view, open } = fromHash(hash)
      expect([view, open ?? []]).toEqual([null, []])
    },
  )
})

describe('the camera', () => {
  const size = fc.record({ w: fc.integer({ min: 1, max: 30_000 }), h: fc.integer({ min: 1, max: 30_000 }) })
  const screen = fc.record({ w: fc.integer({ min: 300, max: 2000 }), h: fc.integer({ min: 200, max: 1500 }) })

  test('Fit shows everything, and the first view the first box', () => {
    fc.assert(
      fc.property(size, screen, fc.nat(100), fc.nat(100), (scene, room, across, down) => {
        expect(isSeen(fit(scene, room), { x: 0, y: 0, ...scene }, room)).toBe(true)
        // A box lies within its scene.
        const [w, h] = [Math.min(90, scene.w), Math.min(40, scene.h)]
        const box = { x: ((scene.w - w) * across) / 101, y: ((scene.h - h) * down) / 101, w, h }
        expect(isSeen(firstView(scene, room, box), box, room)).toBe(true)
        expect(isSeen(centered({ x: 0, y: 0, scale: 0.01 }, box, room), box, room)).toBe(true)
      }),
    )
  })

  test('a point under the pointer stays there, and the graph cannot be lost', () => {
    fc.assert(
      fc.property(
        size,
        screen,
        fc.double({ min: 0.2, max: 5, noNaN: true }),
        fc.integer({ min: -90_000, max: 90_000 }),
        (scene, room, factor, far) => {
          const before = fit(scene, room)
          const after = zoomed(before, factor, 100, 80, scene, room)
          expect((100 - after.x) / after.scale).toBeCloseTo((100 - before.x) / before.scale, 3)
          expect((80 - after.y) / after.scale).toBeCloseTo((80 - before.y) / before.scale, 3)
          const part = seen(kept({ ...after, x: after.x + far, y: after.y - far }, scene, room), room)
          expect(part.x < scene.w && part.y < scene.h && part.x + part.w > 0 && part.y + part.h > 0).toBe(true)
        },
      ),
    )
  })
})

describe('what is in view', () => {
  const long = unpack(
    pack(
      graphView(
        symbolicTrace((x: Tensor) => Array.from({ length: 300 }).reduce((y: Tensor) => y.neg().add(x), x)),
        'g',
      ),
    ),
  )
  const scene = new Arranger(long, new Layouts()).arrange(new Set())
  const grid = new SpatialIndex(scene)

  test('is what touches the part that is seen, and nothing else', () => {
    const at = fc.integer({ min: -500, max: 6000 })
    fc.assert(
      fc.property(at, at, fc.integer({ min: 1, max: 4000 }), fc.integer({ min: 1, max: 4000 }), (x, y, w, h) => {
        const wanted = scene.boxes.filter((b) => b.x <= x + w && x <= b.x + b.w && b.y <= y + h && y <= b.y + b.h)
        expect(grid.find({ x, y, w, h }).boxes).toEqual(wanted)
      }),
    )
  })

  test('a point is in the box that is there', () => {
    for (const box of scene.boxes.filter((_, i) => i % 50 === 0)) expect(grid.at(box.x + 1, box.y + box.h - 1)).toBe(box)
    expect(grid.at(-50, -50)).toBeNull()
  })
})

describe('SVG', () => {
  test('has each node once, and a line for each edge', () => {
    const svg = toSvg(index, everything(index.scene), LIGHT, { selected: null, hits: null, heat: null })
    for (const title of ['x', 'Conv2d', 'MaxPool2d', 'relu', 'flatten', 'output']) expect(svg.split(`>${title}<`).length).toBe(2)
    expect(svg.match(/M-?\d/g)?.length).toBe(2 * index.scene.routes.length)
  })

  test('texts are escaped', () => {
    const odd = unpack(
      pack({
        ...graphView(
          symbolicTrace((x: Tensor) => x),
          'g',
        ),
      }),
    )
    const named = { ...odd, nodes: odd.nodes.map((node) => ({ ...node, name: '<a&"b">' })) }
    const scene = new SpatialIndex(new Arranger(named, new Layouts()).arrange(new Set()))
    expect(toSvg(scene, everything(scene.scene), DARK, { selected: null, hits: null, heat: null })).toContain('>&lt;a&amp;&quot;b&quot;&gt;<')
  })
})

describe('colours', () => {
  /** The ratio of contrast of two colours, by WCAG. */
  const contrast = (a: string, b: string): number => {
    const luminance = (colour: string): number => {
      const [r = 0, g = 0, blue = 0] = [1, 3, 5].map((i) => {
        const part = parseInt(colour.slice(i, i + 2), 16) / 255
        return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
      })
      return 0.2126 * r + 0.7152 * g + 0.0722 * blue
    }
    const [light = 0, dark = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x)
    return (light + 0.05) / (dark + 0.05)
  }

  test.each([
    ['light', LIGHT],
    ['dark', DARK],
  ])('%s: texts have a contrast of 4.5 at least, marks of 2', (_, theme) => {
    for (const ground of [theme.page, theme.panel, theme.frame, theme.code])
      for (const ink of [theme.ink, theme.soft, theme.focus, ...Object.values(theme.changes)])
        expect(contrast(ink, ground)).toBeGreaterThanOrEqual(4.5)
    for (const colour of [theme.edge, ...Object.values(theme.categories)]) expect(contrast(colour, theme.panel)).toBeGreaterThanOrEqual(2)
  })
})
