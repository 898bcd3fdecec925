// Jacobians: the derivatives of every element of a function's results for every element of its arguments, computed for a batch of directions at once.
import { UnsupportedError, present } from '../errors/index.ts'
import { eye, reshape } from '../ops/index.ts'
import { checkCount } from '../protocol/index.ts'
import { treeUnflatten } from '../pytree/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { choose, pullbackOf, pushforwardOf, readOptions, resultsOf, withAux } from './derivatives.ts'
import type { DerivativeOptions, Fn } from './derivatives.ts'
import { tensorsOf } from './differentiable.ts'
import type { Tensors } from './differentiable.ts'
import { vmap } from './vmap.ts'

/**
 * A function that returns the Jacobian of `fn`, row by row: [...shape of the result, ...shape of the argument]; a nested value of them for nested values. For
 * functions with fewer results than arguments. PyTorch's torch.func.jacrev.
 */
export function jacrev<A extends readonly unknown[]>(fn: Fn<A>, options: DerivativeOptions = {}): (...args: A) => unknown {
  checkCount('jacrev', arguments, 2)
  return jacobianFunction('jacrev', fn, options, byRows)
}

/** The same as {@link jacrev}, column by column: for functions with fewer arguments than results. PyTorch's torch.func.jacfwd. */
export function jacfwd<A extends readonly unknown[]>(fn: Fn<A>, options: DerivativeOptions = {}): (...args: A) => unknown {
  checkCount('jacfwd', arguments, 2)
  return jacobianFunction('jacfwd', fn, options, byColumns)
}

/** A function that returns the second derivatives of `fn`: the Jacobian of its Jacobian. PyTorch's torch.func.hessian. */
export function hessian<A extends readonly unknown[]>(fn: Fn<A>, options: DerivativeOptions = {}): (...args: A) => unknown {
  checkCount('hessian', arguments, 2)
  readOptions('hessian', fn, options)
  return jacfwd(jacrev(fn, options), options)
}

/** A Jacobian in blocks: `blocks[o][i]` is [...shape of result o, ...shape of argument i]. */
interface Jacobian {
  readonly blocks: readonly (readonly Tensor[])[]
  readonly outputs: Tensors
  readonly inputs: Tensors
  /** Takes the tape of the arguments off results. */
  readonly free: (result: unknown) => unknown
}

/** Computes the Jacobian of a function of one nested value. */
type JacobianAt = (fn: (value: unknown) => unknown, value: unknown) => Jacobian

/** The function that `jacrev` or `jacfwd` returns: `jacobianAt` computes the blocks. */
function jacobianFunction<A extends readonly unknown[]>(
  where: string,
  fn: Fn<A>,
  options: DerivativeOptions,
  jacobianAt: JacobianAt,
): (...args: A) => unknown {
  const { argnums, hasAux } = readOptions(where, fn, options)
  return (...args) => {
    const { value, withValue } = choose(where, args, argnums)
    let aux: unknown
    const ofChosen = (chosen: unknown): unknown => {
      const [result, others] = withAux(where, Reflect.apply(fn, undefined, withValue(chosen)), hasAux)
      aux = others
      return result
    }
    const { blocks, outputs, inputs, free } = jacobianAt(ofChosen, value)
    const jacobian = treeUnflatten(
      blocks.map((row) => treeUnflatten(row, inputs.spec)),
      outputs.spec,
    )
    return free(hasAux ? [jacobian, aux] : jacobian)
  }
}

const byRows: JacobianAt = (fn, value) => {
  const { value: result, linear: pullback, free } = pullbackOf(fn, [value])
  const outputs = resultsOf('jacrev', result)
  const inputs = tensorsOf('jacrev', 'the argument', value)
  checkReal('jacrev', inputs.tensors)
  const rows = vmap((...seeds: readonly Tensor[]) => pullback(treeUnflatten(seeds, outputs.spec)))(...basis('jacrev', outputs.tensors))
  // For each argument, the rows of all results.
  const columns = resultsOf('jacrev', rows).tensors.map((batch) => byElement(batch, outputs.tensors))
  const blocks = outputs.tensors.map((_, o) => columns.map((column) => present(column[o], 'a block of a Jacobian')))
  return { blocks, outputs, inputs, free }
}

const byColumns: JacobianAt = (fn, value) => {
  const { value: result, linear: pushforward, free } = pushforwardOf('jacfwd', fn, [value])
  const outputs = resultsOf('jacfwd', result)
  const inputs = tensorsOf('jacfwd', 'the argument', value)
  const columns = vmap((...tangents: readonly Tensor[]) => pushforward(treeUnflatten(tangents, inputs.spec)))(...basis('jacfwd', inputs.tensors))
  const blocks = resultsOf('jacfwd', columns).tensors.map((batch, o) => {
    const rank = outputs.tensors[o]?.ndim ?? 0
    return byElement(batch, inputs.tensors).map((block) => lastDimsFirst(block, rank))
  })
  return { blocks, outputs, inputs, free }
}

/** [elements of the argument, ...result] as [...result, ...argument], for a result with `rank` dimensions. */
function lastDimsFirst(block: Tensor, rank: number): Tensor {
  const dims = Array.from({ length: block.ndim }, (_, d) => d)
  return block.permute([...dims.slice(block.ndim - rank), ...dims.slice(0, block.ndim - rank)])
}

/** Throws UnsupportedError for complex tensors, whose derivatives are not one matrix of complex numbers. */
function checkReal(where: string, tensors: readonly Tensor[]): void {
  const complex = tensors.find((tensor) => tensor.isComplex())
  if (complex !== undefined)
    throw new UnsupportedError(
      `${where}: Jacobians are of real tensors, got ${complex.dtype}; take those of the parts, by torch.viewAsReal(x) and torch.complex(x, y).`,
    )
}

/** Rows of the identity, in the shapes of the tensors: for each tensor a batch of all its elements, in one order for all. */
function basis(where: string, tensors: readonly Tensor[]): readonly Tensor[] {
  const count = tensors.reduce((sum, { numel }) => sum + numel, 0)
  const [first] = tensors
  checkReal(where, tensors)
  const rows = eye(count, { dtype: first?.dtype ?? 'float32' })
  let start = 0
  return tensors.map(({ numel, shape }) => {
    const own = reshape(rows.narrow(1, start, numel), [count, ...shape])
    start += numel
    return own
  })
}

/** The parts of a batch of all elements that belong to each tensor, in its shape: [...its shape, ...rest]. */
function byElement(batch: Tensor, tensors: readonly Tensor[]): readonly Tensor[] {
  let start = 0
  return tensors.map(({ numel, shape }) => {
    const own = reshape(batch.narrow(0, start, numel), [...shape, ...batch.shape.slice(1)])
    start += numel
    return own
  })
}
