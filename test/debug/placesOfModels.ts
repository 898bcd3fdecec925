// Faults that are planted in places of the models of test/fx/samples, and what compareBackends must say of them.
import { expect } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compareBackends } from 'tensorfx/debug'
import type { GraphModule } from 'tensorfx/fx'
import { F } from 'tensorfx/nn'
import type { Module } from 'tensorfx/nn'
import { samples } from '../fx/samples/all.ts'
import { traced } from '../fx/samples/harness.ts'
import { replacing, rightValue } from './faultyBackends.ts'
import type { Replacement } from './faultyBackends.ts'

export const TOLERANCE = 1e-5

export const asTensor = (value: unknown): Tensor => value as Tensor
const callModule = (layer: unknown, x: unknown): unknown => (layer as (value: unknown) => unknown)(x)
const half = (value: unknown): Tensor => asTensor(value).half().float()

const moved = (x: Tensor): Tensor => torch.cat([torch.zerosLike(x.narrow(-1, 0, 1)), x.narrow(-1, 0, (x.shape.at(-1) ?? 1) - 1)], -1)

export const FAULTS = {
  'wrong eps': (run, node, args) => {
    if (node.op !== 'call_module') throw new Error(`${node.name} is not a layer`)
    const layer = run.fetchAttr(node.target) as Module & { eps: number }
    const { eps } = layer
    layer.eps = 0.02
    try {
      return callModule(layer, args[0])
    } finally {
      layer.eps = eps
    }
  },
  'wrong axis': (_, __, args) => F.softmax(asTensor(args[0]), { dim: -2 }),
  'float16 rounding': (run, node) => half(rightValue(run, node)),
  'swapped operands': (_, __, args) => {
    const [a, b] = args.map(asTensor) as [Tensor, Tensor]
    return b.transpose(-2, -1).matmul(a.transpose(-2, -1))
  },
  'off-by-one pad': (run, node, args) => {
    if (node.op !== 'call_module') throw new Error(`${node.name} is not a layer`)
    return callModule(run.fetchAttr(node.target), moved(asTensor(args[0])))
  },
} satisfies Record<string, Replacement>
type Kind = keyof typeof FAULTS

export const sample = (name: string): { readonly gm: GraphModule; readonly inputs: readonly unknown[] } => {
  const found = samples.find(({ golden }) => golden === name)
  if (found === undefined) throw new Error(`no sample ${name}`)
  return { gm: traced(found), inputs: found.inputs?.() ?? [] }
}

/** Plants each fault in a backend of its own and expects that node to be named. */
export async function expectNamed(
  gm: GraphModule,
  inputs: readonly unknown[],
  places: readonly (readonly [node: string, kind: Kind])[],
): Promise<void> {
  const backends = places.map(([node, kind]) => replacing(node, FAULTS[kind], `${kind} at ${node}`))
  const result = await compareBackends(gm, inputs, { backends, tol: TOLERANCE })
  const named = [...result.culprits].map(([name, culprit]) => [name, culprit?.nodes.map((node) => node.name)])
  expect(named).toEqual(places.map(([node, kind]) => [`${kind} at ${node}`, [node]]))
  for (const [name, culprit] of result.culprits) expect(culprit?.error, name).toBeGreaterThan(10 * TOLERANCE)
}
