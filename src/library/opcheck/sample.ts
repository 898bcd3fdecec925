// A sample of opcheck: the arguments of one call, its copies, and comparisons of results.
import { noGrad, versionOf } from '../../autograd/index.ts'
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { clone, detach } from '../../ops/index.ts'
import { normalize } from '../../ops/define/normalize.ts'
import { treeLeaves, treeMap } from '../../pytree/index.ts'
import { Tensor, formatShape, sameShape } from '../../tensor/index.ts'

/** Tolerances of a comparison; null: those of the dtype. */
export interface Tolerance {
  readonly atol: number | null
  readonly rtol: number | null
}

/** One call of the operator that is checked. */
export class Sample {
  readonly op: OpDef
  readonly #args: readonly unknown[]

  constructor(op: OpDef, args: readonly unknown[]) {
    this.op = op
    this.#args = args
  }

  /** The call in words: `x: float32[2, 3], n: 2`. */
  get text(): string {
    const one = (value: unknown): string => {
      if (value instanceof Tensor) return `${value.dtype}${formatShape(value.shape)}${value.requiresGrad ? ' that requires grad' : ''}`
      return Array.isArray(value) ? `[${value.map(one).join(', ')}]` : JSON.stringify(value)
    }
    try {
      return normalize(this.op, this.#args)
        .map((arg, i) => `${this.op.schema.args[i]?.name ?? i}: ${one(arg)}`)
        .join(', ')
    } catch {
      return this.#args.map(one).join(', ')
    }
  }

  /** The tensors among the arguments. */
  get tensors(): Tensor[] {
    return treeLeaves(this.#args).filter((leaf) => leaf instanceof Tensor)
  }

  /** Copies of the tensors, in the same layout where that has no gaps. Those that require grad are leaves. */
  copies(): Tensor[] {
    return this.tensors.map((tensor) => {
      const copy = noGrad(() => sameLayout(detach(tensor)))
      copy.requiresGrad = tensor.requiresGrad
      return copy
    })
  }

  /** Calls the operator with these tensors (or proxies) in place of the sample's. */
  call(tensors: readonly unknown[]): unknown {
    return this.op.fn(...this.argumentsWith(tensors))
  }

  /** The arguments of the call with these tensors in place of the sample's. */
  argumentsWith(tensors: readonly unknown[]): readonly unknown[] {
    let next = 0
    return this.#args.map((arg) => treeMap(arg, (leaf) => (leaf instanceof Tensor ? tensors[next++] : leaf)))
  }

  /** One value per argument of the schema. */
  normalized(tensors: readonly Tensor[]): readonly Arg[] {
    return normalize(this.op, this.argumentsWith(tensors))
  }
}

/** A copy whose dimensions lie in memory in the order of the original's. */
function sameLayout(tensor: Tensor): Tensor {
  const order = tensor.strides.map((stride, dim) => ({ stride, dim })).sort((a, b) => b.stride - a.stride)
  const there = order.map(({ dim }) => dim)
  const back = there.map((_, dim) => there.indexOf(dim))
  const copy = clone(tensor.permute(there)).permute(back)
  // The copy must not count as a view: compile treats writes to views in another way.
  copy.viewBase = null
  return copy
}

/** The results of a call as a list. */
export const resultsOf = (result: unknown): readonly Tensor[] => treeLeaves(result).filter((leaf) => leaf instanceof Tensor)

/** The tensors of a sample that can have gradients and want them. */
export const wantedOf = (tensors: readonly Tensor[]): Tensor[] => tensors.filter((t) => t.requiresGrad && dtypeInfo[t.dtype].floating)

/** What was written to a tensor since: a version and the values. */
export interface Snapshot {
  readonly tensor: Tensor
  readonly values: Tensor
  readonly version: number
}

export const snapshot = (tensor: Tensor): Snapshot => ({ tensor, values: noGrad(() => clone(detach(tensor))), version: versionOf(tensor) })

export const isWritten = ({ tensor, values, version }: Snapshot): boolean =>
  versionOf(tensor) !== version || difference(tensor, values, { atol: 0, rtol: 0 }) !== null

/** How `got` differs from `expected`, as text; null if it does not. NaN equals NaN. */
function difference(got: Tensor, expected: Tensor, tolerance: Tolerance): string | null {
  if (!sameShape(got.shape, expected.shape)) return `the shape is ${formatShape(got.shape)} instead of ${formatShape(expected.shape)}`
  if (got.dtype !== expected.dtype) return `the dtype is ${got.dtype} instead of ${expected.dtype}`
  const isDouble = expected.dtype === 'float64'
  // Those of torch.testing.assert_close.
  const rtol = tolerance.rtol ?? (dtypeInfo[expected.dtype].floating ? (isDouble ? 1e-7 : 1.3e-6) : 0)
  const atol = tolerance.atol ?? (dtypeInfo[expected.dtype].floating ? (isDouble ? 1e-7 : 1e-5) : 0)
  const [values, others] = noGrad(() => [numbersOf(got), numbersOf(expected)])
  for (const [i, x] of values.entries()) {
    const y = others[i] ?? NaN
    if (Object.is(x, y) || x === y || Math.abs(x - y) <= atol + rtol * Math.abs(y)) continue
    return `element ${i} is ${x} instead of ${y}`
  }
  return null
}

/** The elements of a tensor as numbers, in row-major order. */
export const numbersOf = (tensor: Tensor): number[] => Array.from(detach(tensor).toTypedArray(), Number)

/** The first difference between two lists of results. */
export function firstDifference(what: string, got: readonly Tensor[], expected: readonly Tensor[], tolerance: Tolerance): string | null {
  if (got.length !== expected.length) return `there are ${got.length} ${what}s instead of ${expected.length}`
  for (const [i, tensor] of got.entries()) {
    const other = expected[i]
    const differs = other === undefined ? null : difference(tensor, other, tolerance)
    if (differs !== null) return `${what} ${i}: ${differs}`
  }
  return null
}
