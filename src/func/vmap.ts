// vmap: a function of one example as a function of a batch.
import { withMode } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { expand, movedim } from '../ops/index.ts'
import { checkCallable, checkCount, checkOptions, checkSynchronous, ownCopy, valueText } from '../protocol/index.ts'
import { treeFlatten, treeUnflatten } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import { Tensor, formatShape } from '../tensor/index.ts'
import { BatchMode } from './batchMode.ts'
import type { Randomness } from './batchMode.ts'

/** The dimension of a batch: a number for all tensors, null where all examples share them, or one for each part of a nested value. */
export type Dims = number | null | readonly Dims[] | { readonly [name: string]: Dims }

/** Options of {@link vmap}. */
export interface VmapOptions {
  /** Which dimension of the arguments counts the examples; default 0. */
  readonly inDims?: Dims
  /** Where the results have that dimension; default 0. */
  readonly outDims?: Dims
  /** What random operators do: throw (default), or draw the same numbers for all examples, or different ones for each. */
  readonly randomness?: Randomness
}

/** One dimension for each leaf. */
function dimsFor(name: string, dims: Dims, spec: TreeSpec): readonly (number | null)[] {
  const expected = (): ArgumentError =>
    new ArgumentError(
      `vmap: option '${name}' must be an integer, null, or a nested value like the ${name === 'inDims' ? 'arguments' : 'results'}, got ${valueText(dims)}.`,
    )
  if (dims === null || typeof dims === 'number') {
    if (dims !== null && !Number.isInteger(dims)) throw expected()
    return leavesOf(spec).map(() => dims)
  }
  if (spec.kind === 'leaf') throw expected()
  const children: readonly unknown[] = Array.isArray(dims) ? dims : spec.kind === 'object' ? spec.keys.map((key) => Reflect.get(dims, key)) : []
  if (children.length !== spec.children.length) throw expected()
  return spec.children.flatMap((child, i) => dimsFor(name, asDims(children[i], expected), child))
}

function asDims(value: unknown, expected: () => ArgumentError): Dims {
  if (value === null || typeof value === 'number') return value
  if (typeof value !== 'object') throw expected()
  return value as Dims
}

const leavesOf = (spec: TreeSpec): readonly TreeSpec[] => (spec.kind === 'leaf' ? [spec] : spec.children.flatMap(leavesOf))

/** The argument's dimension as one from 0 on. */
function dimOf(x: Tensor, dim: number): number {
  const at = dim < 0 ? dim + x.ndim : dim
  if (at < 0 || at >= x.ndim)
    throw new ArgumentError(
      `vmap: option 'inDims': an argument of shape ${formatShape(x.shape)} has no dimension ${dim}; null says that all examples share it.`,
    )
  return at
}

/**
 * A function that calls `fn` for each example of a batch, all at once: operators run on the whole batch, by a rule of each operator. `fn` gets and returns tensors of
 * one example, which have a shape but no values that could be read; it must do the same for all of them. It may be differentiated, and be a derivative or another
 * vmap itself. Operators without a rule are computed one example after the other, with a notice. Throws ArgumentError if the batches differ in size or there is none.
 * PyTorch's torch.func.vmap.
 *
 *     const perExample = vmap(grad(loss), { inDims: [null, 0, 0] })(weights, inputs, targets)
 */
export function vmap<A extends readonly unknown[], R>(fn: (...args: A) => R, options: VmapOptions = {}): (...args: A) => R {
  checkCount('vmap', arguments, 2)
  checkCallable('vmap', 'fn', fn)
  checkOptions('vmap', options, { inDims: true, outDims: true, randomness: true })
  const { inDims = 0, outDims = 0, randomness = 'error' } = ownCopy(options)
  if (randomness !== 'error' && randomness !== 'same' && randomness !== 'different')
    throw new ArgumentError(`vmap: option 'randomness' must be 'error', 'same' or 'different', got ${valueText(randomness)}.`)
  return (...args) => {
    const { leaves, spec } = treeFlatten(args)
    const dims = dimsFor('inDims', inDims, spec)
    const size = batchSize(leaves, dims)
    const mode = new BatchMode(size, randomness)
    const inside = leaves.map((leaf, i) => {
      const dim = dims[i] ?? null
      return dim === null || !(leaf instanceof Tensor) ? leaf : mode.wrap(movedim(leaf, dimOf(leaf, dim), 0))
    })
    const result: unknown = withMode(mode, () => Reflect.apply(fn, undefined, asArguments(treeUnflatten(inside, spec))))
    checkSynchronous('vmap', 'fn', result)
    const out = treeFlatten(result)
    const places = dimsFor('outDims', outDims, out.spec)
    const outside = out.leaves.map((leaf, i) => {
      if (!(leaf instanceof Tensor)) throw new ArgumentError(`vmap: fn must return tensors, or arrays and objects of them, got ${valueText(leaf)}.`)
      const place = places[i] ?? null
      const whole = mode.behind(leaf)
      if (place !== null) return movedim(whole ?? expand(leaf, [size, ...leaf.shape]), 0, place)
      if (whole === null) return leaf
      throw new ArgumentError(
        "vmap: option 'outDims': null stands for a result that is the same for all examples, but this one depends on the batch.",
      )
    })
    return treeUnflatten(outside, out.spec) as R
  }
}

const asArguments = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

function batchSize(leaves: readonly unknown[], dims: readonly (number | null)[]): number {
  const sizes = leaves.flatMap((leaf, i) => {
    const dim = dims[i] ?? null
    if (dim === null) return []
    if (!(leaf instanceof Tensor))
      throw new ArgumentError(`vmap: option 'inDims': ${valueText(leaf)} has no dimensions; null says that all examples share an argument.`)
    return leaf.shape.slice(dimOf(leaf, dim)).slice(0, 1)
  })
  const [size] = sizes
  if (size === undefined) throw new ArgumentError("vmap: at least one argument must have a batch: no entry of option 'inDims' is a number.")
  if (sizes.some((other) => other !== size))
    throw new ArgumentError(`vmap: the arguments must have batches of one size, got ${[...new Set(sizes)].join(', ')}; check option 'inDims'.`)
  if (size === 0) throw new ArgumentError('vmap: the batch must have at least one example.')
  return size
}
