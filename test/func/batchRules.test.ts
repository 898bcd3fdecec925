// The batching rule of every operator that has one, declared or derived, against the loop over examples, on a tenth of its value cases of test/ops/values, at least one.
import { afterAll, describe, expect, it, test, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { BatchRule, OpDef } from 'tensorfx/ops'
import { vmap } from 'tensorfx/func'
import { tenth } from '../helpers/rotation.ts'
import { builtInOps } from '../ops/builtInOps.ts'
import { Plain } from '../ops/plain.ts'
import { allValueCases, plainsIn, replace, tensorOf } from '../ops/valueCases.ts'
import type { ValueCase } from '../ops/valueCases.ts'

const cases = await allValueCases()

/** Modes see it: it is not composed of others. */
const isPrimitive = (op: OpDef): boolean => op.decompose === null || op.derivative !== null
const noneOf = (rule: BatchRule | null): string | null => (rule !== null && typeof rule === 'object' && 'none' in rule ? rule.none : null)
/** Whether a case takes tensors and does not read their values, which examples under vmap do not have. */
const takesTensors = (op: OpDef): boolean => (cases.get(op.qualname) ?? []).some((one) => one.readsValues !== true && plainsIn(one.args).length > 0)
const operators = builtInOps().filter((op) => isPrimitive(op) && takesTensors(op))

const flat = (result: unknown): Tensor[] => [result].flat() as Tensor[]
const numbers = (t: Tensor): number[] => Array.from(t.contiguous().toTypedArray() as ArrayLike<number | bigint>, Number)

/** An example beside that of the case: other floating-point numbers, near those. */
const beside = (plain: Plain, k: number): Plain => (plain.kind === 'float' ? plain.map((v) => v * (1 - k / 64)) : plain)

/** `asStrided` with an offset counts from the beginning of the storage, which the examples of a batch share and those of the loop here do not. */
const countsInStorage = (op: OpDef, one: ValueCase): boolean => op.qualname === 'torch.as_strided' && typeof one.args[3] === 'number'

/** Compares vmap over some tensors of the case (the others are shared) with the loop. */
function check(op: OpDef, one: ValueCase, batched: (position: number) => boolean): void {
  const plains = plainsIn(one.args)
  const call = (tensors: readonly Tensor[]): unknown => {
    let next = 0
    return op.fn(...one.args.map((arg) => replace(arg, () => tensors[next++])))
  }
  const example = (k: number): Tensor[] => plains.map((plain, i) => tensorOf(beside(plain, batched(i) ? k : 0), 'float64'))
  const [first, second] = [flat(call(example(0))), flat(call(example(1)))]
  const [a, b] = [example(0), example(1)]
  const given = a.map((t, i) => (batched(i) ? torch.stack([t, b[i] ?? t]) : t))
  const inDims = given.map((_, i) => (batched(i) ? 0 : null))
  const mapped = flat(vmap((...tensors: Tensor[]) => call(tensors) as Tensor, { inDims })(...given))
  expect(mapped).toHaveLength(first.length)
  mapped.forEach((whole, k) => {
    const want = torch.stack([first[k] as Tensor, second[k] as Tensor])
    expect([whole.shape, whole.dtype]).toEqual([want.shape, want.dtype])
    const wanted = numbers(want)
    numbers(whole).forEach((v, i) => {
      const w = wanted[i] ?? NaN
      if (Number.isFinite(w)) expect(Math.abs(v - w)).toBeLessThanOrEqual(1e-9 * (1 + Math.abs(w)))
      else expect(v).toEqual(w)
    })
  })
}

const warnings = new Set<string>()
vi.spyOn(console, 'warn').mockImplementation((text: string) => {
  const [, name] = /no batching rule for (\S+);/.exec(text) ?? []
  if (name !== undefined) warnings.add(name)
})
afterAll(() => vi.restoreAllMocks())
const opNamed = (name: string): OpDef | undefined => operators.find((op) => op.qualname === name)

describe.each(operators.map((op): [string, OpDef] => [op.qualname, op]))('%s', (qualname, op) => {
  const own = (cases.get(qualname) ?? []).filter((one) => one.readsValues !== true && plainsIn(one.args).length > 0 && !countsInStorage(op, one))

  const chosen = (given: readonly ValueCase[], how: string): readonly (readonly [number, ValueCase])[] =>
    tenth(
      given.map((one, i) => [i + 1, one] as const),
      ([i]) => `${qualname} ${i} ${how}`,
    )

  it.each(chosen(own, 'all'))('case %i, all tensors batched', (_, one) => check(op, one, () => true))

  const several = own.filter((one) => plainsIn(one.args).length > 1 && op.schema.args[0]?.type.mutated !== true)
  it.each(chosen(several, 'others shared'))('case %i, the other tensors shared', (_, one) => check(op, one, (i) => i === 0))
  it.each(chosen(several, 'first shared'))('case %i, the first tensor shared', (_, one) => check(op, one, (i) => i > 0))
})

/** Operators whose rules do not hold for all arguments: tensors without dimensions, whose only dimension may be named, and tensors that the examples must share. */
const NOT_ALWAYS = [
  'torch.nn.functional.embedding',
  'torch.ops.tensorfx.pseudo_inverse',
  'torch.argmax',
  'torch.argmin',
  'torch.topk',
  'torch.gather',
  'torch.scatter_add',
  'torch.squeeze',
]

test('operators with a rule are computed at once: vmap warns of those without', () => {
  const without = (name: string): boolean => noneOf(opNamed(name)?.vmap ?? null) !== null
  expect([...warnings].filter((name) => !without(name) && !NOT_ALWAYS.includes(name))).toEqual([])
})

test('an operator without a rule says why', () => {
  for (const op of operators) expect(noneOf(op.vmap)?.length ?? 100).toBeGreaterThan(15)
})
