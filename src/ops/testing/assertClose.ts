// torch.testing.assertClose: whether values are close, with PyTorch's report of how they differ.
import { ArgumentError, NotCloseError } from '../../errors/index.ts'
import type { DType } from '../../kernels/index.ts'
import { promoteTypes } from '../../kernels/index.ts'
import { checkCount, checkOptions, isFunction, isPlainObject, pyFloat, valueText } from '../../protocol/index.ts'
import { Tensor, exactElements, sameShape } from '../../tensor/index.ts'
import { isClose } from './compare.ts'
import { abs, div, sub } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { contiguous } from '../view/reshape.ts'

/** Options of {@link assertClose}. */
export interface AssertCloseOptions {
  /** Relative tolerance; give it together with `atol`. Default: by dtype, 1.3e-6 for float32, and 0 for integers. */
  readonly rtol?: number | null
  /** Absolute tolerance; give it together with `rtol`. Default: by dtype, 1e-5 for float32, and 0 for integers. */
  readonly atol?: number | null
  /** Whether NaN equals NaN. Default false. */
  readonly equalNan?: boolean
  /** Whether dtypes must agree. Default true; otherwise both are promoted. */
  readonly checkDtype?: boolean
  /** Whether strides must agree. Default false. */
  readonly checkStride?: boolean
  /** Without effect: there is one device. */
  readonly checkDevice?: boolean
  /** Without effect: there is one layout. */
  readonly checkLayout?: boolean
  /** Without effect: a Parameter is a Tensor. */
  readonly allowSubclasses?: boolean
  /** The text of the error, or a function that makes it of the generated text. */
  readonly msg?: string | ((generated: string) => string) | null
}

interface Tolerances {
  readonly rtol: number
  readonly atol: number
}

const EXACT: Tolerances = { rtol: 0, atol: 0 }
const BY_DTYPE: Readonly<Partial<Record<DType, Tolerances>>> = {
  float16: { rtol: 1e-3, atol: 1e-5 },
  bfloat16: { rtol: 1.6e-2, atol: 1e-5 },
  float32: { rtol: 1.3e-6, atol: 1e-5 },
  float64: { rtol: 1e-7, atol: 1e-7 },
}

/** The looser tolerances of the dtypes. */
function tolerancesOf(...dtypes: readonly DType[]): Tolerances {
  const all = dtypes.map((dtype) => BY_DTYPE[dtype] ?? EXACT)
  return { rtol: Math.max(...all.map(({ rtol }) => rtol)), atol: Math.max(...all.map(({ atol }) => atol)) }
}

interface Rules {
  /** The given tolerances; null for those of the dtypes. */
  readonly given: Tolerances | null
  readonly equalNan: boolean
  readonly checkDtype: boolean
  readonly checkStride: boolean
  readonly fail: (message: string, path: readonly (number | string)[]) => never
}

type Path = readonly (number | string)[]

/** A difference, and where it is. */
interface Difference {
  readonly value: string
  /** Null for numbers. */
  readonly index: string | null
}

function differenceText(kind: 'absolute' | 'relative', { value, index }: Difference, tolerance: number, exact: boolean): string {
  const what =
    index === null
      ? `${kind === 'absolute' ? 'Absolute' : 'Relative'} difference: ${value}`
      : `Greatest ${kind} difference: ${value} at index ${index}`
  return exact ? what : `${what} (up to ${tolerance === 0 ? '0' : pyFloat(tolerance)} allowed)`
}

function report(what: string, extra: string, absolute: Difference, relative: Difference, { rtol, atol }: Tolerances): string {
  const exact = rtol === 0 && atol === 0
  return [
    `${what} are not ${exact ? 'equal' : 'close'}!`,
    '',
    extra,
    differenceText('absolute', absolute, atol, exact),
    differenceText('relative', relative, rtol, exact),
  ].join('\n')
}

/** A tuple as Python prints it. */
const tuple = (numbers: readonly number[]): string => `(${numbers.join(', ')}${numbers.length === 1 ? ',' : ''})`

/** The index of the element at a position in a tensor of a shape. */
function indexOf(position: number, shape: readonly number[]): readonly number[] {
  let rest = position
  return shape
    .toReversed()
    .map((size) => {
      const at = rest % size
      rest = Math.floor(rest / size)
      return at
    })
    .toReversed()
}

/** The greatest number and its position; NaN is greater than all. */
function greatest(values: readonly number[]): { readonly value: number; readonly at: number } {
  let at = 0
  for (let i = 1; i < values.length; i++) {
    const [value, best] = [values[i] ?? 0, values[at] ?? 0]
    if (Number.isNaN(best)) break
    if (value > best || Number.isNaN(value)) at = i
  }
  return { value: values[at] ?? 0, at }
}

function compareTensors(actual: Tensor, expected: Tensor, path: Path, rules: Rules): void {
  const attribute = (name: string, a: string, b: string): never => rules.fail(`The values for attribute '${name}' do not match: ${a} != ${b}.`, path)
  if (!sameShape(actual.symSizes, expected.symSizes))
    attribute('shape', `torch.Size([${actual.sizes.join(', ')}])`, `torch.Size([${expected.sizes.join(', ')}])`)
  if (rules.checkDtype && actual.dtype !== expected.dtype) attribute('dtype', `torch.${actual.dtype}`, `torch.${expected.dtype}`)
  if (rules.checkStride && !sameShape(actual.steps, expected.steps)) attribute('stride()', tuple(actual.steps), tuple(expected.steps))
  const tolerances = rules.given ?? tolerancesOf(actual.dtype, expected.dtype)
  const common = promoteTypes(actual.dtype, expected.dtype)
  const elements = (t: Tensor) => exactElements(contiguous(to(t.detach(), common)))
  const [values, wanted] = [elements(actual), elements(expected)]
  const matches = Array.from(values, (value, i) => isClose(value, wanted[i] ?? NaN, tolerances.rtol, tolerances.atol, rules.equalNan))
  const mismatches = matches.filter((match) => !match).length
  if (mismatches === 0) return
  const isFloating = actual.isFloatingPoint() || expected.isFloatingPoint()
  // In the dtypes that PyTorch computes the differences in, as their digits are part of the text.
  const wide = (t: Tensor): Tensor => to(t.detach(), isFloating ? common : 'int64')
  const difference = abs(sub(wide(actual), wide(expected)))
  const numbers = (t: Tensor): readonly number[] => Array.from(exactElements(contiguous(t)), (value, i) => (matches[i] === true ? 0 : Number(value)))
  const [absolute, relative] = [numbers(difference), numbers(div(difference, abs(wide(expected))))]
  const at = (found: { readonly value: number; readonly at: number }, text: (value: number) => string): Difference => ({
    value: text(found.value),
    index: tuple(indexOf(found.at, actual.sizes)),
  })
  const extra = `Mismatched elements: ${mismatches} / ${values.length} (${((100 * mismatches) / values.length).toFixed(1)}%)`
  rules.fail(report('Tensor-likes', extra, at(greatest(absolute), isFloating ? pyFloat : String), at(greatest(relative), pyFloat), tolerances), path)
}

function compareNumbers(actual: number | bigint, expected: number | bigint, path: Path, rules: Rules): void {
  const whole = [actual, expected].every((value) => typeof value === 'bigint' || Number.isInteger(value))
  const tolerances = rules.given ?? (whole ? EXACT : tolerancesOf('float64'))
  if (isClose(actual, expected, tolerances.rtol, tolerances.atol, rules.equalNan)) return
  const text = (value: number | bigint): string => (whole ? String(value) : pyFloat(Number(value)))
  const difference = Math.abs(Number(actual) - Number(expected))
  const absolute = { value: text(difference), index: null }
  const relative = { value: pyFloat(Number(expected) === 0 ? Infinity : difference / Math.abs(Number(expected))), index: null }
  rules.fail(report('Scalars', `Expected ${text(expected)} but got ${text(actual)}.`, absolute, relative, tolerances), path)
}

const isSequence = (value: unknown): value is ArrayLike<unknown> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))
const isMapping = (value: unknown): value is ReadonlyMap<unknown, unknown> | Readonly<Record<string, unknown>> =>
  value instanceof Map || isPlainObject(value)
const entriesOf = (mapping: ReadonlyMap<unknown, unknown> | Readonly<Record<string, unknown>>): ReadonlyMap<string, unknown> =>
  new Map([...(mapping instanceof Map ? mapping : Object.entries(mapping))].map(([key, value]) => [String(key), value]))
const isNumber = (value: unknown): value is number | bigint => typeof value === 'number' || typeof value === 'bigint'
const word = (value: unknown): string =>
  value === null || value === undefined ? 'None' : value === true ? 'True' : value === false ? 'False' : valueText(value)

function compare(actual: unknown, expected: unknown, path: Path, rules: Rules): void {
  if (actual instanceof Tensor && expected instanceof Tensor) return compareTensors(actual, expected, path, rules)
  if (isSequence(actual) && isSequence(expected)) {
    if (actual.length !== expected.length) rules.fail(`The length of the sequences mismatch: ${actual.length} != ${expected.length}`, path)
    for (let i = 0; i < actual.length; i++) compare(actual[i], expected[i], [...path, i], rules)
    return
  }
  if (isMapping(actual) && isMapping(expected)) {
    const [own, wanted] = [entriesOf(actual), entriesOf(expected)]
    const [missing, additional] = [[...wanted.keys()].filter((key) => !own.has(key)), [...own.keys()].filter((key) => !wanted.has(key))]
    const list = (keys: readonly string[]): string =>
      `[${keys
        .toSorted()
        .map((key) => `'${key}'`)
        .join(', ')}]`
    if (missing.length + additional.length > 0)
      rules.fail(
        `The keys of the mappings do not match:\nMissing keys in the actual mapping: ${list(missing)}\nAdditional keys in the actual mapping: ${list(additional)}`,
        path,
      )
    for (const key of [...own.keys()].toSorted()) compare(own.get(key), wanted.get(key), [...path, key], rules)
    return
  }
  if (actual === null || expected === null || actual === undefined || expected === undefined) {
    if ((actual ?? null) !== (expected ?? null)) rules.fail(`None mismatch: ${word(actual)} is not ${word(expected)}`, path)
    return
  }
  if (typeof actual === 'boolean' && typeof expected === 'boolean') {
    if (actual !== expected) rules.fail(`Booleans mismatch: ${word(actual)} is not ${word(expected)}`, path)
    return
  }
  if (isNumber(actual) && isNumber(expected)) return compareNumbers(actual, expected, path, rules)
  throw new ArgumentError(
    `torch.testing.assert_close: cannot compare ${valueText(actual)} with ${valueText(expected)}; pass two tensors, numbers, booleans or nulls, or arrays, Maps or objects of them.${placeOf(path)}`,
  )
}

const placeOf = (path: Path): string =>
  path.length === 0
    ? ''
    : `\n\nThe failure occurred for item ${path.map((item) => (typeof item === 'number' ? `[${item}]` : `['${item}']`)).join('')}`

/**
 * Throws unless `actual` and `expected` are close: |actual - expected| <= atol + rtol * |expected| for each element, with equal shapes and dtypes. Arrays, Maps and objects are compared item by item.
 * Without `rtol` and `atol` the tolerances are those of the dtypes. PyTorch's `torch.testing.assert_close`, with its text.
 *
 * Throws NotCloseError for values that differ, ArgumentError for values that cannot be compared and for only one of `rtol` and `atol`.
 */
export function assertClose(actual: unknown, expected: unknown, options: AssertCloseOptions = {}): void {
  checkCount('torch.testing.assertClose', arguments, 3)
  const where = 'torch.testing.assert_close'
  checkOptions(where, options, {
    rtol: true,
    atol: true,
    equalNan: 'boolean',
    checkDtype: 'boolean',
    checkStride: 'boolean',
    checkDevice: 'boolean',
    checkLayout: 'boolean',
    allowSubclasses: 'boolean',
    msg: true,
  })
  const { rtol = null, atol = null, equalNan = false, checkDtype = true, checkStride = false, msg = null } = options
  if ((rtol === null) !== (atol === null))
    throw new ArgumentError(`${where}: rtol and atol must both be given or both be left out, got rtol=${rtol} and atol=${atol}.`)
  for (const [name, value] of Object.entries({ rtol, atol }))
    if (value !== null && !(typeof value === 'number' && value >= 0))
      throw new ArgumentError(`${where}: ${name} must be a number of at least 0, got ${valueText(value)}.`)
  const fail = (message: string, path: Path): never => {
    const generated = message + placeOf(path)
    throw new NotCloseError(isFunction(msg) ? msg(generated) : (msg ?? generated))
  }
  compare(actual, expected, [], { given: rtol === null || atol === null ? null : { rtol, atol }, equalNan, checkDtype, checkStride, fail })
}
