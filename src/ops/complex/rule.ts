// What an operator computes with complex numbers: a rule, by the operator's name.
import { dispatch, isArgList, tensorAt } from '../../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import { complexDType, isComplexDType, isDType, promoteTypes, realDType } from '../../kernels/index.ts'
import type { ComplexDType, DType } from '../../kernels/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { CommonType } from '../eager/promotion.ts'
import { fromParts, im, re, toComplex } from './parts.ts'

/** Computes a call that has complex numbers, or a complex dtype, among its arguments. */
export type ComplexRule = (args: readonly Arg[], op: OpDef) => Result

/**
 * Rules by qualified name. 'as is': the operator is a view, and does not read elements. 'decomposed': the operators that it consists of are right for complex numbers too, or refuse
 * them. An operator without a rule is refused.
 */
export type ComplexRules = Readonly<Record<string, ComplexRule | 'as is' | 'decomposed'>>

/** One rule for several operators. */
export const forAll = (names: string, rule: ComplexRule | 'as is' | 'decomposed', namespace = 'torch'): ComplexRules =>
  Object.fromEntries(names.split(' ').map((name) => [`${namespace}.${name}`, rule]))

/** The argument of that name; null if the operator has none. */
export function argument(op: OpDef, args: readonly Arg[], name: string): Arg {
  return args[op.schema.args.findIndex((arg) => arg.name === name)] ?? null
}

/** The complex dtype that operands have in common; numbers count as in real arithmetic. */
export function commonDType(operands: readonly Arg[]): ComplexDType {
  const common = new CommonType()
  for (const operand of operands) {
    if (operand instanceof Tensor) common.addTensor(operand)
    else if (typeof operand === 'number') common.addNumber(operand)
  }
  return complexDType(common.dtype)
}

const tensorsIn = (args: readonly Arg[]): readonly Tensor[] =>
  args.flatMap((arg) => (arg instanceof Tensor ? [arg] : isArgList(arg) ? tensorsIn(arg) : []))

/** The dtype that a call names, or else the one that its values have in common. */
function dtypeOf(op: OpDef, args: readonly Arg[], values: readonly Arg[]): ComplexDType {
  const named = argument(op, args, 'dtype')
  if (isDType(named)) return complexDType(named)
  return complexDType(
    tensorsIn(values)
      .map(({ dtype }): DType => dtype)
      .reduce(promoteTypes),
  )
}

/**
 * The operator on the real parts and on the imaginary parts: for operators that move or add elements. `values` are the arguments that hold elements; numbers among them are real.
 */
export function byParts(...values: readonly string[]): ComplexRule {
  return (args, op) => {
    const isValue = args.map((_, i) => values.includes(op.schema.args[i]?.name ?? ''))
    const dtype = dtypeOf(
      op,
      args,
      args.filter((_, i) => isValue[i]),
    )
    const taken = (arg: Arg, part: (x: Tensor) => Tensor, number: (x: number) => number): Arg => {
      if (arg instanceof Tensor) return part(toComplex(arg, dtype))
      if (isArgList(arg)) return arg.map((item) => taken(item, part, number))
      return typeof arg === 'number' ? number(arg) : arg
    }
    const of = (part: (x: Tensor) => Tensor, number: (x: number) => number): readonly Tensor[] => {
      const result = dispatch(
        op,
        args.map((arg, i) => (isValue[i] === true ? taken(arg, part, number) : isComplexDType(arg) ? realDType(dtype) : arg)),
      )
      return result instanceof Tensor ? [result] : result
    }
    const imaginary = of(im, () => 0)
    const results = of(re, (x) => x).map((x, i) => fromParts(x, imaginary[i] ?? x))
    return op.schema.returns.length === 1 && op.schema.returns[0]?.list !== true ? (results[0] ?? results) : results
  }
}

/** The operator on the absolute values: for norms. */
export const onMagnitudes =
  (abs: (x: Tensor) => Tensor): ComplexRule =>
  (args, op) =>
    dispatch(
      op,
      args.map((arg, i) => (i === 0 ? abs(tensorAt(args, 0)) : isComplexDType(arg) ? realDType(arg) : arg)),
    )
