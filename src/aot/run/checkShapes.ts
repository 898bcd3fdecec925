// checkShapes: every shape error of a model, found without running it. Sizes may have names; the graph is run on fake tensors, with several numbers for each name.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { FakeTensorMode, withMode } from '../../dispatch/index.ts'
import { GraphModule, symbolicTrace } from '../../fx/index.ts'
import type { Node } from '../../fx/index.ts'
import { originOf } from '../../fx/graph/origin.ts'
import type { Module } from '../../module/index.ts'
import { codeFrame } from '../../provenance/index.ts'
import type { Frame } from '../../provenance/index.ts'
import { isDType } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { empty } from '../../ops/index.ts'
import { checkArgument, checkCount, isPlainObject, nearest, valueText } from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { Tensor, dtypes } from '../../tensor/index.ts'
import { FakeTensorProp } from './fakeTensorProp.ts'
import { primeAfter } from './primes.ts'

/** A size: a number, a name that stands for any number, or a multiple of one, `'2*h'`. */
export type NamedSize = number | string

/** The shape of an input; with its dtype, if that is not float32. */
export type InputShape = readonly NamedSize[] | { readonly shape: readonly NamedSize[]; readonly dtype: DType }

/** A node whose inputs have shapes that it cannot take. */
export interface ShapeIssue {
  readonly node: Node
  /** What the operator says about the shapes. */
  readonly message: string
  /** The sizes for which it happens, if it does not happen for all: `batch = 97`. */
  readonly when: string | null
  /** Where the user wrote the operation; null if unknown. */
  readonly frame: Frame | null
}

/** What {@link checkShapes} found. It prints as a report. */
export class ShapeReport {
  /** The errors, in the order of the graph. What depends on a wrong value is not checked. */
  readonly errors: readonly ShapeIssue[]
  /** The shape of each node's value that is a tensor, in terms of the names; `?` for sizes that are not a simple function of one of them. */
  readonly shapes: Readonly<Record<string, string>>
  /** Nodes that could not be checked, because their shapes depend on data, or because they need a wrong value. */
  readonly unchecked: readonly string[]

  constructor(errors: readonly ShapeIssue[], shapes: Readonly<Record<string, string>>, unchecked: readonly string[]) {
    this.errors = errors
    this.shapes = shapes
    this.unchecked = unchecked
  }

  /** Whether there are no errors. */
  get ok(): boolean {
    return this.errors.length === 0
  }

  toString(): string {
    if (this.ok)
      return `Shapes fit.\n${Object.entries(this.shapes)
        .map(([name, shape]) => `  ${name}: ${shape}`)
        .join('\n')}`
    const parts = this.errors.map(({ node, message, when, frame }) => {
      const code = frame === null ? null : codeFrame(frame)
      const where = frame === null ? '' : `\n  at ${frame.fn} (${frame.file}:${frame.line}:${frame.column})${code === null ? '' : `\n\n${code}`}`
      return `${node.name}${when === null ? '' : ` (with ${when})`}: ${message}${where}`
    })
    return `${this.errors.length === 1 ? '1 shape error' : `${this.errors.length} shape errors`}:\n\n${parts.join('\n\n')}`
  }
}

/** How often a model with named sizes runs. */
const RUNS = 3

/** The numbers that the first names stand for, one for each run. They are primes, so that few sizes are equal by chance. */
const NUMBERS: readonly (readonly number[])[] = [
  [97, 149, 191],
  [101, 139, 181],
  [103, 137, 179],
  [107, 157, 211],
  [109, 151, 199],
  [113, 163, 197],
  [127, 167, 193],
  [131, 173, 223],
]

/** Numbers for `count` names. Those of a name grow from run to run in a proportion of their own, so that no name is a multiple of another plus a constant. */
function numbersFor(count: number): readonly (readonly number[])[] {
  const found = NUMBERS.slice(0, count)
  const proportionOf = ([a = 0, b = 0, c = 0]: readonly number[]): number => (c - a) / (b - a)
  const proportions = new Set(found.map(proportionOf))
  let last = 223
  while (found.length < count) {
    const numbers: number[] = []
    while (numbers.length < RUNS) numbers.push((last = primeAfter(last)))
    if (proportions.has(proportionOf(numbers))) continue
    proportions.add(proportionOf(numbers))
    found.push(numbers)
  }
  return found
}

/** Stands for a value that is not known, because its node failed. */
const UNKNOWN: unique symbol = Symbol('unknown')

class Checker extends FakeTensorProp {
  readonly failures = new Map<Node, Error>()
  readonly shapes = new Map<Node, readonly number[]>()
  readonly skipped = new Set<Node>()

  override runNode(node: Node): unknown {
    if (node.op === 'output') return null
    if (node.allInputNodes.some((input) => this.env.get(input) === UNKNOWN)) {
      this.skipped.add(node)
      return UNKNOWN
    }
    try {
      const value = super.runNode(node)
      if (value instanceof Tensor) this.shapes.set(node, value.shape)
      return value
    } catch (error) {
      if (!(error instanceof Error)) throw error
      // Only what an operator says about its arguments is an error of the model.
      if (error instanceof ShapeError || error instanceof ArgumentError) this.failures.set(node, error)
      else this.skipped.add(node)
      return UNKNOWN
    }
  }
}

interface Input {
  readonly sizes: readonly NamedSize[]
  readonly dtype: DType
}

function readInput(name: string, given: unknown): Input {
  const sizes: unknown = isPlainObject(given) ? given['shape'] : given
  const bad = Array.isArray(sizes) ? sizes.findIndex((size) => !isSize(size)) : -1
  if (!Array.isArray(sizes) || bad >= 0)
    throw new ArgumentError(
      `checkShapes: the shape of '${name}' must be an array of numbers and names such as ['batch', 3, '2*h'], got ${valueText(bad >= 0 && Array.isArray(sizes) ? sizes[bad] : sizes)}.`,
    )
  const dtype = isPlainObject(given) ? given['dtype'] : undefined
  if (dtype !== undefined && !isDType(dtype))
    throw new ArgumentError(`checkShapes: the dtype of '${name}' must be one of ${dtypes.join(', ')}, got ${valueText(dtype)}.`)
  return { sizes, dtype: dtype ?? 'float32' }
}

const isSize = (value: unknown): value is NamedSize =>
  typeof value === 'number' ? Number.isInteger(value) && value >= 0 : typeof value === 'string' && /^(?:\d+\*)?[A-Za-z_]\w*$/.test(value)

/** The factor and the name of a size that is not a number. */
function nameIn(size: string): readonly [factor: number, name: string] {
  const [factor, name] = size.split('*')
  return name === undefined ? [1, size] : [Number(factor), name]
}

/**
 * Checks the shapes of a model for inputs of given shapes, and reports every error with the user's line. Nothing is computed: the operators' own shape rules run on fake
 * tensors. A size may have a name, which then stands for any number; the report gives the shapes of all values in terms of the names.
 *
 *     const report = checkShapes(model, { x: ['batch', 3, 224, 224], tokens: { shape: ['batch', 16], dtype: 'int64' } })
 *     if (!report.ok) console.log(String(report))
 *
 * @param model - a module, a function, or a GraphModule; it is traced, and does not change.
 * @param inputs - the shapes of its inputs, by name. Inputs with a default may be left out.
 * @throws ArgumentError for inputs that the model does not have or that are missing, and TraceError if it cannot be traced.
 */
export function checkShapes(model: Module | TargetFunction, inputs: Readonly<Record<string, InputShape>>): ShapeReport {
  checkCount('checkShapes', arguments, 2)
  checkArgument(isPlainObject(inputs), 'checkShapes', 'inputs', 'an object of shapes by input', inputs)
  const gm = model instanceof GraphModule ? model.deepCopy({ shareTensors: true }) : symbolicTrace(model)
  const placeholders = gm.graph.findNodes({ op: 'placeholder' })
  const known = placeholders.map((node) => node.target)
  for (const name of Object.keys(inputs)) {
    if (known.includes(name)) continue
    const hint = nearest(name, known)
    throw new ArgumentError(
      `checkShapes: the model has no input '${name}'${hint === null ? '' : `; did you mean '${hint}'?`} Its inputs are ${known.join(', ') || 'none'}.`,
    )
  }
  const given = placeholders.map((node) => {
    const shape = inputs[node.target]
    if (shape === undefined && node.args.length === 0)
      throw new ArgumentError(`checkShapes: input '${node.target}' needs a shape: { ${node.target}: ['batch', 3] }.`)
    return shape === undefined ? null : readInput(node.target, shape)
  })
  const names = [...new Set(given.flatMap((input) => input?.sizes.flatMap((size) => (typeof size === 'string' ? [nameIn(size)[1]] : [])) ?? []))]
  const numbers = numbersFor(names.length)
  const runs = Array.from({ length: names.length === 0 ? 1 : RUNS }, (_, k) => {
    const values = new Map(names.map((name, i) => [name, numbers[i]?.[k] ?? 1]))
    return { values, checker: run(gm, given, values) }
  })
  return reportOf(gm, names, runs)
}

interface Run {
  readonly values: ReadonlyMap<string, number>
  readonly checker: Checker
}

function run(gm: GraphModule, given: readonly (Input | null)[], values: ReadonlyMap<string, number>): Checker {
  const mode = new FakeTensorMode()
  const checker = new Checker(gm, mode)
  const tensors = withMode(mode, () =>
    given.map((input) => {
      if (input === null) return undefined
      const sizes = input.sizes.map((size) => (typeof size === 'number' ? size : nameIn(size)[0] * (values.get(nameIn(size)[1]) ?? 1)))
      return empty(sizes, { dtype: input.dtype })
    }),
  )
  checker.propagateAll(...tensors)
  return checker
}

function reportOf(gm: GraphModule, names: readonly string[], runs: readonly Run[]): ShapeReport {
  const errors: ShapeIssue[] = []
  const shapes: Record<string, string> = {}
  const unchecked: string[] = []
  for (const node of gm.graph.nodes) {
    const failing = runs.filter(({ checker }) => checker.failures.has(node))
    const [first] = failing
    if (first !== undefined) {
      const numbers = names.map((name) => `${name} = ${first.values.get(name)}`).join(', ')
      const when = names.length > 0 && (failing.length < runs.length || mentions(first, node)) ? numbers : null
      errors.push({ node, message: first.checker.failures.get(node)?.message ?? '', when, frame: originOf(node) })
    } else if (runs.some(({ checker }) => checker.skipped.has(node))) unchecked.push(node.name)
    const found = runs.map(({ checker }) => checker.shapes.get(node))
    const [one] = found
    if (one !== undefined && found.every((shape) => shape !== undefined))
      shapes[node.name] = `[${one
        .map((_, i) =>
          sizeText(
            names,
            runs,
            found.map((shape) => shape?.[i] ?? 0),
          ),
        )
        .join(', ')}]`
  }
  return new ShapeReport(errors, shapes, unchecked)
}

/** Whether the message of an error has a number that a name stands for. */
const mentions = ({ values, checker }: Run, node: Node): boolean => {
  const numbers = new Set((checker.failures.get(node)?.message ?? '').match(/\d+/g))
  return [...values.values()].some((value) => numbers.has(String(value)))
}

/** A size in terms of the names: a number, `batch`, `2*batch + 1`, `batch*h`, or `?`. */
function sizeText(names: readonly string[], runs: readonly Run[], sizes: readonly number[]): string {
  const [first = 0, second = first] = sizes
  if (sizes.every((size) => size === first)) return String(first)
  const valuesOf = (name: string): number[] => runs.map(({ values }) => values.get(name) ?? 0)
  for (const name of names) {
    const values = valuesOf(name)
    const [one = 0, other = 0] = values
    const factor = (second - first) / (other - one)
    const rest = first - factor * one
    if (!Number.isInteger(factor) || factor === 0 || !sizes.every((size, i) => size === factor * (values[i] ?? 0) + rest)) continue
    return `${factor === 1 ? '' : `${factor}*`}${name}${rest === 0 ? '' : rest > 0 ? ` + ${rest}` : ` - ${-rest}`}`
  }
  for (const [i, a] of names.entries())
    for (const b of names.slice(i)) {
      const products = valuesOf(a).map((value, k) => value * (valuesOf(b)[k] ?? 0))
      const factor = first / (products[0] ?? 1)
      if (Number.isInteger(factor) && sizes.every((size, k) => size === factor * (products[k] ?? 0)))
        return `${factor === 1 ? '' : `${factor}*`}${a}*${b}`
    }
  return '?'
}
