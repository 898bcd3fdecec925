// The sizes that a captured graph takes, as symbols: what graphs() prints, and that the expressions hold for other sizes too.
import { describe, expect, it } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import { Tensor } from 'tensorfx'
import type { ShapeEnv } from 'tensorfx/aot'
import { SymInt } from 'tensorfx/aot'
import { explain, markDynamic, markStatic } from 'tensorfx/compile'
import type { Backend } from 'tensorfx/compile'
import { onEvent } from 'tensorfx/debug'
import { Interpreter } from 'tensorfx/fx'
import type { GraphModule, Node } from 'tensorfx/fx'
import { interceptBackends } from '../../src/dynamo/index.ts'

const rows = (x: Tensor): number => x.shape[0] ?? 0
const textOf = (gm: GraphModule | undefined): string =>
  (gm?.printReadable({ print: false }) ?? '').replaceAll(/^ *\/\/ File:.*\n/gm, '').replace(/__compiled_fn_\d+/, 'graph')
/** The line of the parameters. */
const signatureOf = (gm: GraphModule | undefined, includeStride = false): string =>
  /forward\((.*)\) \{/.exec(gm?.printReadable({ print: false, includeStride }) ?? '')?.[1] ?? ''

const own: Backend = (gm) => gm

describe.each(['eager', 'inductor', 'a function'])('a graph with sizes on the backend %s', (name) => {
  const backend = name === 'a function' ? own : name

  it('prints them as symbols, with those that are inputs last', () => {
    const f = compile(
      (x: Tensor, w: Tensor) =>
        torch
          .cat([x, x])
          .view([rows(x), -1])
          .matmul(w)
          .relu(),
      { backend, dynamic: true },
    )
    const weight = new nn.Parameter(torch.ones([16, 2]), { requiresGrad: false })
    for (const n of [3, 4]) f(torch.ones([n, 8]), weight)
    expect(f.graphs()).toHaveLength(1)
    expect(textOf(f.graphs()[0])).toMatchInlineSnapshot(`
      "class graph extends nn.Module {
        forward(l_x_ /* f32[s0, s1] */, l_w_ /* f32[16, 2] */, size2 /* Sym(s2) */) {
          let cat = torch.cat([l_x_, l_x_]); l_x_ = null  // f32[2*s0, s1]
          let view = torch.Tensor.view(cat, [size2, -1]); cat = size2 = null  // f32[s2, ((2*s0*s1)//s2)]
          let mm = torch.mm(view, l_w_); view = l_w_ = null  // f32[s2, 2]
          const relu = torch.relu(mm); mm = null  // f32[s2, 2]
          return [relu]
        }
      }"
    `)
  })

  it('an operator that needs two sizes to be equal makes them one symbol', () => {
    const f = compile((x: Tensor, y: Tensor) => x.add(y), { backend, dynamic: true })
    f(torch.ones([5, 8]), torch.ones([5, 8]))
    expect(signatureOf(f.graphs()[0])).toBe('l_x_ /* f32[s0, s1] */, l_y_ /* f32[s0, s1] */')
  })

  it('marked dimensions are sizes, others are numbers, and strides of gaps are sizes', () => {
    const f = compile((x: Tensor, y: Tensor) => [x.mul(2), y.sum(1)], { backend })
    const [batch, part] = [torch.ones([5, 8]), torch.ones([6, 9]).narrow(1, 0, 7)]
    markDynamic(batch, 0, { min: 3, max: 9 })
    markDynamic(part, 0)
    markStatic(batch, 1)
    f(batch, part)
    const [gm] = f.graphs()
    expect(signatureOf(gm, true)).toBe('l_x_ /* f32[s0, 8][8, 1] */, l_y_ /* f32[s1, 7][s2, 1] */')
  })
})

it('a backend, a listener and explain see the symbols', () => {
  const seen: string[] = []
  const see = (gm: GraphModule): number => seen.push(signatureOf(gm))
  const f = (x: Tensor): Tensor => x.sin()
  compile(f, { dynamic: true, backend: (gm) => (see(gm), gm) })(torch.ones([3]))
  compile(f, { dynamic: true, onGraph: see })(torch.ones([3]))
  const stop = onEvent((event) => event.kind === 'graph' && seen.push(event.nodes.map(({ spec }) => spec).join()))
  compile(f, { dynamic: true })(torch.ones([3]))
  stop()
  expect(seen).toEqual(['l_x_ /* f32[s0] */', 'l_x_ /* f32[s0] */', 'float32[s0],float32[s0],(float32[s0])'])
  // Without `dynamic` a graph has numbers.
  expect(explain(f)(torch.ones([3])).graphs.map((gm) => signatureOf(gm))).toEqual(['l_x_ /* f32[3] */'])
})

describe('the expressions are the sizes of other runs', () => {
  const programs: Readonly<Record<string, (x: Tensor, y: Tensor) => unknown>> = {
    'views and products': (x, y) => x.view([rows(x), -1]).matmul(y.view([-1, 6]).t()),
    'a joined and a cut dimension': (x, y) => torch.cat([x.flatten(), y.flatten()]).narrow(0, 1, x.numel).softmax(0),
    'every second row, and sums': (x, y) => [
      x.slice(0, 0, null, 2).sum(1),
      y
        .unsqueeze(0)
        .expand([rows(x), -1, -1])
        .mean(0),
    ],
    'a convolution': (x, y) => torch.nn.functional.conv2d(x.view([1, 1, rows(x), 6]), y.narrow(0, 0, 2).view([1, 1, 2, 3]), { padding: 1 }),
    'transposed, repeated, stacked': (x, y) => torch.stack([x.t().repeat([2, 1]), x.t().repeat([2, 1]).mul(y.mean())]),
  }
  /** Sizes of the first dimensions; the others make the views above possible. */
  const sizes = [
    [3, 4],
    [4, 6],
    [7, 2],
    [9, 5],
  ] as const

  /** The shapes in the record of a node, with symbols; a number is a list of its own. */
  const recordedIn = (value: unknown): readonly (readonly (number | SymInt)[])[] => {
    if (value instanceof SymInt) return [[value]]
    if (Array.isArray(value)) return value.flatMap(recordedIn)
    return typeof value === 'object' && value !== null && 'shape' in value && Array.isArray(value.shape) ? [value.shape as (number | SymInt)[]] : []
  }
  const shapesIn = (value: unknown): readonly (readonly number[])[] =>
    value instanceof Tensor ? [value.shape] : typeof value === 'number' ? [[value]] : Array.isArray(value) ? value.flatMap(shapesIn) : []

  it.each(Object.entries(programs))('%s', (_, program) => {
    const calls: (readonly unknown[])[] = []
    const graphs: GraphModule[] = []
    const backend: Backend = (gm) => {
      graphs.push(gm)
      return (...values: readonly unknown[]) => (calls.push(values), gm.forward(...values))
    }
    const f = compile(program, { backend, dynamic: true })
    for (const [n, m] of sizes) f(torch.ones([n, 6]), torch.ones([m * 2, 3]))
    const [gm] = graphs
    if (gm === undefined || graphs.length > 1) throw new Error(`${graphs.length} graphs`)
    const placeholders: readonly Node[] = gm.graph.findNodes({ op: 'placeholder' })
    const symbols = placeholders.flatMap((node) => recordedIn(node.meta['val']).flat())
    const env = symbols.find((size) => size instanceof SymInt)?.env as ShapeEnv
    let compared = 0
    for (const call of calls) {
      const given = call.flatMap(shapesIn).flat()
      const values = new Map(
        symbols.flatMap((size, i) => (size instanceof SymInt && size.ownExpr.op === 'symbol' ? [[size.ownExpr, given[i] ?? NaN] as const] : [])),
      )
      if (env.failedAt(values) !== null) continue
      compared++
      const interpreter = new Interpreter(gm)
      interpreter.runWith(call, { keep: 'all' })
      for (const node of gm.graph.nodes) {
        if (node.op === 'output') continue
        const derived = recordedIn(node.meta['val']).map((shape) =>
          shape.map((size) => (size instanceof SymInt ? env.valueAt(size.expr, values) : size)),
        )
        expect([node.name, derived]).toEqual([node.name, shapesIn(interpreter.env.get(node))])
      }
    }
    expect(compared).toBeGreaterThan(1)
  })

  it('a rule that gives other shapes than were recorded is an event, and the numbers stay', () => {
    const reasons: string[] = []
    using listening = onEvent((event) => void reasons.push(`${event.what}: ${event.reason}`), { kinds: ['limit'] })
    using changing = interceptBackends('dynamo', (backend) => (gm, inputs) => {
      for (const node of gm.graph.findNodes({ op: 'call_function', target: torch.sin })) node.meta['val'] = { shape: [7, 4], dtype: 'float32' }
      return backend(gm, inputs)
    })
    const f = compile((x: Tensor) => x.sin(), { backend: 'eager', dynamic: true })
    f(torch.ones([3, 4]))
    expect(textOf(f.graphs()[0])).toMatch(/l_x_ \/\* f32\[3, 4\][^]*f32\[7, 4\]/)
    expect(reasons).toEqual(["verifySizes: the rules for symbols give 'sin' the shape [3, 4], and it has [7, 4]"])
    f.graphs()
    expect(reasons).toHaveLength(1)
    void [listening, changing]
  })
})
