// Assertions that a symbolic trace left for the time when the data is there, as nodes of its graph. PyTorch's torch.fx.passes.runtime_assert.
import { recordedValue } from '../../fx/graph/nodeValue.ts'
import { _assert, layoutReaders } from '../../fx/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkCount } from '../../protocol/index.ts'
import { SymBool, SymFloat, SymInt, freeSymbols, runtimeBounds, textOf } from '../../symbols/index.ts'
import type { Expr, ShapeEnv, SymbolExpr } from '../../symbols/index.ts'
import { shapeEnvOf } from './symbolicGraphs.ts'
import { SizeNodes } from '../trace/sizeNodes.ts'

/**
 * Writes into a graph what its symbolic trace was told of numbers that depend on data, by `torch._check` and `torch._checkIsSize`, and what it took for granted of them: each time right behind
 * the node that gives the number. When the graph runs and one does not hold, it throws AssertionFailed. PyTorch's `insert_deferred_runtime_asserts`.
 *
 *     const gm = makeFx(f, { tracingMode: 'symbolic' })(x)
 *     insertDeferredRuntimeAsserts(gm)
 *
 * `env` is what the trace knows; by default that of the trace that made `gm`.
 *
 * @throws ArgumentError if `gm` is no graph of a symbolic trace.
 */
export function insertDeferredRuntimeAsserts(gm: GraphModule, env?: ShapeEnv): void {
  checkCount('insertDeferredRuntimeAsserts', arguments, 2)
  checkGraphModule('insertDeferredRuntimeAsserts', gm)
  const asserts = new AssertWriter(gm, env ?? shapeEnvOf(gm))
  const [...nodes] = gm.graph.nodes
  nodes.forEach((node, i) => {
    const next = nodes[i + 1]
    if (next !== undefined && node.op !== 'output') gm.graph.insertingBefore(next, () => asserts.visit(node))
  })
  gm.recompile()
}

class AssertWriter {
  readonly #gm: GraphModule
  readonly #env: ShapeEnv
  readonly #nodes: SizeNodes
  readonly #pending: Set<Expr>
  /** The messages of the assertions in the graph. */
  readonly #written: Set<string>

  constructor(gm: GraphModule, env: ShapeEnv) {
    this.#gm = gm
    this.#env = env
    this.#nodes = new SizeNodes(gm.graph, env)
    this.#written = new Set([...gm.graph.nodes].flatMap(({ target, args }) => (target === _assert ? [messageOf(String(args[1]))] : [])))
    this.#pending = new Set([...env.deferredRuntimeAsserts.values()].flat().map(({ expr }) => expr))
  }

  /** Notes the symbols that a node gives, and writes what can be asserted from here on. */
  visit(node: Node): void {
    for (const [of, read, isDimension] of symbolsGivenBy(node)) {
      if (this.#nodes.has(of)) continue
      this.#nodes.addSymbol(of, read === null ? () => node : () => this.#gm.graph.callFunction(layoutReaders[read.fn], [node, ...read.args]))
      if (of.op === 'symbol' && this.#env.isUnbacked(of)) this.#define(of, isDimension)
    }
  }

  #define(of: SymbolExpr, isDimension: boolean): void {
    for (const { expr, isAlwaysTrue } of runtimeBounds(of, this.#env.ranges.get(of))) if (!(isDimension && isAlwaysTrue)) this.#assert(expr)
    for (const expr of this.#pending) {
      if (![...freeSymbols(expr)].every((each) => this.#nodes.has(each))) continue
      this.#pending.delete(expr)
      if (!isBound(expr)) this.#assert(expr)
    }
  }

  #assert(expr: Expr): void {
    const message = `Runtime assertion failed for expression ${textOf(expr)}`
    if (this.#written.has(message)) return
    this.#written.add(message)
    const condition = this.#nodes.argumentOfExpr(expr)
    const name = typeof condition === 'object' && condition !== null && 'name' in condition ? String(condition.name) : String(condition)
    this.#gm.graph.callFunction(_assert, [condition, `${message} on node '${name}'`])
  }
}

/** A message without the name of the node. */
const messageOf = (text: string): string => text.replace(/ on node '[^']*'$/, '')

/** Whether an assertion says only what the range of its symbol says too. */
const isBound = ({ op, args }: Expr): boolean =>
  (op === 'Le' || op === 'Ge') && args.some((arg) => arg.op === 'symbol') && args.some((arg) => arg.op === 'number')

type Given = readonly [of: Expr, read: { readonly fn: 'symSize' | 'symStride'; readonly args: readonly number[] } | null, isDimension: boolean]

/** The expressions that can be read of what a node computes: itself, or sizes and strides of a tensor. */
function symbolsGivenBy(node: Node): readonly Given[] {
  const value = recordedValue(node)
  if (value instanceof SymInt || value instanceof SymFloat || value instanceof SymBool) return [[value.ownExpr, null, false]]
  if (typeof value !== 'object' || value === null || !('shape' in value)) return []
  const read = (list: unknown, fn: 'symSize' | 'symStride'): readonly Given[] =>
    Array.isArray(list)
      ? list.flatMap((size: unknown, dim): readonly Given[] =>
          size instanceof SymInt && size.ownExpr.op === 'symbol' ? [[size.ownExpr, { fn, args: [dim] }, true]] : [],
        )
      : []
  return [...read(value.shape, 'symSize'), ...('strides' in value ? read(value.strides, 'symStride') : [])]
}
