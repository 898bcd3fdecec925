// The fake tensors that stand for the arguments of a traced function. To autograd they are what the arguments are: no leaves, if these have a history, and views, if these are. A write to a view gives a
// history to the tensor behind it, so that the gradient of what was written has memory of its own (CopySlices), and is refused where it is in eager mode.
import { OpNode, attachGradNode, enableGrad, producerOf, setGradFn } from '../../autograd/index.ts'
import { markView } from '../../dispatch/index.ts'
import { present } from '../../errors/index.ts'
import { historyOwnerOf } from '../../guards/index.ts'
import { asStrided, windowCopy } from '../../ops/index.ts'
import { Tensor, reachOf } from '../../tensor/index.ts'
import type { ProxyTensorMode } from '../trace/proxyMode.ts'

/** The tensor that stands for an argument in the trace; `input`, a fake leaf, is the input of the graph. */
export function standIn(arg: Tensor, input: Tensor, mode: ProxyTensorMode): Tensor {
  const owner = historyOwnerOf(arg)
  const isView = owner === 'base' || owner === 'none'
  if (arg.isLeaf) {
    if (isView) markPart(input, baseOf(input), owner)
    // To set it to false would make a view one that never follows its base.
    if (arg.requiresGrad) input.requiresGrad = true
    return input
  }
  const tensor = Tensor.fake(input)
  mode.track(tensor, mode.nodeOf(input))
  if (!isView) relay(tensor, input)
  else {
    const base = baseOf(input)
    markPart(tensor, base, owner)
    if (owner === 'base') relayWindow(tensor, base, input)
    else relay(tensor, input)
  }
  return tensor
}

/** What the argument is a view of, as far as the trace needs it: memory without gaps, in which the argument lies. */
function baseOf({ sizes, steps, offset, dtype, device }: Tensor): Tensor {
  const [lowest, highest] = reachOf(sizes, steps, offset) ?? [offset, offset - 1]
  return Tensor.fake({ shape: [highest - lowest + 1], dtype, offset: lowest, device })
}

/** Makes `tensor` a view of `base`; with 'none', one that writes give no history, as if it was made of a detached tensor. */
function markPart(tensor: Tensor, base: Tensor, owner: 'base' | 'none'): void {
  enableGrad(() => {
    let whole = base
    if (owner === 'none') markView((whole = Tensor.fake(base)), base, { name: 'detach' })
    markView(tensor, whole, asStrided.op)
  })
}

const NAME = { name: 'InputBackward' }

const relay = (tensor: Tensor, input: Tensor): unknown => attachGradNode([tensor], [input], (grads) => grads, NAME)

/** Gives the base a history that leads to the input, and the tensor one that leads to the base. */
function relayWindow(tensor: Tensor, base: Tensor, input: Tensor): void {
  // As long as nothing is written, the gradient of the tensor is that of the input. The way through the base is for what is.
  const known = new WeakMap<Tensor, Tensor>()
  const first = input.offset - base.offset
  const window = (grad: Tensor): Tensor => windowCopy(grad, input.sizes, input.steps, first)
  attachGradNode([base], [input], ([grad = null]) => [grad === null ? null : (known.get(grad) ?? window(grad))], NAME)
  setGradFn(tensor, new InputWindow(tensor, base, known), 0)
}

/** The argument as a window on its base, AsStridedBackward0. */
class InputWindow extends OpNode {
  readonly #known: WeakMap<Tensor, Tensor>

  /** `known` gets the gradients of the base by itself, and those of the window of which they were made. */
  constructor(tensor: Tensor, base: Tensor, known: WeakMap<Tensor, Tensor>) {
    const { sizes, steps, offset } = tensor
    super(asStrided.op, [base, sizes, steps, offset], tensor, { targets: [producerOf(base)], outputNrs: null }, null)
    this.#known = known
  }

  override apply(grads: readonly (Tensor | null)[], needs: readonly boolean[]): readonly (Tensor | null)[] {
    const gradients = super.apply(grads, needs)
    const [ofBase = null] = gradients
    if (ofBase !== null) this.#known.set(ofBase, present(grads[0], 'the gradient of a window'))
    return gradients
  }
}
