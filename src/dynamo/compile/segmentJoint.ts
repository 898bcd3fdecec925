// The joint graph of a segment: its forward, and the gradient from the tape that autograd recorded.
import { ProxyTensorMode, traceBackward } from '../../aot/index.ts'
import type { JointGraph } from '../../aot/index.ts'
import { AutogradError, gradBetween } from '../../autograd/index.ts'
import { InternalError, TensorfxError, UnsupportedError } from '../../errors/index.ts'
import type { Node } from '../../fx/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { exitsOf, gradInputsOf } from '../segment/tape.ts'
import type { Segment } from '../segment/segment.ts'
import { neededSteps, numbersFor } from '../tree/traceTree.ts'
import type { CompiledSegment } from '../tree/traceTree.ts'
import { jointDifference } from './checkJoint.ts'
import { openGraph } from './segmentGraph.ts'
import { jointParts, sizedJoint } from './sizedJoint.ts'
import type { JointRequest, SegmentJoint } from './sizedJoint.ts'

/** The joint graph of a segment, for any sizes if it `takesSizes`. Returns why, if there is none: then the tape itself is kept. */
export function segmentJoint(
  request: JointRequest & { readonly takesSizes: boolean },
  names: (slot: number) => string | null,
): SegmentJoint | string {
  if (numbersOnTape(request.segment, request.heads)) return 'the gradient depends on a number that differs from call to call'
  return request.takesSizes ? sizedJointGraph(request, names) : jointGraph(request, names)
}

/** How a joint graph with sizes differs from what the tape of this walk gives for its sizes; null if it does not. */
export function differenceInWalk(compiled: CompiledSegment, request: JointRequest): string | null {
  const { segment } = request
  const { joint, nodeOf, inputSlots } = compiled
  const sizes = numbersFor(compiled, segment)
  if (joint === null || sizes === null) return null
  const own = jointGraph(request, () => null)
  if (typeof own === 'string') return null
  const numbers = new Map<Node, number>()
  ;[...inputSlots.map((slot) => segment.bound[slot]), ...sizes].forEach((value, i) => {
    const node = joint.inputs[i]
    if (node !== undefined && typeof value === 'number') numbers.set(node, value)
  })
  return jointDifference({ joint, nodeOf }, numbers, own)
}

/** Whether the tape of the heads holds numbers that differ from call to call: a compiled backward cannot know them. */
function numbersOnTape(segment: Segment, heads: readonly number[]): boolean {
  return neededSteps(segment.cursor, heads).steps.some(
    (step) =>
      step.args.some((arg) => arg.kind === 'scalar' && arg.number !== 'size') &&
      step.results.some((_, i) => segment.lazies[step.firstSlot + i]?.requiresGrad === true),
  )
}

/**
 * The forward of a segment and its gradient, from the tape that autograd recorded: code under noGrad, custom functions and detached values keep their
 * meaning. Returns why, if that is impossible; then the tape itself is kept.
 */
function jointGraph(request: JointRequest, names: (slot: number) => string | null): SegmentJoint | string {
  const { segment, outputs, heads, tape } = request
  const open = openGraph(segment, outputs, { names, takesSizes: false, allResults: true })
  const { graph, nodes, inputSlots } = open
  // A gradient that leaves through a tensor which the forward does not read would be lost, or followed beyond the segment.
  if (!exitsOf(tape).every((slot) => inputSlots.includes(slot))) return 'a gradient leaves through a tensor that the graph does not read'
  const resolve = (tensor: Tensor): Node | undefined => (tensor.captureStamp === segment.stamp ? nodes.get(tensor.captureSlot) : undefined)
  const mode = new ProxyTensorMode({ graph, resolve })
  const { positions: gradInputs, tensors: wanted } = gradInputsOf(segment, inputSlots)
  try {
    const backward = traceBackward(
      mode,
      heads.map((slot) => segment.lazyAt(slot)),
      (tangents, roots) => gradBetween(roots, wanted, tangents),
    )
    const joint: JointGraph = { ...jointParts(open, request), gradInputs, ...backward }
    return { joint, nodes, sizes: null }
  } catch (error) {
    // No derivative, an overwritten value, a tensor from elsewhere: an eager backward reports it, if there is one.
    if (error instanceof AutogradError || error instanceof UnsupportedError) return error.message
    throw error
  }
}

/** The same for any sizes. */
function sizedJointGraph(request: JointRequest, names: (slot: number) => string | null): SegmentJoint | string {
  try {
    return sizedJoint(request, names)
  } catch (error) {
    // A rule for symbols is missing or wrong, a derivative needs data: a backward walks the tape.
    if (error instanceof TensorfxError && !(error instanceof InternalError)) return error.message
    throw error
  }
}
