// Calls of a function through aotFunction against calls of the function itself: values, layouts, who is who, who shares memory with whom, gradients, and what later writes to results and arguments do.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { aotFunction } from 'tensorfx/aot'
import type { GraphModule } from 'tensorfx/fx'
import { compileFx } from 'tensorfx/inductor'
import { treeLeaves } from 'tensorfx/pytree'

export const interpreted = (gm: GraphModule): ((...inputs: readonly unknown[]) => readonly unknown[]) => {
  return (...inputs) => {
    const result = gm.forward(...inputs)
    return Array.isArray(result) ? result : [result]
  }
}

type Fn = (...args: never[]) => unknown

/** Leaves, whose gradients are compared, and the arguments of a call. */
export interface Inputs {
  readonly leaves: readonly Tensor[]
  readonly args: readonly unknown[]
}

const isTensor = (value: unknown): value is Tensor => value instanceof torch.Tensor
const numbers = (t: Tensor): readonly number[] => Array.from(t.detach().contiguous().toTypedArray(), Number)

/** Two tensors on one memory: `home` is that of the storage. */
const sharesMemory = (a: Tensor, b: Tensor): boolean => a.storage !== null && b.storage !== null && a.storage.home === b.storage.home

/** What a program can see of tensors: the arguments, and then the results. */
function describeAll(tensors: readonly Tensor[]): readonly unknown[] {
  return tensors.map((t) => {
    const first = tensors.findIndex((other) => sharesMemory(other, t))
    return {
      values: numbers(t),
      shape: t.shape,
      dtype: t.dtype,
      // The step along a dimension of size 1 means nothing.
      strides: t.strides.map((stride, i) => ((t.shape[i] ?? 0) > 1 ? stride : 0)),
      requiresGrad: t.requiresGrad,
      isLeaf: t.isLeaf,
      is: tensors.indexOf(t),
      memoryOf: first,
      from: t.offset - (tensors[first]?.offset ?? 0),
    }
  })
}

/** The gradients of a weighted sum of all tensors that have some. */
function gradientsOf(tensors: readonly Tensor[], leaves: readonly Tensor[]): readonly unknown[] {
  const sums = [...new Set(tensors)].flatMap((t, i) =>
    t.requiresGrad && t.gradFn !== null
      ? [
          t
            .mul(
              torch
                .arange(1, t.numel + 1, { dtype: t.dtype })
                .reshape(t.shape)
                .add(i),
            )
            .sum(),
        ]
      : [],
  )
  if (sums.length > 0) torch.stack(sums).sum().backward()
  return [...leaves, ...tensors].map((t) => (t.grad === null || !t.isLeaf ? null : numbers(t.grad)))
}

interface Seen {
  readonly call: unknown
  readonly gradients: unknown
  readonly afterWrites: unknown
}

function messageOf(fn: () => unknown): unknown {
  try {
    return fn()
  } catch (error) {
    return `throws ${(error as Error).name}: ${(error as Error).message}`
  }
}

/** One call with fresh inputs; then, for each tensor it has given or got, another one after which that tensor is written. */
function look(fn: Fn, makeInputs: () => Inputs): Seen {
  const call = (): { readonly all: readonly Tensor[]; readonly leaves: readonly Tensor[] } => {
    const { leaves, args } = makeInputs()
    const result = Reflect.apply(fn, undefined, args) as unknown
    return { all: [...treeLeaves(args), ...treeLeaves(result)].filter(isTensor), leaves }
  }
  const first = messageOf(() => {
    const { all, leaves } = call()
    return [describeAll(all), gradientsOf(all, leaves)]
  })
  if (typeof first === 'string') return { call: first, gradients: null, afterWrites: null }
  const [described, gradients] = first as [unknown, unknown]
  const count = call().all.length
  const afterWrites = Array.from({ length: count }, (_, i) =>
    messageOf(() => {
      const { all, leaves } = call()
      const written = all[i] as Tensor
      if (!written.isFloatingPoint()) return null
      const outcome = messageOf(() => void written.mul_(3))
      return [outcome, describeAll(all), messageOf(() => gradientsOf(all, leaves))]
    }),
  )
  return { call: described, gradients, afterWrites }
}

const COMPILERS = { interpreted, inductor: compileFx }

/** The first place where two structures differ; numbers may differ by rounding. */
function firstDifference(ours: unknown, eager: unknown, path = ''): string | null {
  if (typeof ours === 'number' && typeof eager === 'number')
    return Object.is(ours, eager) || Math.abs(ours - eager) <= 1e-5 * (1 + Math.abs(eager)) ? null : `${path}: ${ours} instead of ${eager}`
  // Errors of one kind may have other texts.
  if (typeof ours === 'string' && typeof eager === 'string' && ours.startsWith('throws ') && ours.split(':')[0] === eager.split(':')[0]) return null
  if (typeof ours !== 'object' || typeof eager !== 'object' || ours === null || eager === null)
    return Object.is(ours, eager) ? null : `${path}: ${JSON.stringify(ours)} instead of ${JSON.stringify(eager)}`
  const keys = new Set([...Object.keys(ours), ...Object.keys(eager)])
  for (const key of keys) {
    const found = firstDifference(Reflect.get(ours, key), Reflect.get(eager, key), `${path}.${key}`)
    if (found !== null) return found
  }
  return null
}

/** Where aotFunction differs from eager mode, for interpreted graphs and for kernels. Each side is called several times, so that the compiled function also runs from its cache. */
export function differences(fn: Fn, makeInputs: () => Inputs): readonly string[] {
  const eager = look(fn, makeInputs)
  return Object.entries(COMPILERS).flatMap(([name, fwCompiler]) => {
    const ours = look(aotFunction(fn as (...args: readonly unknown[]) => unknown, { fwCompiler }), makeInputs)
    return firstDifference(ours, eager, name) ?? []
  })
}

/** Inputs that are leaves, or (`written`) results of an operator, so that a function may write to them. */
export const inputsOf =
  (make: () => readonly Tensor[], options: { readonly written?: boolean; readonly requiresGrad?: boolean } = {}) =>
  (): Inputs => {
    const leaves = make()
    if (options.requiresGrad === true) for (const leaf of leaves) leaf.requiresGrad_()
    return { leaves, args: options.written === true ? leaves.map((leaf) => leaf.add(1)) : leaves }
  }
