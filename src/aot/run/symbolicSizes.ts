// The sizes that a graph takes, as symbols: a run on fake tensors finds how the shapes of all values follow from those of the inputs, and what must hold for that. It is for who reads the graph; the graph
// itself is run without it.
import { noGrad } from '../../autograd/index.ts'
import { FakeTensorMode, fakeLike } from '../../dispatch/index.ts'
import { UnsupportedError, messageOf } from '../../errors/index.ts'
import { isTensorRecord, recordValue, recordedValue, restoreValue } from '../../fx/graph/nodeValue.ts'
import type { TensorRecord } from '../../fx/graph/nodeValue.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { isSymbolic, isSymbolicSize } from '../../protocol/index.ts'
import type { ShapeEnv, SymbolicLayoutOptions } from '../../symbols/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { newShapeEnv } from '../makeFx/symbolicGraphs.ts'
import { FakeTensorProp } from './fakeTensorProp.ts'

/** Which positions of an input are sizes: dimensions of a tensor, each with the values that it may have, or the number itself. Null: none. */
export type SizedInput = { readonly dims: readonly ({ readonly min: number; readonly max: number } | null)[] } | 'size' | null

/** Why a graph has no symbols for its sizes. */
export interface SizesProblem {
  readonly problem: string
  /** Whether a rule for symbols is wrong. Otherwise it is missing. */
  readonly isFault: boolean
}

/**
 * Records the shapes of a graph's values with symbols for its sizes: one for each size of an input, and the same for those that an operator needs to be equal. Returns the ShapeEnv, which knows what must hold
 * of them. The records stay as they were, and the result says why, where an operator has no rule for symbols, or where a rule gives other shapes than were recorded for the sizes of `inputs`.
 */
export function recordSymbolicSizes(gm: GraphModule, inputs: readonly unknown[], sized: readonly SizedInput[]): ShapeEnv | SizesProblem {
  const env = newShapeEnv()
  const before = new Map([...gm.graph.nodes].map((node): [Node, unknown] => [node, recordedValue(node)]))
  const problem = propagate(gm, inputs, sized, env) ?? differenceFrom(before, env)
  if (problem === null) return env
  for (const [node, value] of before) restoreValue(node, value)
  return problem
}

/** Runs the graph on fake tensors with symbols for sizes. Returns what went wrong. */
function propagate(gm: GraphModule, inputs: readonly unknown[], sized: readonly SizedInput[], env: ShapeEnv): SizesProblem | null {
  const mode = new FakeTensorMode({ shapeEnv: env })
  try {
    const values = inputs.map((input, i) => symbolicInput(input, sized[i] ?? null, env, mode))
    noGrad(() => new FakeTensorProp(gm, mode).propagateDontConvertInputs(...values))
    gm.graph.findNodes({ op: 'placeholder' }).forEach((node, i) => {
      const value = values[i]
      if (isSymbolic(value)) recordValue(node, value)
    })
    return null
  } catch (error) {
    return { problem: messageOf(error), isFault: !(error instanceof UnsupportedError) }
  }
}

/** What stands for an input: a fake tensor, or the symbol of a number. */
export function symbolicInput(input: unknown, sized: SizedInput, env: ShapeEnv, mode: FakeTensorMode<SymbolicLayoutOptions>): unknown {
  if (typeof input === 'number') return sized === 'size' ? env.createSymInt(input, 'dynamic') : input
  if (!(input instanceof Tensor)) return input
  if (sized === null || sized === 'size') return fakeLike(input)
  const fake = mode.fromTensor(input, { dims: sized.dims.map((range) => (range === null ? 'static' : 'dynamic')) })
  fake.symSizes.forEach((size, dim) => env.constrainRange(env.sizeOf(size), sized.dims[dim] ?? {}))
  return fake
}

/** Where a shape is another one than was recorded; null if there is no such place. */
function differenceFrom(recorded: ReadonlyMap<Node, unknown>, env: ShapeEnv): SizesProblem | null {
  const inThisRun = (size: unknown): unknown => {
    if (!isSymbolicSize(size)) return size
    const known = env.sizeOf(size)
    return typeof known === 'number' ? known : known.hint
  }
  for (const [node, value] of recorded) {
    const [was, is] = [recordsIn(value), recordsIn(recordedValue(node))]
    for (const [i, { shape }] of was.entries()) {
      // Symbols are of an earlier run, which may have had other sizes.
      if (shape.some(isSymbolicSize)) continue
      const found = is[i]?.shape.map(inThisRun) ?? []
      if (found.join() !== shape.join())
        return {
          problem: `the rules for symbols give '${node.name}' the shape [${found.join(', ')}], and it has [${shape.join(', ')}]`,
          isFault: true,
        }
    }
  }
  return null
}

const recordsIn = (value: unknown): readonly TensorRecord[] => (Array.isArray(value) ? value : [value]).filter(isTensorRecord)
