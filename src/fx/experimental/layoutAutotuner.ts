// genLayoutAutotuner: a heuristic that measures whether a region is faster in a layout. PyTorch's torch.fx.experimental.optimization.gen_mkl_autotuner.
import { checkArgument, checkArray, checkCallable, checkCount, checkOptions, isFunction, isTensorLike } from '../../protocol/index.ts'
import type { OnProgress } from '../../protocol/index.ts'
import type { Node } from '../graph/node.ts'
import { GraphModule } from '../run/graphModule.ts'
import { Interpreter } from '../run/interpreter.ts'
import { extractSubgraph } from './inference.ts'
import { checkLayout, convertLayers, inputOf, isConversion } from './layoutRegions.ts'
import type { Layout, LayoutRegion } from './layoutRegions.ts'

/** Options of {@link genLayoutAutotuner}. */
export interface AutotunerOptions {
  /** How often a region runs while it is measured. Default 10. */
  readonly iters?: number
  /** How often it runs before. Default 1. */
  readonly warmup?: number
  /** The clock, in milliseconds. Default `performance.now`. */
  readonly now?: () => number
  /** Is told of each region before it is measured; how many there are is not known. */
  readonly onProgress?: OnProgress
}

/**
 * A heuristic for {@link Layout} that runs each region with and without the layout, and lets it compute in the layout if that is faster, conversions included. The values that
 * a region reads are those that the model computes for `exampleInputs`; the model runs once for them. PyTorch's gen_mkl_autotuner.
 *
 *     const layout = { enter: 'contiguous', leave: 'contiguous', supports: isLayer, convert: (layer) => new Compiled(layer) }
 *     optimizeForInference(model, { layoutOptimize: { ...layout, heuristic: genLayoutAutotuner([x], layout) } })
 *
 * @throws ArgumentError for a layout that lacks something, and for counts that are not integers in range.
 */
export function genLayoutAutotuner(
  exampleInputs: readonly unknown[],
  layout: Layout,
  options: AutotunerOptions = {},
): (region: LayoutRegion) => boolean {
  checkCount('genLayoutAutotuner', arguments, 3)
  const where = 'genLayoutAutotuner'
  checkArray(where, 'exampleInputs', exampleInputs)
  checkLayout(where, layout)
  checkOptions(where, options, { iters: 'number', warmup: 'number', now: true, onProgress: true })
  const { iters = 10, warmup = 1, now = () => performance.now(), onProgress } = options
  checkArgument(Number.isSafeInteger(iters) && iters > 0, where, 'options.iters', 'an integer from 1', iters)
  checkArgument(Number.isSafeInteger(warmup) && warmup >= 0, where, 'options.warmup', 'an integer from 0', warmup)
  checkArgument(isFunction(now), where, 'options.now', 'a function that returns milliseconds', now)
  if (onProgress !== undefined) checkCallable(where, 'options.onProgress', onProgress)
  let values: ReadonlyMap<Node, unknown> = new Map()
  let measured = 0
  const time = (part: GraphModule, args: readonly unknown[]): number => {
    for (let i = 0; i < warmup; i++) part.call(...args)
    const begin = now()
    for (let i = 0; i < iters; i++) part.call(...args)
    return now() - begin
  }
  return (region) => {
    const gm = region.nodes[0]?.graph.owningModule
    if (!(gm instanceof GraphModule)) return false
    const { nodes, startNodes, endNodes } = region
    onProgress?.({ task: 'autotune', done: measured++, total: null, text: nodes.map(({ name }) => name).join(' ') })
    const inputs = [...new Set(startNodes.map(inputOf))]
    if (!inputs.every((input) => values.has(input))) values = new Recorder(gm).record(exampleInputs)
    const given = (list: readonly Node[]): unknown[] => list.map((node) => values.get(node))
    const plain = extractSubgraph(gm, nodes, startNodes, endNodes.map(inputOf))
    const converted = extractSubgraph(gm, [...startNodes, ...nodes, ...endNodes], inputs, endNodes)
    if (layout.convert !== undefined) {
      convertLayers(converted, [...converted.graph.nodes], layout.convert)
      converted.recompile()
    }
    return time(converted, given(inputs)) < time(plain, given(startNodes.map(inputOf)))
  }
}

/** Runs a model without its conversions, and keeps copies of the values that are converted. */
class Recorder extends Interpreter {
  readonly #values = new Map<Node, unknown>()

  record(inputs: readonly unknown[]): ReadonlyMap<Node, unknown> {
    this.run(...inputs)
    return this.#values
  }

  override runNode(node: Node): unknown {
    const value = isConversion(node) ? this.fetchArgsKwargs(node)[0][0] : super.runNode(node)
    if ([...node.users].some(isConversion)) this.#values.set(node, copyOf(value))
    return value
  }
}

/** A copy of a tensor, which the region may change; other values as they are. */
const copyOf = (value: unknown): unknown => (isTensorLike(value) && 'clone' in value && isFunction(value.clone) ? value.clone() : value)
