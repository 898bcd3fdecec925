// Which values a recorded call keeps for an eager backward: those that the operator's derivative computes with. Most derivatives need few of the arguments and results, and some only
// their shapes.
import { noGrad } from '../autograd/index.ts'
import { ProxyTensorMode } from '../aot/index.ts'
import { anyTensor, isArgList, withMode } from '../dispatch/index.ts'
import type { Arg } from '../dispatch/index.ts'
import type { Node } from '../fx/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { Tensor, asTensor } from '../tensor/index.ts'
import type { Segment } from './segment.ts'
import type { ArgStep, Step } from './traceTree.ts'

const known = new WeakMap<Step, readonly number[]>()

/** The slots of the values that the derivative of `step`, a step of the segment, reads. */
export function savedSlots(segment: Segment, step: Step): readonly number[] {
  let slots = known.get(step)
  if (slots === undefined) {
    slots = readSlots(segment, step) ?? allSlots(step)
    known.set(step, slots)
  }
  return slots
}

function allSlots(step: Step): readonly number[] {
  const ofArg = (arg: ArgStep): readonly number[] => (arg.kind === 'slot' ? [arg.slot] : arg.kind === 'list' ? arg.items.flatMap(ofArg) : [])
  return [...step.args.flatMap(ofArg), ...step.results.map((_, i) => step.firstSlot + i)]
}

/** Runs the derivative on fake tensors to see what it reads; null if that cannot tell: a number of each call, or a derivative that looks at data. */
function readSlots(segment: Segment, step: Step): readonly number[] | null {
  const { derivative } = step.operator
  if (derivative === null) return []
  if (step.args.some((arg) => arg.kind === 'scalar')) return null
  const mode = new ProxyTensorMode()
  const slotOf = new Map<Node, number>()
  const fake = ({ shape, dtype, strides }: Tensor, slot: number): Tensor => {
    const tensor = Tensor.fake({ shape, dtype, strides })
    slotOf.set(mode.placeholder(`v${slot}`, tensor), slot)
    return tensor
  }
  const valueOf = (arg: ArgStep): Arg => {
    if (arg.kind === 'const') return arg.value
    if (arg.kind === 'list') return arg.items.map(valueOf)
    return fake(asTensor(segment.at(arg.slot), 'an argument of a recorded call'), arg.slot)
  }
  const args = step.args.map(valueOf)
  const outputs = step.results.map((result, i) => fake(result, step.firstSlot + i))
  const differentiable = outputs.map(({ dtype }) => dtypeInfo[dtype].floating)
  const results: Node[] = []
  /** Gradients that reach some of the outputs only may take another way than those that reach all. */
  const differentiate = (reaches: (i: number) => boolean): void => {
    const grads = step.results.map(({ shape, dtype }, i) => {
      if (differentiable[i] !== true || !reaches(i)) return null
      const grad = Tensor.fake({ shape, dtype })
      mode.placeholder('grad', grad)
      return grad
    })
    const gradients = withMode(mode, () =>
      noGrad(() => derivative(grads, { args, outputs, needs: args.map((arg) => arg instanceof Tensor || (isArgList(arg) && anyTensor(arg))) })),
    )
    for (const gradient of gradients.flat()) if (gradient !== null) results.push(mode.nodeOf(gradient))
  }
  try {
    differentiate(() => true)
    if (outputs.length > 1) outputs.forEach((_, i) => differentiable[i] === true && differentiate((k) => k === i))
  } catch {
    return null
  }
  const seen = new Set<Node>()
  for (let node = results.pop(); node !== undefined; node = results.pop()) {
    if (seen.has(node)) continue
    seen.add(node)
    results.push(...node.allInputNodes)
  }
  return [...slotOf].filter(([node]) => seen.has(node)).map(([, slot]) => slot)
}
