// Random graphs that run: calls of functions, methods and modules, attributes, lists, several results.
import * as fc from 'fast-check'
import { expect } from 'vitest'
import { nn, operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'

/** Every value has this shape, so that every operation fits every value. */
export const SHAPE: readonly number[] = [2, 3]

class Root extends nn.Module {
  weight = new nn.Parameter(
    torch.tensor([
      [1, -2, 0.5],
      [0.25, 3, -1],
    ]),
  )
  square = new nn.Parameter(
    torch.tensor([
      [1, 0.5, 0],
      [-0.5, 1, 0.25],
      [0, 0, -1],
    ]),
  )
  child = new nn.Sequential(new nn.Linear(3, 3), new nn.Tanh(), new nn.BatchNorm1d(3), new nn.Dropout())

  override forward(): never {
    throw new Error('Root only holds the state of the random graphs')
  }
}

interface Step {
  readonly kind: number
  readonly a: number
  readonly b: number
  readonly c: number
}

export const programs: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({ kind: fc.nat(14), a: fc.nat(1000), b: fc.nat(1000), c: fc.integer({ min: -3, max: 3 }) }),
  { minLength: 1, maxLength: 25 },
)

/** Programs without tuples, each of whose values is one tensor. */
export const tensorPrograms: fc.Arbitrary<readonly Step[]> = programs
  .map((steps) => steps.filter(({ kind }) => kind !== 8))
  .filter((steps) => steps.length > 0)

/** The graph of a program; every value that nobody uses is returned, or (every third) left dead. */
export function graphOf(steps: readonly Step[]): GraphModule {
  const graph = new Graph()
  const values: Node[] = [graph.placeholder('x'), graph.placeholder('y')]
  for (const { kind, a, b, c } of steps) {
    const [x, y] = [values[a % values.length] as Node, values[b % values.length] as Node]
    const made: Node | null = [
      () => graph.callFunction(torch.add, [x, y]),
      () => graph.callFunction(torch.sub, [x, y], { alpha: c }),
      () => graph.callFunction(torch.relu, [x]),
      () => graph.callMethod('mul', [x, c / 2]),
      () => graph.callMethod('sigmoid', [x]),
      () => graph.getAttr('weight'),
      () => graph.callModule('child.1', [x]),
      () => graph.callModule('child.0', [x]),
      () => graph.callFunction(operator.getitem, [graph.callMethod('chunk', [graph.callFunction(torch.cat, [[x, y]]), 2]), b % 2]),
      () => graph.callFunction(torch.maximum, [x, y]),
      () => graph.callMethod('clamp', [x], { min: -1, max: c === 0 ? Infinity : Math.abs(c) }),
      () => graph.callFunction(torch.neg, [x]),
      () => graph.callFunction(torch.matmul, [x, graph.getAttr('square')]),
      () => graph.callModule('child.2', [x]),
      () => graph.callModule('child.3', [x]),
    ][kind]?.() as Node
    values.push(made)
  }
  const unused = values.filter((v, i) => v.users.size === 0 && i % 3 !== 0)
  graph.output({ last: values.at(-1) as Node, others: [unused, values[0] as Node] })
  return new GraphModule(new Root(), graph, 'Random').eval()
}

/** Inputs for every program. */
export const inputs = (): Tensor[] => [
  torch.tensor([
    [1, 2, -3],
    [0, -0.5, 4],
  ]),
  torch.tensor([
    [-1, 0.5, 2],
    [3, -2, 1],
  ]),
]

/** All numbers that it computes, in order. */
export function numbers(value: unknown): number[] {
  if (Array.isArray(value)) return (value as unknown[]).flatMap(numbers)
  if (typeof value === 'object' && value !== null && !('shape' in value)) return Object.values(value).flatMap(numbers)
  return ((value as Tensor).toArray() as number[][]).flat()
}

/** How many random graphs each test tries. */
export const numRuns = Number(process.env['TENSORFX_FUZZ'] ?? 25)

/** The module that `way` makes of a random one computes the same numbers, and its graph is well formed. */
export function keepsMeaning(way: (gm: GraphModule) => GraphModule, tolerance = 0, of: fc.Arbitrary<readonly Step[]> = programs): void {
  fc.assert(
    fc.property(of, (steps) => {
      const gm = graphOf(steps)
      const want = numbers(gm.call(...inputs()))
      const result = way(gm)
      result.graph.lint()
      const got = numbers(result.call(...inputs()))
      expect(got.length).toBe(want.length)
      const far = got.findIndex((v, i) => !(Object.is(v, want[i]) || Math.abs(v - (want[i] as number)) <= tolerance))
      expect(far < 0 ? null : [far, got[far], want[far]]).toBeNull()
    }),
    { numRuns },
  )
}
