// Functions of sizes that may be symbols. In a symbolic trace they stay expressions, where JavaScript's own operators would read numbers; graphs call them by these names.
import { ArgumentError } from '../../errors/index.ts'
import { OVERRIDE, checkCount, findOverride, isFunction, isSymbolic, isTensorLike, nameTarget, valueText, withName } from '../../protocol/index.ts'
import type { SymbolicFunction } from '../../protocol/index.ts'
import { ownAttribute } from '../../module/index.ts'

type Operation = (...args: readonly unknown[]) => unknown

/** Registers a function under its name in `torch`. A call with a traced value is recorded instead. `reads`: the property of its first argument that it gives. */
function named(name: string, count: number, fn: Operation, reads?: string): Operation {
  const withOverride: Operation = (...args) => {
    checkCount(`torch.${name}`, args, count)
    const override = findOverride(args)
    return override === null ? fn(...args) : override[OVERRIDE]('function', withOverride, args, {})
  }
  return nameTarget(withName(withOverride, name), { name: `torch.${name}`, effects: 'pure', ...(reads !== undefined && { reads }) })
}

/** A function of sizes: `onPlain` for numbers and booleans, and what a symbolic argument says. */
const ofSizes = (name: SymbolicFunction, count: number, onPlain: (...args: readonly never[]) => unknown): Operation =>
  named(name, count, (...args) => {
    const symbolic = args.flat().find(isSymbolic)
    return symbolic === undefined
      ? Reflect.apply(
          onPlain,
          undefined,
          args.map((arg) => plain(name, arg)),
        )
      : symbolic.applied(name, args)
  })

function plain(name: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one: unknown) => plain(name, one))
  if (typeof value === 'number' || typeof value === 'boolean' || (name === '_check' && typeof value === 'string')) return value
  throw new ArgumentError(`torch.${name}: expected numbers or symbolic values, got ${valueText(value)}.`)
}

/** The functions of `torch` for sizes that may be symbols. A symbolic trace gives them SymInt, SymFloat and SymBool in the place of numbers and booleans. */
export interface SizeFunctions {
  /** The larger of two sizes. PyTorch's `torch.sym_max`. */
  readonly symMax: (a: number, b: number) => number
  /** The smaller of two sizes. PyTorch's `torch.sym_min`. */
  readonly symMin: (a: number, b: number) => number
  /** The sum of sizes. PyTorch's `torch.sym_sum`. */
  readonly symSum: (sizes: readonly number[]) => number
  /** A size as a float. PyTorch's `torch.sym_float`. */
  readonly symFloat: (a: number) => number
  /** A float as an integer, rounded towards 0. PyTorch's `torch.sym_int`. */
  readonly symInt: (a: number) => number
  /** The contrary of a comparison of sizes. PyTorch's `torch.sym_not`. */
  readonly symNot: (a: boolean) => boolean
  /** `a` if the condition holds, else `b`; no branch, so it makes no guard. PyTorch's `torch.sym_ite`. */
  readonly symIte: (condition: boolean, a: number, b: number) => number
  /** The square root of a size. */
  readonly symSqrt: (a: number) => number
  /**
   * States that a condition on numbers or sizes holds, or throws. In a symbolic trace it is a guard if the condition is about sizes of arguments, and what the trace knows about numbers that
   * depend on data; `insertDeferredRuntimeAsserts` writes those into the graph. PyTorch's `torch._check`.
   */
  readonly _check: (condition: boolean, message?: string) => void
  /** States that a number can be a size: at least 0. In a symbolic trace, operators count one that depends on data as neither 0 nor 1 from then on. PyTorch's `torch._check_is_size`. */
  readonly _checkIsSize: (size: number) => void
}

/** See {@link SizeFunctions}. */
export const sizeFunctions = {
  symMax: ofSizes('symMax', 2, (a: number, b: number) => Math.max(a, b)),
  symMin: ofSizes('symMin', 2, (a: number, b: number) => Math.min(a, b)),
  symSum: ofSizes('symSum', 1, (sizes: readonly number[]) => sizes.reduce((sum, size) => sum + size, 0)),
  symFloat: ofSizes('symFloat', 1, (a: number) => a),
  symInt: ofSizes('symInt', 1, (a: number) => Math.trunc(a)),
  symNot: ofSizes('symNot', 1, (a: boolean) => !a),
  symIte: ofSizes('symIte', 3, (condition: boolean, a: number, b: number) => (condition ? a : b)),
  symSqrt: ofSizes('symSqrt', 1, (a: number) => Math.sqrt(a)),
  _check: ofSizes('_check', 2, (condition: boolean, message?: string) => {
    if (!condition) throw new ArgumentError(`torch._check: ${message ?? 'the condition does not hold'}.`)
  }),
  _checkIsSize: ofSizes('_checkIsSize', 1, (size: number) => {
    if (!(Number.isInteger(size) && size >= 0)) throw new ArgumentError(`torch._checkIsSize: a size is an integer of at least 0, got ${size}.`)
  }),
} as SizeFunctions

/** A function that reads a tensor's layout, as `property` says; with `indexed`, one entry of it. */
const reader = (name: string, property: string, indexed: boolean): Operation =>
  named(
    name,
    indexed ? 2 : 1,
    (tensor, dim) => {
      if (!isTensorLike(tensor)) throw new ArgumentError(`torch.${name}: argument 'self' must be a Tensor, got ${valueText(tensor)}.`)
      const value: unknown = Reflect.get(tensor, property)
      return indexed ? ownAttribute(value, String(dim)) : value
    },
    property,
  )

/** A method of tensors without arguments as a function. */
const method = (name: string): Operation =>
  named(
    name,
    1,
    (tensor) => {
      const found: unknown = isTensorLike(tensor) ? Reflect.get(tensor, name) : undefined
      if (!isFunction(found)) throw new ArgumentError(`torch.${name}: argument 'self' must be a Tensor, got ${valueText(tensor)}.`)
      return found.call(tensor)
    },
    `${name}()`,
  )

/** What graphs read of a tensor's layout, and the property that it is. PyTorch's `sym_size`, `sym_stride`, `sym_storage_offset`, `sym_numel`, and `_local_scalar_dense` for the only element. */
export const layoutReaders = {
  item: method('item'),
  symSize: reader('symSize', 'shape', true),
  symStride: reader('symStride', 'strides', true),
  symStorageOffset: reader('symStorageOffset', 'offset', false),
  symNumel: reader('symNumel', 'numel', false),
} as const
