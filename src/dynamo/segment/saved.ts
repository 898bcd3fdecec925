// Which values a recorded call keeps for an eager backward: those that the operator's derivative computes with. Most derivatives need few of the arguments and results, and some only
// their shapes.
import { noGrad } from '../../autograd/index.ts'
import { ProxyTensorMode } from '../../aot/index.ts'
import { isArgList, withMode } from '../../dispatch/index.ts'
import type { Arg, OpDef } from '../../dispatch/index.ts'
import type { Node } from '../../fx/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { argValue } from '../run/evaluate.ts'
import type { Segment } from './segment.ts'
import { withoutLists } from '../tree/traceTree.ts'
import type { Step } from '../tree/traceTree.ts'

const known = new WeakMap<Step, readonly number[]>()

/** The slots of the values that the derivative of `step`, a step of the segment, reads. */
export function savedSlots(segment: Segment, step: Step): readonly number[] {
  let slots = known.get(step)
  if (slots === undefined) {
    const args = step.args.map((arg) => argValue(arg, (slot) => segment.at(slot)))
    const reads = derivativeReads(step.operator, args, step.results)
    // A number or a size of each call may make the derivative read something else.
    const isFixed = !step.isSized && !step.args.some((arg) => arg.kind === 'scalar')
    slots = tensorSlots(step).filter((_, i) => !isFixed || reads[i] === true)
    known.set(step, slots)
  }
  return slots
}

/** The slots of the tensors among the arguments, and of the results. */
function tensorSlots(step: Step): readonly number[] {
  const ofArgs = withoutLists(step.args).flatMap((arg) => (arg.kind === 'slot' || arg.kind === 'input' ? [arg.slot] : []))
  return [...ofArgs, ...step.results.map((_, i) => step.firstSlot + i)]
}

/**
 * For each tensor among the arguments of a call, and each of its results: whether the derivative reads its data. True for all if a derivative looks at data to decide. `wants(i)`:
 * whether the gradient of the i-th tensor among the arguments is wanted. `reached`: the results that gradients reach; null if that may be any of them.
 */
export function derivativeReads(
  { derivative }: OpDef,
  args: readonly Arg[],
  results: readonly Tensor[],
  wants: (i: number) => boolean = () => true,
  reached: ReadonlySet<number> | null = null,
): readonly boolean[] {
  const mode = new ProxyTensorMode()
  const saved: Node[] = []
  const placeholder = (tensor: Tensor): { readonly fake: Tensor; readonly node: Node } => {
    const { shape, dtype, strides, device } = tensor
    const fake = Tensor.fake({ shape, dtype, strides, device })
    return { fake, node: mode.placeholder('v', fake) }
  }
  const save = (tensor: Tensor): Tensor => {
    const { fake, node } = placeholder(tensor)
    saved.push(node)
    return fake
  }
  const saveAll = (arg: Arg): Arg => (arg instanceof Tensor ? save(arg) : isArgList(arg) ? arg.map(saveAll) : arg)
  let edge = 0
  const needs = args.map((arg) => [arg].flat().filter((a) => a instanceof Tensor && wants(edge++)).length > 0)
  const context = { args: args.map(saveAll), needs, outputs: results.map(save) }
  if (derivative === null) return saved.map(() => false)
  const read: Node[] = []
  /** Gradients that reach some of the results only may take another way than those that reach all. */
  const differentiate = (reaches: (i: number) => boolean): void => {
    const grads = results.map((result, i) => (dtypeInfo[result.dtype].differentiable && reaches(i) ? placeholder(result).fake : null))
    const gradients = withMode(mode, () => noGrad(() => derivative(grads, context)))
    for (const gradient of gradients.flat()) if (gradient !== null) read.push(mode.nodeOf(gradient))
  }
  try {
    differentiate((i) => reached?.has(i) ?? true)
    if (reached === null && results.length > 1)
      results.forEach((result, i) => dtypeInfo[result.dtype].differentiable && differentiate((k) => k === i))
  } catch {
    return saved.map(() => true)
  }
  const seen = new Set<Node>()
  for (let node = read.pop(); node !== undefined; node = read.pop()) {
    if (seen.has(node)) continue
    seen.add(node)
    read.push(...node.allInputNodes)
  }
  return saved.map((node) => seen.has(node))
}
