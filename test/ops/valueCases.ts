// Value cases: what each operator computes, by an independent reference. A file of test/ops/values holds the cases of one operator or of a small family, and is
// found by itself; see values.test.ts, and tableGradients.test.ts, which takes its inputs from the same cases.
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import type { OpDef } from 'tensorfx/ops'
import { findOperators } from '../../scripts/generateOps.mjs'
import { builtInOps } from './builtInOps.ts'
import { Plain } from './plain.ts'

const { tensor } = torch

/** One call: its arguments, with tensors as `Plain`, and the result. */
export interface ValueCase {
  readonly args: readonly unknown[]
  /** The result (an array for several tensors), or the reference that computes it from the arguments, whose numbers are rounded to the dtype that the case runs in. */
  readonly gives: Plain | readonly Plain[] | ((...args: never[]) => Plain | readonly Plain[])
  /** Relative tolerance in float32; default 4e-6. */
  readonly tolerance?: number
  /** Relative tolerance in float16 and bfloat16, in units of the last place; default 8. */
  readonly halfTolerance?: number
  /** Why the case does not run in float16 and bfloat16, e.g. because it subtracts nearly equal numbers. */
  readonly notInHalf?: string
  /** Whether the shape of the result depends on values: on fake tensors the call throws. */
  readonly readsValues?: true
  /**
   * The gradients of the sum of all results, for each floating-point tensor among the arguments (but `constants`), or the reference that computes them from the arguments. It
   * takes the place of finite differences where the gradient is not the slope: at kinks, and where a gradient passes straight through a step.
   */
  readonly gradient?: Plain | readonly Plain[] | ((...args: never[]) => Plain | readonly Plain[])
  /** Why the gradient is not checked on these arguments, e.g. because they are at a kink. */
  readonly noGradient?: string
  /** Positions of float arguments that get no gradient, such as class weights. */
  readonly constants?: readonly number[]
  /** How many of the results have a gradient; default all. The rest are statistics. */
  readonly differentiable?: number
}

/** Cases by the qualified name of the operator. */
export type ValueCases = Readonly<Record<string, readonly ValueCase[]>>

/** Every case in test/ops/values. */
export async function allValueCases(): Promise<ReadonlyMap<string, readonly ValueCase[]>> {
  const folder = new URL('values/', import.meta.url)
  const found = new Map<string, readonly ValueCase[]>()
  for (const name of readdirSync(fileURLToPath(folder)).sort()) {
    const { default: cases } = (await import(fileURLToPath(new URL(name, folder)))) as { default: ValueCases }
    for (const [qualname, list] of Object.entries(cases)) found.set(qualname, [...(found.get(qualname) ?? []), ...list])
  }
  for (const { qualname, functional } of inPlaceForms())
    found.set(qualname, [...(found.get(qualname) ?? []), ...(found.get(functional) ?? []).flatMap(inPlaceCase)])
  for (const { qualname, aliasOf } of builtInOps())
    if (aliasOf !== null)
      found.set(
        qualname,
        (found.get(aliasOf.qualname) ?? []).map((one) => withoutGradient(one, `it is another name of ${aliasOf.qualname}`)),
      )
  return found
}

/** Cases of an operator that has no gradient, and why. */
export const withoutGradients = (noGradient: string, cases: readonly ValueCase[]): readonly ValueCase[] =>
  cases.map((one) => withoutGradient(one, noGradient))

/** The case without its gradient, and why. */
function withoutGradient(one: ValueCase, noGradient: string): ValueCase {
  const { gradient: _, ...rest } = one
  return { ...rest, noGradient }
}

const IN_PLACE = 'inPlace.test.ts compares it with the functional operator'

/** The generated in-place forms, and the operators that they write the results of. */
export const inPlaceForms = (): readonly { readonly qualname: string; readonly functional: string }[] =>
  findOperators().flatMap(({ name, namespace, inPlace }) => {
    const { qualname } = opNamed(`${namespace}.${name}`)
    return inPlace === null
      ? []
      : [{ qualname: `${inPlace === 'function' ? namespace : 'torch.Tensor'}.${qualname.slice(namespace.length + 1)}_`, functional: qualname }]
  })

/** The operator at a path such as torch.nn.functional.logSoftmax. */
function opNamed(path: string): OpDef {
  const found = builtInOps().find((op) => `${op.qualname.slice(0, op.qualname.lastIndexOf('.'))}.${op.fn.name}` === path)
  if (found === undefined) throw new Error(`no operator ${path}`)
  return found
}

/** The case of the in-place form, if the result fits into the first argument: it is cast to the dtype of that. */
function inPlaceCase(one: ValueCase): readonly ValueCase[] {
  const [self] = one.args
  const result = expectedOf(one, one.args)
  if (!(self instanceof Plain && result instanceof Plain) || self.shape.join() !== result.shape.join()) return []
  if (self.kind === result.kind) return [withoutGradient(one, IN_PLACE)]
  return result.kind === 'bool' ? [withoutGradient({ ...one, gives: result.as(self.kind) }, IN_PLACE)] : []
}

/** The dtype of a tensor in a run of its case. */
export const dtypeOf = (plain: Plain, float: DType, int: DType = 'int32'): DType =>
  plain.kind === 'float' ? float : plain.kind === 'int' ? int : plain.kind

/** The tensor with these numbers. */
export const tensorOf = (plain: Plain, float: DType, int: DType = 'int32'): Tensor =>
  tensor([...plain.data], { dtype: dtypeOf(plain, float, int) }).view(plain.shape)

/** Replaces the tensors in nested arguments. */
export function replace(value: unknown, fn: (plain: Plain) => unknown): unknown {
  if (value instanceof Plain) return fn(value)
  if (Array.isArray(value)) return value.map((item) => replace(item, fn))
  if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replace(item, fn)]))
  return value
}

/** All tensors in nested arguments, in order. */
export function plainsIn(value: unknown): Plain[] {
  const found: Plain[] = []
  replace(value, (plain) => found.push(plain))
  return found
}

/** The arguments with float numbers as a floating-point dtype has them. */
export const rounded = (args: readonly unknown[], float: DType = 'float32'): unknown[] =>
  args.map((arg) =>
    replace(arg, (plain) => (plain.kind === 'float' ? new Plain(plain.shape, [...tensorOf(plain, float).toTypedArray()], 'float') : plain)),
  )

/** What a case gives for these arguments. */
export function expectedOf({ gives }: ValueCase, args: readonly unknown[]): Plain | readonly Plain[] {
  return typeof gives === 'function' ? gives(...(args as never[])) : gives
}
