// Every pointwise operator and reduction on every dtype: it computes with the dtypes that its declaration admits, the same on fake tensors, and throws a DTypeError for the others; and
// compiled with a tenth of the dtypes of each, and at least one.
import { describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import { builtInOps } from './builtInOps.ts'
import type { OpDef } from 'tensorfx/ops'
import { DTypeError } from '../../src/errors/index.ts'
import { DTYPES, exactly } from './dtypeGoldens.ts'
import { allValueCases, replace } from './valueCases.ts'
import type { Plain } from './plain.ts'
import { tenth } from '../helpers/rotation.ts'

const cases = await allValueCases()

const KINDS = {
  numeric: (dtype: DType): boolean => dtype !== 'bool',
  integral: (dtype: DType): boolean => !dtype.includes('float'),
  integer: (dtype: DType): boolean => dtype !== 'bool' && !dtype.includes('float'),
  floating: (dtype: DType): boolean => dtype.includes('float'),
  int32: (dtype: DType): boolean => dtype === 'int32',
}

/** Fractions would lift integers to floats: they are 1 here. */
function withoutFractions(arg: unknown): unknown {
  if (typeof arg === 'number') return Number.isInteger(arg) ? arg : 1
  return isOptions(arg) ? Object.fromEntries(Object.entries(arg).map(([key, value]) => [key, withoutFractions(value)])) : arg
}

const isOptions = (arg: unknown): arg is object => typeof arg === 'object' && arg !== null && Object.getPrototypeOf(arg) === Object.prototype

/** The tensors of the operator's first case, each of them in `dtype` and with small positive numbers. */
function argumentsOf(op: OpDef, dtype: DType): { readonly args: readonly unknown[]; readonly tensors: readonly Tensor[] } {
  const tensors: Tensor[] = []
  const args = (cases.get(op.qualname)?.[0]?.args ?? []).map((arg) =>
    replace(arg, (plain: Plain) => {
      const small = plain.data.map((_, i) => (dtype === 'bool' ? (i + tensors.length) % 2 : 1 + ((i * 3 + tensors.length) % 4)))
      const made = torch.tensor(small, { dtype }).view(plain.shape)
      tensors.push(made)
      return made
    }),
  )
  return { args: args.map(withoutFractions), tensors }
}

describe.each(builtInOps().flatMap((op): [string, OpDef][] => (op.pointwise === null && op.reduction === null ? [] : [[op.qualname, op]])))(
  '%s',
  (name, op) => {
    const set = op.pointwise?.dtypes ?? op.reduction?.dtypes
    const admits = (dtype: DType): boolean => set === undefined || KINDS[set](dtype)
    const compiledOnes = tenth(DTYPES.filter(admits), (dtype) => `${name} ${dtype}`)
    it.each(DTYPES.map((dtype): [DType] => [dtype]))('of %s', (dtype) => {
      const { args, tensors } = argumentsOf(op, dtype)
      const call = (...given: Tensor[]): Tensor => {
        let next = 0
        return op.fn(...args.map((arg) => (arg instanceof torch.Tensor ? given[next++] : arg))) as Tensor
      }
      const onFakes = (): Tensor => withMode(new FakeTensorMode(), () => call(...tensors))
      // A bool and a whole number have int64 in common.
      const common = dtype === 'bool' && args.some((arg) => typeof arg === 'number') ? 'int64' : dtype
      if (!admits(common)) {
        for (const run of [() => call(...tensors), onFakes]) expect(run).toThrow(DTypeError)
        return
      }
      const eager = call(...tensors)
      const specOf = (t: Tensor): string => `${t.dtype} [${t.shape.join(', ')}]`
      expect(specOf(onFakes())).toBe(specOf(eager))
      if (!compiledOnes.includes(dtype)) return
      const compiled = compile(call)(...tensors)
      expect(specOf(compiled)).toBe(specOf(eager))
      expect(exactly(compiled)).toEqual(exactly(eager))
    })
  },
)
