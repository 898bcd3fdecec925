// Arguments that share memory: where one of them is written, the memory is the input of the graph, and they are views of it.
import { noGrad } from '../../autograd/index.ts'
import { isDetached } from '../../dispatch/index.ts'
import { UnsupportedError, present } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { asStrided, detach, permute } from '../../ops/index.ts'
import { Tensor, asTensor, memoryOrder } from '../../tensor/index.ts'
import type { JointGraph } from '../joint/jointGraph.ts'

/** Inputs of the graph, and the arguments as parts of what stands for those inputs. */
export interface Inputs {
  readonly inputs: readonly Tensor[]
  readonly parts: (inputs: readonly Tensor[]) => readonly Tensor[]
}

/** The inputs of a graph for the arguments of a call. */
export type Split = (args: readonly Tensor[]) => Inputs

/** Whether another one of the tensors shares the memory of the one at position `i`. */
export const sharesMemory = (tensors: readonly (Tensor | undefined)[], i: number): boolean =>
  tensors.some((other, k) => k !== i && other !== undefined && other.storage !== null && other.storage === tensors[i]?.storage)

/**
 * Each memory that several tensors share is one input: what they are views of, or all of the memory if none of them has a history. They are views of it in the trace. Throws UnsupportedError if they have a
 * history, and are not views of one tensor, or its elements do not lie without gaps.
 */
export function bases(tensors: readonly Tensor[]): Inputs {
  const keys = [...new Set(tensors.map((tensor, i) => (sharesMemory(tensors, i) ? tensor.storage : tensor)))]
  const inputs = keys.map((key) => (key instanceof Tensor ? key : baseOf(tensors.filter((tensor) => tensor.storage === key))))
  const parts = (given: readonly Tensor[]): readonly Tensor[] =>
    tensors.map((tensor) => {
      const at = keys.indexOf(keys.includes(tensor) ? tensor : tensor.storage)
      const base = asTensor(given[at], 'an input')
      const whole = inputs[at]
      if (whole === tensor || whole === undefined) return base
      const window = (): Tensor => asStrided(base, tensor.sizes, tensor.steps, base.offset + tensor.offset - whole.offset)
      // A part without a history never gets that of the whole.
      if (isDetached(tensor)) return detach(window())
      return tensor.ownHistory === null ? noGrad(window) : window()
    })
  return { inputs, parts }
}

/** A tensor that covers the memory of some, in the order of that memory. */
function baseOf(tensors: readonly Tensor[]): Tensor {
  const first = present(tensors[0], 'a tensor')
  const roots = new Set(tensors.map(rootOf))
  const [root] = roots
  const refuse = (why: string): never => {
    throw new UnsupportedError(`aotFunction: an argument is modified in place that shares memory with another one ${why}. Clone one of them.`)
  }
  if (tensors.some(({ dtype }) => dtype !== first.dtype)) refuse('of another dtype')
  const order = root === undefined || roots.size > 1 || root.dtype !== first.dtype ? null : memoryOrder(root.sizes, root.steps)
  if (order === null && ![...tensors, ...roots].some(({ requiresGrad }) => requiresGrad)) {
    const storage = first.realize()
    return new Tensor([Math.floor(storage.nbytes / dtypeInfo[first.dtype].size)], first.dtype, storage)
  }
  if (root === undefined || roots.size > 1) return refuse('which requires grad, and they are not views of one tensor')
  if (tensors.some((tensor) => tensor !== root && tensor.isLeaf && tensor.requiresGrad)) refuse('that is a leaf which requires grad')
  if (order === null) return refuse('which requires grad, and is a view of a tensor with gaps in its memory')
  return root.contiguousLayout ? root : permute(root, order)
}

/** Whether a graph that writes gets one memory as an argument and from outside. */
export const writesAcross = ({ writeBacks, constants: outer = [] }: JointGraph, tensors: readonly Tensor[]): boolean =>
  writeBacks.size > 0 && tensors.some((tensor) => outer.some((other) => sharesMemory([tensor, other], 0)))

/** Whether a memory gets a history that stands for several arguments, and is none of them, nor what they are views of. */
export const losesHistory = ({ writeBacks, heads }: JointGraph, inputs: readonly Tensor[], args: readonly Tensor[]): boolean =>
  [...writeBacks].some(([position, i]) => {
    const input = inputs[i]
    return input !== undefined && heads.includes(position) && !args.some((arg) => arg === input || rootOf(arg) === rootOf(input))
  })

const rootOf = (tensor: Tensor): Tensor => tensor.viewBase ?? tensor
