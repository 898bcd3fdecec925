// From the arguments as the user wrote them to one value per schema argument: options, defaults, checks.
import { dispatchState } from '../../dispatch/index.ts'
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { complexDType, dtypeInfo } from '../../kernels/index.ts'
import { SYMBOLIC, isPlainObject, isSymbolic, isSymbolicSize, unknownOption, valueText } from '../../protocol/index.ts'
import type { SchemaArgument, Size } from '../../protocol/index.ts'
import { Generator, getDefaultDtype, isComplexNumber, namesDType, notADType, NumbersNeeded, Tensor } from '../../tensor/index.ts'
import type { ComplexNumber } from '../../tensor/index.ts'
import { argumentHint, optionsHint } from './argumentHints.ts'

/** Positional arguments, and the trailing options object ({} without one). */
export function splitOptions(args: readonly unknown[]): [readonly unknown[], Readonly<Record<string, unknown>>] {
  const last = args.at(-1)
  return isPlainObject(last) && !isComplexNumber(last) ? [args.slice(0, -1), last] : [args, {}]
}

/** Required arguments by position and the others by name, in the schema's order. Arguments that do not fit the schema stay as they are. */
export function asKeywords(
  op: OpDef,
  positional: readonly unknown[],
  options: Readonly<Record<string, unknown>>,
): [readonly unknown[], Readonly<Record<string, unknown>>] {
  const { args } = op.schema
  const names = new Set(args.map((a) => a.name))
  if (positional.length > args.length || Object.keys(options).some((name) => !names.has(name))) return [positional, options]
  const required: unknown[] = []
  const keywords: Record<string, unknown> = {}
  for (const [i, arg] of args.entries()) {
    const value = i < positional.length ? positional[i] : options[arg.name]
    if (arg.hasDefault) keywords[arg.name] = value === undefined ? arg.default : value
    else if (value !== undefined) required.push(value)
  }
  return [required, keywords]
}

/** One value per schema argument. Throws ArgumentError naming the operator and the argument. */
export function normalize(op: OpDef, given: readonly unknown[]): Arg[] {
  const { schema } = op
  const [positional, named] = splitOptions(given)
  const options = selfByName(op, named)
  const values = spreadLists(op, positional)
  if (values.length > schema.args.length) {
    const hint = values.some(isPlainObject) ? optionsHint(op.qualname) : ''
    throw new ArgumentError(`${op.qualname}: ${values.length} arguments given but it takes ${schema.args.length}: ${schema.text}.${hint}`)
  }
  for (const key of Object.keys(options)) {
    const index = schema.args.findIndex((a) => a.name === key)
    if (index < 0)
      throw unknownOption(
        op.qualname,
        key,
        schema.args.map((a) => a.name),
      )
    if (index < values.length) throw new ArgumentError(`${op.qualname}: argument '${key}' was given twice, by position and in the options.`)
  }
  return schema.args.map((arg, i) => {
    const value = i < values.length ? values[i] : options[arg.name]
    if (value === undefined) {
      // A misspelt member such as torch.flaot64 is undefined: taking the default for it would hide the mistake.
      if (arg.name === 'dtype' && (i < values.length || Object.hasOwn(options, 'dtype')))
        throw new ArgumentError(`${op.qualname}: argument 'dtype': ${notADType(value)}`)
      if (!arg.hasDefault && !arg.type.optional) {
        // Before it one that may be null, but has no default, may be missing too.
        const first = schema.args.find((other, j) => !other.hasDefault && (j < values.length ? values[j] : options[other.name]) === undefined) ?? arg
        throw new ArgumentError(`${op.qualname}: missing argument '${first.name}': ${schema.text}`)
      }
      return arg.default ?? null
    }
    return check(op, arg, i, value, values)
  })
}

/**
 * Whether a number may stand for the tensor that the schema has at position `i`: in pointwise operators, everywhere but for `self` and in first place,
 * where the tag 'numberFirst' says so.
 * (Schemas have one overload per operator here, where PyTorch has `add.Tensor` and `add.Scalar`.)
 */
export function takesNumber(op: OpDef, i: number): boolean {
  const arg = op.schema.args[i]
  if (i === 0) return op.tags.has('numberFirst')
  const own = op.aliasOf ?? op
  return (own.functional ?? own).tags.has('pointwise') && arg?.type.base === 'Tensor' && arg.name !== 'self'
}

/** Options may say `input`, as PyTorch's functions do, where the schema says `self`. */
function selfByName(op: OpDef, options: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (options['input'] === undefined || op.schema.args.some((arg) => arg.name === 'input')) return options
  const { input, ...rest } = options
  return { self: input, ...rest }
}

/** `x.reshape(2, 3)` for `x.reshape([2, 3])`, `einsum(e, x, y)` for `einsum(e, [x, y])`: the arguments from a list argument on form the list. */
function spreadLists(op: OpDef, positional: readonly unknown[]): readonly unknown[] {
  const at = op.schema.args.findIndex((a) => a.type.list && !a.kwargOnly && (a.type.base === 'int' || a.type.base === 'Tensor'))
  const list = op.schema.args[at]
  if (list === undefined || at >= positional.length) return positional
  const isItem = (value: unknown): boolean => (list.type.base === 'int' ? isInteger(value, list) : value instanceof Tensor)
  const rest = positional.slice(at)
  const following = op.schema.args[at + 1]
  if (following !== undefined && !following.kwargOnly && (rest.length > 1 || list.type.base === 'Tensor')) return positional
  return rest.every(isItem) ? [...positional.slice(0, at), rest] : positional
}

/** Whether a value is a number, or a symbolic size where the schema takes one. */
const isInteger = (value: unknown, { type }: SchemaArgument): value is Size => typeof value === 'number' || (type.isSize && isSymbolicSize(value))

function check(op: OpDef, arg: SchemaArgument, position: number, value: unknown, positional: readonly unknown[]): Arg {
  const { type } = arg
  const fit = fitting(op, arg, position, value, positional)
  if (fit !== undefined) return fit
  if (value === null || !type.list || !Array.isArray(value)) throw wrong(op, arg, position, value, positional)
  const at = value.findIndex((item) => fittingOne(op, arg, position, item, positional) === undefined)
  throw wrong(op, { ...arg, name: `${arg.name}[${at}]`, type: { ...type, list: false } }, position, value[at], positional)
}

/** The argument that a value gives; undefined if it does not fit. */
function fitting(op: OpDef, arg: SchemaArgument, position: number, value: unknown, positional: readonly unknown[]): Arg | undefined {
  const { type } = arg
  if (value === null) return type.optional || arg.default === null ? null : undefined
  if (!type.list) return fittingOne(op, arg, position, value, positional)
  if (type.base === 'int' && isInteger(value, arg)) return [value]
  if (!Array.isArray(value)) return undefined
  const list: Arg[] = []
  for (const item of value) {
    const fit = fittingOne(op, arg, position, item, positional)
    if (fit === undefined) return undefined
    list.push(fit)
  }
  return list
}

/** Whether a value is a SymInt or a SymFloat: rules that need its number read it, with a guard. */
const isSymbolicNumber = (value: unknown): boolean => isSymbolic(value) && value[SYMBOLIC] !== 'bool'

/** A value that dispatch passes on as it is. */
const passedOn = (value: unknown): Arg => value as Arg

/** A complex number as a tensor without dimensions: as exact as the first tensor of the call is. Undefined where no operator takes complex numbers. */
function complexScalar(value: ComplexNumber, positional: readonly unknown[]): Tensor | undefined {
  const first = positional.find((arg): arg is Tensor => arg instanceof Tensor)
  const dtype = first === undefined ? 'complex128' : complexDType(dtypeInfo[first.dtype].differentiable ? first.dtype : getDefaultDtype())
  return dispatchState.complexNumber?.(value, dtype)
}

/** {@link fitting} for one value, or for one of a list. */
function fittingOne(op: OpDef, arg: SchemaArgument, position: number, value: unknown, positional: readonly unknown[]): Arg | undefined {
  switch (arg.type.base) {
    case 'Tensor':
      if (value instanceof Tensor) return value
      if (takesNumber(op, position) && (typeof value === 'number' || typeof value === 'boolean')) return Number(value)
      if (takesNumber(op, position) && isSymbolicNumber(value)) return passedOn(value)
      if (takesNumber(op, position) && isComplexNumber(value)) return complexScalar(value, positional)
      break
    case 'Scalar':
      if (typeof value === 'number' || typeof value === 'boolean') return value
      if (isComplexNumber(value)) return complexScalar(value, positional)
      if (isSymbolicNumber(value)) return passedOn(value)
      break
    case 'int':
      if (typeof value !== 'number') {
        if (arg.type.isSize && isSymbolicSize(value)) return value
        break
      }
      if (Number.isSafeInteger(value)) return value
      // The ends of a slice may be anywhere: Infinity, or PyTorch's 2^63 - 1, is the end of the tensor.
      if ((arg.name === 'start' || arg.name === 'end') && Math.abs(value) > Number.MAX_SAFE_INTEGER) return Math.sign(value) * Number.MAX_SAFE_INTEGER
      break
    case 'float':
      if (typeof value === 'number') return value
      if (isSymbolicNumber(value)) return passedOn(value)
      break
    case 'bool':
      if (typeof value === 'boolean') return value
      break
    case 'str':
      if (typeof value === 'string') return value
      break
    case 'ScalarType':
      if (namesDType(value)) return value
      break
    case 'Generator':
      if (value instanceof Generator) return passedOn(value)
      break
    default:
      if (isComplexNumber(value)) return complexScalar(value, positional)
      // `any`: the rule checks it, and dispatch passes it on as it is.
      return passedOn(value)
  }
  return undefined
}

/** The name of an argument that this value fits and whose value fits here; null if there is none. */
function swappedWith(op: OpDef, arg: SchemaArgument, position: number, value: unknown, positional: readonly unknown[]): string | null {
  const other = op.schema.args.findIndex(
    (one, i) =>
      i > position &&
      i < positional.length &&
      one.type.base !== 'any' &&
      fitting(op, one, i, value, positional) !== undefined &&
      fitting(op, arg, position, positional[i], positional) !== undefined &&
      fitting(op, one, i, positional[i], positional) === undefined,
  )
  return op.schema.args[other]?.name ?? null
}

const WORDS: Readonly<Record<string, string>> = {
  Tensor: 'a Tensor',
  Scalar: 'a number',
  int: 'an integer',
  float: 'a number',
  bool: 'true or false',
  str: 'a string',
  Generator: 'a Generator (torch.Generator)',
}

function wrong(op: OpDef, arg: SchemaArgument, position: number, value: unknown, positional: readonly unknown[]): Error {
  if (isSymbolicSize(value))
    return new NumbersNeeded(`argument '${arg.name}' of ${op.qualname} must be a number, got the symbolic size ${value.toString()}.`)
  if (arg.type.base === 'ScalarType') return new ArgumentError(`${op.qualname}: argument '${arg.name}': ${notADType(value)}`)
  const expected = arg.type.list
    ? `an array of ${arg.type.base === 'Tensor' ? 'Tensors' : 'integers'}`
    : takesNumber(op, position)
      ? 'a Tensor or a number'
      : arg.type.base === 'int' && Number.isInteger(value)
        ? 'an integer between -(2^53 - 1) and 2^53 - 1'
        : (WORDS[arg.type.base] ?? arg.type.base)
  const other = swappedWith(op, arg, position, value, positional)
  const hint =
    other === null
      ? argumentHint(op.qualname, arg.type, value)
      : ` Swap '${arg.name}' and '${other}': the order is ${op.schema.args.map((one) => one.name).join(', ')}.`
  return new ArgumentError(`${op.qualname}: argument '${arg.name}' must be ${expected}, got ${valueText(value)}.${hint}`)
}
