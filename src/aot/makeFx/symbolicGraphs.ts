// Graphs of symbolic traces: which symbols their inputs have, and what the trace has asked of them.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkArray, checkCount, valueText } from '../../protocol/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import type { ShapeEnv, SymInt, SymbolExpr } from '../../symbols/index.ts'
import { Tensor } from '../../tensor/index.ts'

const installed: { newShapeEnv: (() => ShapeEnv) | null } = { newShapeEnv: null }

/** Gives symbolic traces their expressions, which are loaded with the entries that need them; see src/install/symbols.ts. */
export function installSymbols(newShapeEnv: () => ShapeEnv): void {
  installed.newShapeEnv = newShapeEnv
}

/** The ShapeEnv of a new trace. Throws UnsupportedError if no entry has loaded symbols. */
export function newShapeEnv(): ShapeEnv {
  if (installed.newShapeEnv === null)
    throw new UnsupportedError("makeFx: symbolic sizes are not loaded; import makeFx from 'tensorfx/aot', which brings them.")
  return installed.newShapeEnv()
}

/** An input of a symbolic trace: the sizes, the strides and the offset of a tensor, or a number alone. */
type Input = readonly (SymInt | number)[]

interface SymbolicGraph {
  readonly env: ShapeEnv
  readonly inputs: readonly Input[]
}

const known = new WeakMap<GraphModule, SymbolicGraph>()

/** Notes what a symbolic trace has learnt, for {@link evalGuards} and {@link bindSymbols}. */
export function noteSymbols(gm: GraphModule, graph: SymbolicGraph): void {
  known.set(gm, graph)
}

/** Whether a graph comes from a symbolic trace. */
export const isSymbolicGraph = (gm: GraphModule): boolean => known.has(gm)

/**
 * The {@link ShapeEnv} of the trace that made `gm`: its symbols with their ranges, and the guards. PyTorch's `gm.shape_env`.
 *
 * @throws ArgumentError if `gm` is no graph of `makeFx` with `tracingMode: 'symbolic'`.
 */
export function shapeEnvOf(gm: GraphModule): ShapeEnv {
  checkCount('shapeEnvOf', arguments, 1)
  return graphOf('shapeEnvOf', gm).env
}

function graphOf(where: string, gm: GraphModule): SymbolicGraph {
  checkGraphModule(where, gm)
  const graph = known.get(gm)
  if (graph === undefined)
    throw new ArgumentError(`${where}: '${gm.className}' has no symbols; trace the function with makeFx(fn, { tracingMode: 'symbolic' }).`)
  return graph
}

/** The numbers of an input, in the order of {@link Input}. */
const numbersOf = (value: unknown): readonly number[] =>
  value instanceof Tensor ? [...value.sizes, ...value.steps, value.offset] : typeof value === 'number' ? [value] : []

/**
 * The value of each symbol of a symbolic graph for these arguments, by its name (`s0`). PyTorch's `ShapeEnv.bind_symbols`.
 *
 *     bindSymbols(makeFx((x) => x.sin(), { tracingMode: 'symbolic' })(torch.zeros([3, 4])), [torch.zeros([5, 7])]) // Map { s0 => 5, s1 => 7 }
 *
 * @throws ArgumentError if `gm` is no graph of a symbolic trace, or for as many tensors and numbers, and of such ranks, as it does not take.
 */
export function bindSymbols(gm: GraphModule, args: readonly unknown[]): ReadonlyMap<string, number> {
  checkCount('bindSymbols', arguments, 2)
  return new Map([...valuesOf('bindSymbols', graphOf('bindSymbols', gm), args)].map(([symbol, value]) => [symbol.name, value]))
}

/** The tensors and numbers among the arguments, as a symbolic trace counts them. */
const inputsOf = (args: readonly unknown[]): readonly unknown[] =>
  treeLeaves(args).filter((leaf) => leaf instanceof Tensor || typeof leaf === 'number')

/** Pairs of what the trace has, and what the arguments have, in each place. */
function places(where: string, { inputs }: SymbolicGraph, args: readonly unknown[]): readonly (readonly [traced: SymInt | number, given: number])[] {
  checkArray(where, 'args', args)
  const given = inputsOf(args)
  if (given.length !== inputs.length) throw new ArgumentError(`${where}: the graph takes ${inputs.length} tensors and numbers, got ${given.length}.`)
  return inputs.flatMap((input, i) => {
    const numbers = numbersOf(given[i])
    if (numbers.length !== input.length)
      throw new ArgumentError(
        `${where}: argument ${i} is not of the kind, or has not as many dimensions, as the one that was traced: ${valueText(given[i])}.`,
      )
    return input.map((traced, k) => [traced, numbers[k] ?? NaN] as const)
  })
}

function valuesOf(where: string, graph: SymbolicGraph, args: readonly unknown[]): ReadonlyMap<SymbolExpr, number> {
  const values = new Map<SymbolExpr, number>()
  for (const [traced, given] of places(where, graph, args)) {
    const expr = typeof traced === 'number' ? null : traced.ownExpr
    if (expr?.op === 'symbol' && !values.has(expr)) values.set(expr, given)
  }
  return values
}

/**
 * Whether a symbolic graph computes for these arguments what its function does: whether their sizes, strides and offsets are what the trace relied on. Dtypes and values are not
 * compared; `checkGuards` compares all. PyTorch's `ShapeEnv.evaluate_guards_for_args`.
 *
 * @throws ArgumentError as {@link bindSymbols} does.
 */
export function evalGuards(gm: GraphModule, args: readonly unknown[]): boolean {
  checkCount('evalGuards', arguments, 2)
  return failedGuard('evalGuards', gm, args) === null
}

/** What does not hold for these arguments of what a symbolic trace relied on, as text; null if all holds. */
export function failedGuard(where: string, gm: GraphModule, args: readonly unknown[]): string | null {
  const graph = graphOf(where, gm)
  const values = valuesOf(where, graph, args)
  for (const [traced, given] of places(where, graph, args)) {
    const wanted = typeof traced === 'number' ? traced : graph.env.valueAt(traced.ownExpr, values)
    if (wanted !== given)
      return `a size, stride or number is ${given} in the place of ${typeof traced === 'number' ? traced : `${traced.toString()}, which is ${wanted}`}`
  }
  return graph.env.failedAt(values)
}
