// The sizes of a graph that may differ from call to call, in a script: which of its inputs have them, what must hold of them, and inputs of other sizes.
import { recordSymbolicSizes } from '../../aot/run/symbolicSizes.ts'
import type { SizedInput } from '../../aot/run/symbolicSizes.ts'
import { anySize } from '../../dynamo/index.ts'
import type { SizeRange } from '../../dynamo/index.ts'
import { ArgumentError, present } from '../../errors/index.ts'
import { isTensorRecord, recordedValue } from '../../fx/graph/nodeValue.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { specText } from '../../fx/text/annotation.ts'
import { arange, contiguous, indexSelect, permute } from '../../ops/index.ts'
import { isSymbolic, isSymbolicSize } from '../../protocol/index.ts'
import { SymInt, boundsAsNumbers } from '../../symbols/index.ts'
import type { ShapeEnv, SymbolExpr } from '../../symbols/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { DynamicDim } from '../files/inputReader.ts'
import type { SizesOfInput } from '../files/inputWriter.ts'

/** What a script says of the sizes of its graph. */
export interface GraphSizes {
  /** By placeholder. */
  readonly inputs: readonly (SizesOfInput | null)[]
  /** What must hold of them, as lines for a reader. */
  readonly notes: readonly string[]
}

const placeholdersOf = (gm: GraphModule): readonly Node[] => gm.graph.findNodes({ op: 'placeholder' })

/** All sizes of a tensor that can be symbols. */
const allSizes = ({ sizes }: Tensor): SizedInput => ({ dims: sizes.map((size) => (size >= anySize.min ? anySize : null)) })

/** Which positions of an input are sizes, by the record of its placeholder. The minifier may have given it fewer dimensions than that tells, and sizes that are constants in any graph. */
function sizedInputOf(node: Node, input: unknown): SizedInput {
  const value = recordedValue(node)
  if (isSymbolic(value)) return 'size'
  if (!(input instanceof Tensor) || !isTensorRecord(value) || ![...value.shape, ...(value.strides ?? [])].some(isSymbolicSize)) return null
  if (value.shape.length !== input.ndim) return allSizes(input)
  return { dims: value.shape.map((size, dim) => ((input.sizes[dim] ?? 0) >= anySize.min ? rangeOf(size, input.sizes[dim] ?? 0) : null)) }
}

/** The values that a size may have, as its program has marked it; null for a number. The minifier may have given the input a size outside of them. */
function rangeOf(size: unknown, present: number): SizeRange | null {
  if (!(size instanceof SymInt)) return isSymbolicSize(size) ? anySize : null
  const { min, max } = boundsAsNumbers(size.env.boundsOf(size.expr))
  return min <= present && present <= max ? { min: Math.max(min, anySize.min), max } : anySize
}

/** The sizes of a graph for its script; null if it has none. Symbols are numbered anew, since a part of a graph has fewer of them. */
export function graphSizes(gm: GraphModule, inputs: readonly unknown[]): GraphSizes | null {
  const sized = placeholdersOf(gm).map((node, i) => sizedInputOf(node, inputs[i]))
  if (sized.every((one) => one === null)) return null
  const copy = gm.deepCopy({ shareTensors: true })
  const env = recordSymbolicSizes(copy, inputs, sized)
  const specs = 'problem' in env ? [] : placeholdersOf(copy).map((node) => specText(recordedValue(node)))
  return {
    inputs: sized.map((one, i) => (one === null ? null : { dynamic: dynamicOf(one), spec: specs[i] ?? null })),
    notes: 'problem' in env ? [] : [sizesText(env)],
  }
}

const dynamicOf = (sized: NonNullable<SizedInput>): readonly DynamicDim[] | 'size' =>
  sized === 'size'
    ? sized
    : sized.dims.flatMap((range, dim): readonly DynamicDim[] =>
        range === null ? [] : range.min === anySize.min && range.max === anySize.max ? [dim] : [{ dim, ...range }],
      )

/** The symbols that are not found to be something else, with their values in this run. */
const ownSymbols = (env: ShapeEnv): readonly (readonly [SymbolExpr, number])[] => [...env.values].filter(([symbol]) => !env.replacements.has(symbol))

/** `Sizes: s0 = 5, s1 = 3, with Mod(s0, 2) = 1.` */
export function sizesText(env: ShapeEnv): string {
  const sizes = ownSymbols(env).map(([symbol, value]) => `${symbol.name} = ${value}`)
  const guards = env.guardTexts()
  return `Sizes: ${sizes.join(', ')}${guards.length === 0 ? '' : `, with ${guards.join(', ')}`}.`
}

/**
 * Records the graph of a script with symbols for its sizes: those that the script names, or all of at least 2 if it names none.
 *
 * @throws ArgumentError if an operator has no rule for symbols.
 */
export function recordSizes(gm: GraphModule, inputs: readonly unknown[], sized: readonly SizedInput[]): ShapeEnv {
  const all = inputs.map((input): SizedInput => (input instanceof Tensor ? allSizes(input) : null))
  const env = recordSymbolicSizes(gm, inputs, sized.some((one) => one !== null) ? sized : all)
  if ('problem' in env) throw new ArgumentError(`--tracing-mode symbolic: the graph has no symbolic sizes: ${env.problem}`)
  return env
}

/**
 * The inputs with other values of some sizes: of each dimension that grows the elements are repeated in their order, so that what was special among them stays, and the rest of one that shrinks is left out.
 *
 * @throws ArgumentError for a symbol that the graph has not, and for sizes for which it is not.
 */
export function resizedInputs(gm: GraphModule, inputs: readonly unknown[], env: ShapeEnv, wanted: ReadonlyMap<string, number>): readonly unknown[] {
  const values = new Map(ownSymbols(env))
  const names = [...values.keys()].map(({ name }) => name)
  for (const [name, value] of wanted) {
    const symbol = [...values.keys()].find((known) => known.name === name)
    if (symbol === undefined) throw new ArgumentError(`--size ${name}=${value}: the graph has no size ${name}; it has ${names.join(', ') || 'none'}.`)
    values.set(symbol, value)
  }
  // Guards may name a symbol that was found to be another one later.
  for (const symbol of env.replacements.keys()) values.set(symbol, env.valueAt(env.replace(symbol), values))
  const failed = env.failedAt(values)
  if (failed !== null) throw new ArgumentError(`--size: the graph is not for these sizes, since '${failed}' does not hold. ${sizesText(env)}`)
  const numberOf = (size: unknown): number => {
    if (!isSymbolicSize(size)) return Number(size)
    const known = env.sizeOf(size)
    return typeof known === 'number' ? known : env.valueAt(known.expr, values)
  }
  return placeholdersOf(gm).map((node, i) => {
    const [input, value] = [inputs[i], recordedValue(node)]
    if (isSymbolic(value)) return numberOf(value)
    return input instanceof Tensor && isTensorRecord(value) ? resized(input, value.shape.map(numberOf)) : input
  })
}

/** A tensor of another shape in the same order of memory, with the elements of `tensor` over and over. */
function resized(tensor: Tensor, shape: readonly number[]): Tensor {
  if (shape.every((size, dim) => size === tensor.sizes[dim])) return tensor
  let result = tensor.detach()
  for (const [dim, size] of shape.entries()) result = indexSelect(result, dim, arange(size, { dtype: 'int64' }).remainder(tensor.sizes[dim] ?? 1))
  const inMemory = [...shape.keys()].toSorted((a, b) => present(tensor.steps[b], 'a stride') - present(tensor.steps[a], 'a stride'))
  const back = [...shape.keys()].map((dim) => inMemory.indexOf(dim))
  result = permute(contiguous(permute(result, inMemory)), back)
  result.requiresGrad = tensor.requiresGrad
  result.isParameter = tensor.isParameter
  return result
}
