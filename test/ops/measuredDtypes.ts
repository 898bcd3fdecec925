// Which dtypes an operator takes, found by calling it: its first value case, with the tensors that hold floats in each dtype (all tensors, if none holds floats).
import { noGrad, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import type { OpDef } from 'tensorfx/ops'
import { DTypeError } from '../../src/errors/index.ts'
import { DTYPES } from './dtypeGoldens.ts'
import { plainsIn, replace, tensorOf } from './valueCases.ts'
import type { ValueCase } from './valueCases.ts'

/** Fractions would lift integers to floats: they are 1 here. */
function withoutFractions(arg: unknown): unknown {
  if (typeof arg === 'number') return Number.isInteger(arg) ? arg : 1
  if (typeof arg !== 'object' || arg === null || Object.getPrototypeOf(arg) !== Object.prototype) return arg
  return Object.fromEntries(Object.entries(arg).map(([key, value]) => [key, withoutFractions(value)]))
}

/** Whether a call with these arguments is refused because of a dtype. Anything else that it throws is about values. */
function refused(op: OpDef, args: readonly unknown[]): boolean {
  try {
    noGrad(() => (op.fn as unknown as (...given: readonly unknown[]) => unknown)(...args))
    return false
  } catch (error) {
    return error instanceof DTypeError
  }
}

/** The dtypes, in the order of DTYPES; null if the operator takes no tensors whose dtype is free. */
export function measuredDtypes(op: OpDef, cases: readonly ValueCase[]): readonly DType[] | null {
  const one = cases.find(({ args }) => plainsIn(args).some(({ kind }) => kind === 'float')) ?? cases.find(({ args }) => plainsIn(args).length > 0)
  if (one === undefined) return null
  const floats = plainsIn(one.args).some(({ kind }) => kind === 'float')
  const inDtype = (dtype: DType): unknown[] =>
    one.args.map((arg) =>
      replace(dtype.includes('float') ? arg : withoutFractions(arg), (plain): Tensor => {
        if (floats && plain.kind !== 'float') return tensorOf(plain, 'float32', 'int64')
        const data = dtype.includes('float')
          ? plain.data
          : plain.data.map((v) => (dtype === 'bool' ? Number(v !== 0) : Math.min(100, Math.abs(Math.trunc(v)) || 0)))
        return torch.tensor([...data], { dtype }).view(plain.shape)
      }),
    )
  return DTYPES.filter((dtype) => !refused(op, inDtype(dtype)))
}
