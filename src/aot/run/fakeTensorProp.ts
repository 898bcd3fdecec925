// FakeTensorProp: shapes, dtypes and strides of every value, without computing one. PyTorch's torch.fx.passes.fake_tensor_prop.
import { checkCount } from '../../protocol/index.ts'
import { FakeTensorMode, fakeLike, withMode } from '../../dispatch/index.ts'
import { recordNested, recordOf } from '../../fx/graph/nodeValue.ts'
import { Interpreter } from '../../fx/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { treeLeaves, treeMap } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { keepingState } from '../trace/draws.ts'

const asFake = (value: unknown): unknown => (value instanceof Tensor && !value.isFake ? fakeLike(value) : value)

const specOf = (value: unknown): unknown => (value instanceof Tensor ? { ...recordOf(value), requiresGrad: value.requiresGrad } : value)

/**
 * Runs a graph on fake tensors and stores in `node.meta.val` the shape, dtype, strides and requiresGrad of each value (of each tensor, if a value holds several). No data is read or
 * allocated, so it costs the same for any size. Throws what the operators' shape checks throw, and for operators whose result depends on data. PyTorch's FakeTensorProp.
 *
 *     new FakeTensorProp(gm).propagate(torch.ones([8, 3, 224, 224]))
 */
export class FakeTensorProp extends Interpreter {
  readonly #mode: FakeTensorMode
  readonly #attributes = new Map<Tensor, Tensor>()

  constructor(gm: GraphModule, mode: FakeTensorMode = new FakeTensorMode()) {
    checkCount('FakeTensorProp', arguments, 2)
    super(gm)
    this.#mode = mode
  }

  /** Runs on fake copies of the inputs (which may be fake themselves) and returns the fake result. */
  propagate(...inputs: readonly unknown[]): unknown {
    return this.propagateDontConvertInputs(...inputs.map((input) => treeMap(input, asFake)))
  }

  /** Runs on the inputs, which must be fake. */
  propagateDontConvertInputs(...inputs: readonly unknown[]): unknown {
    return keepingState(() => withMode(this.#mode, () => this.run(...inputs)))
  }

  /** Like `propagate`; `env` keeps the fake value of every node. */
  propagateAll(...inputs: readonly unknown[]): unknown {
    const fakes = inputs.map((input) => treeMap(input, asFake))
    return keepingState(() => withMode(this.#mode, () => this.runWith(fakes, { keep: 'all' })))
  }

  override getAttr(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const value = super.getAttr(target, args, kwargs)
    if (!(value instanceof Tensor) || value.isFake) return value
    const fake = this.#attributes.get(value) ?? fakeLike(value)
    this.#attributes.set(value, fake)
    return fake
  }

  override runNode(node: Node): unknown {
    const value = super.runNode(node)
    if (treeLeaves(value).some((leaf) => leaf instanceof Tensor)) recordNested(node, treeMap(value, specOf))
    return value
  }
}
