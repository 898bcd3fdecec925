// inferShape: the sizes of inputs for which a graph works. The graph is run on fake tensors whose sizes are symbols; what an operator asked last, before it refused the shapes, is what they must satisfy.
import { noGrad } from '../../autograd/index.ts'
import { FakeTensorMode } from '../../dispatch/index.ts'
import { ArgumentError, InternalError, TensorfxError, UnsupportedError } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkArray, checkCount, valueText } from '../../protocol/index.ts'
import { ShapeEnv, not, textOf, valuesFor } from '../../symbols/index.ts'
import type { Expr, SymInt, SymbolExpr } from '../../symbols/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { FakeTensorProp } from './fakeTensorProp.ts'

/** The size that every dimension has at first: what is found must follow from the graph. */
const FIRST = 2

/** What {@link inferShape} found. */
export interface InferredShapes {
  /** Of each input: a number for a size that must be this one, a symbol for any other. Its hint is a size with which the graph works. */
  readonly shapes: readonly (readonly (SymInt | number)[])[]
  /** Knows what must hold of the symbols: `guardTexts()`. */
  readonly shapeEnv: ShapeEnv
}

/**
 * Finds the sizes of inputs for which a graph works, from the number of their dimensions alone: the sizes of `inputs` do not matter, and no data is read. The graph's nodes get the shapes of their values, with symbols for
 * the sizes that are free. PyTorch's `torch.fx.experimental.shape_inference.infer_shape`, which reads the sizes out of the messages of operators and returns no shapes.
 *
 *     inferShape(gm, [torch.ones([1, 1])]).shapes // [[s0, 328]] if the first layer is linear with 328 features
 *
 * @throws ArgumentError if there are no such sizes, or none are found, with the error of the operator as its cause; UnsupportedError if an operator has no rule for symbols.
 */
export function inferShape(gm: GraphModule, inputs: readonly Tensor[]): InferredShapes {
  checkCount('inferShape', arguments, 2)
  checkGraphModule('inferShape', gm)
  checkArray('inferShape', 'inputs', inputs)
  for (const input of inputs)
    if (!(input instanceof Tensor)) throw new ArgumentError(`inferShape: argument 'inputs' must be a list of tensors, got ${valueText(input)}.`)
  const needed: Expr[] = []
  let values: ReadonlyMap<SymbolExpr, number> = new Map()
  for (;;) {
    const env = new ShapeEnv({ duckShape: false })
    const mode = new FakeTensorMode({ shapeEnv: env })
    const sizeOf = (position: number): number => [...values].find(([{ name }]) => name === `s${position}`)?.[1] ?? FIRST
    let position = 0
    const shapes = inputs.map(({ ndim }) => Array.from({ length: ndim }, () => sizeOf(position++)))
    const fakes = inputs.map((input, i) =>
      mode.fromTensor(Tensor.fake({ shape: shapes[i] ?? [], dtype: input.dtype }), { dims: input.sizes.map(() => 'dynamic' as const) }),
    )
    try {
      noGrad(() => new FakeTensorProp(gm, mode).propagateDontConvertInputs(...fakes))
      return { shapes: fakes.map((fake) => fake.symSizes.map((size) => inUse(env, size))), shapeEnv: env }
    } catch (error) {
      if (!(error instanceof TensorfxError) || error instanceof InternalError || error instanceof UnsupportedError) throw error
      const asked = env.guards.at(-1)
      // What was asked last may be needed already: then the refusal follows from that, and the operator had nothing to ask.
      const condition = asked === undefined || needed.includes(asked.expr) ? null : not(asked.expr)
      if (condition !== null) needed.push(condition)
      const found = condition === null ? null : valuesFor(env.values, needed)
      if (found === null) {
        const given = needed.length === 0 ? '' : ` with ${needed.map((one) => textOf(one)).join(' and ')}`
        throw new ArgumentError(`inferShape: no sizes of the inputs${given} are known for which the graph works. ${error.message}`, { cause: error })
      }
      values = found
    }
  }
}

function inUse(env: ShapeEnv, size: Parameters<ShapeEnv['sizeOf']>[0]): SymInt | number {
  const known = env.sizeOf(size)
  return typeof known === 'number' ? known : env.toSymInt(env.replace(known.expr))
}
