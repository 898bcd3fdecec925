// Recording: what happens above the modes when an operator is called on tensors that require gradients. Registers itself with the dispatcher.
import { dispatchBelowAutograd, dispatchState } from '../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../dispatch/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { Tensor } from '../tensor/index.ts'
import { AutogradError } from './errors.ts'
import { pushEdge, setGradFn } from './node.ts'
import type { EdgeList } from './node.ts'
import { OpNode } from './opNode.ts'
import { raiseVersion, versionOf } from './versions.ts'

/** Operators without a derivative whose results do not depend differentiably on their arguments; any other one fails in backward, not silently. */
function cutsGradient(op: OpDef): boolean {
  return op.derivative === null && (op.tags.has('creation') || op.tags.has('random') || op.name === 'detach')
}

// A view of a tensor that was rebased by an in-place operator after the view was made has a stale history: its data changed, its gradFn does not know.
function checkViewIsFresh(op: OpDef, view: Tensor): void {
  let base = view.viewBase as Tensor
  while (base.viewBase !== null) base = base.viewBase
  const { gradFn } = base
  let node: unknown = view.gradFn
  while (node !== gradFn && node instanceof OpNode && node.op.tags.has('view')) node = node.targets[0]
  if (node === gradFn || !(node instanceof OpNode) || node === view.gradFn) return
  throw new AutogradError(
    `${op.qualname}: an argument is a view of a tensor that has been modified in place after the view was made, so its gradient is unknown. Make the view again after the in-place operator.`,
  )
}

function pushEdges(op: OpDef, args: readonly Arg[], edges: EdgeList): void {
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (arg instanceof Tensor) {
      pushEdge(edges, arg)
      if (arg.viewBase !== null && arg.gradFn !== null) checkViewIsFresh(op, arg)
    } else if (Array.isArray(arg)) pushEdges(op, arg as readonly Arg[], edges)
  }
}

/** Whether every tensor is as it was created. */
function allUntouched(args: readonly Arg[]): boolean {
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (arg instanceof Tensor) {
      if (versionOf(arg) !== 0) return false
    } else if (Array.isArray(arg) && !allUntouched(arg as readonly Arg[])) return false
  }
  return true
}

function pushVersions(args: readonly Arg[], versions: number[]): number[] {
  for (const arg of args) {
    if (arg instanceof Tensor) versions.push(versionOf(arg))
    else if (Array.isArray(arg)) pushVersions(arg as readonly Arg[], versions)
  }
  return versions
}

const argVersions = (args: readonly Arg[]): number[] | null => (allUntouched(args) ? null : pushVersions(args, []))

/** Versions of the arguments and then of the results; null when all are 0. */
function withResults(before: number[] | null, args: readonly Arg[], result: Result): readonly number[] | null {
  const results = result instanceof Tensor ? [result] : result
  if (before === null && (result instanceof Tensor ? versionOf(result) === 0 : allUntouched(result))) return null
  const versions = before ?? pushVersions(args, []).map(() => 0)
  return pushVersions(results, versions)
}

function below(op: OpDef, args: readonly Arg[], recording: boolean): Result {
  // A kernel written with operators must not record a second tape inside.
  const outer = dispatchState.gradEnabled
  const outerRecording = dispatchState.recording
  dispatchState.gradEnabled = false
  dispatchState.recording = recording
  try {
    return dispatchBelowAutograd(op, args)
  } finally {
    dispatchState.gradEnabled = outer
    dispatchState.recording = outerRecording
  }
}

function record(op: OpDef, args: readonly Arg[]): Result {
  if (cutsGradient(op)) return below(op, args, false)
  const edges: EdgeList = { targets: [], outputNrs: null }
  pushEdges(op, args, edges)
  const before = argVersions(args)
  const result = below(op, args, true)
  if (result instanceof Tensor) {
    // `contiguous` and the like may return their argument itself: it has its history already.
    if (dtypeInfo[result.dtype].floating && !args.includes(result))
      setGradFn(result, new OpNode(op, args, result, edges, withResults(before, args, result)), 0)
    return result
  }
  const outputs = result
  if (!outputs.some((t) => dtypeInfo[t.dtype].floating)) return outputs
  const node = new OpNode(op, args, outputs, edges, withResults(before, args, outputs))
  for (let i = 0; i < outputs.length; i++) {
    const output = outputs[i] as Tensor
    if (dtypeInfo[output.dtype].floating) setGradFn(output, node, i)
  }
  return outputs
}

function needsGrad(args: readonly Arg[]): boolean {
  return args.some((arg) => (arg instanceof Tensor ? arg.requiresGrad : Array.isArray(arg) && needsGrad(arg as readonly Arg[])))
}

function recordInPlace(op: OpDef, functional: OpDef, args: readonly Arg[]): Result {
  const self = args[0] as Tensor
  if (!(dispatchState.gradEnabled && needsGrad(args))) return write(op, args, self, false)
  if (self.requiresGrad && self.gradFn === null) {
    throw new AutogradError(
      `${op.qualname}: self is a leaf that requires grad, and cannot be modified in place while gradients are recorded. ` +
        'Do it inside noGrad(() => …) (as optimizers do), or use the operator without the trailing underscore.',
    )
  }
  if (self.viewBase !== null) {
    throw new AutogradError(
      `${op.qualname}: self is a view, and modifying a view in place while gradients are recorded is not supported: the base would need a new history. ` +
        'Compute the pieces and join them with torch.cat or torch.stack, or do it inside noGrad(() => …).',
    )
  }
  if (!dtypeInfo[self.dtype].floating) {
    throw new AutogradError(
      `${op.qualname}: a result that requires grad cannot be written into a tensor of dtype ${self.dtype}; only floating-point tensors have gradients.`,
    )
  }
  const edges: EdgeList = { targets: [], outputNrs: null }
  pushEdges(op, args, edges)
  const before = argVersions(args)
  const result = write(op, args, self, true)
  setGradFn(self, new OpNode(functional, args, self, edges, withResults(before, args, self)), 0)
  return result
}

function write(op: OpDef, args: readonly Arg[], self: Tensor, recording: boolean): Result {
  const before = versionOf(self)
  const result = below(op, args, recording)
  // A mode has recorded the write and will perform it later; what was saved of self is stale from now on all the same.
  if (versionOf(self) === before) raiseVersion(self)
  return result
}

/** Autograd's part of `dispatch`. */
export function autogradHandler(op: OpDef, args: readonly Arg[]): Result {
  return op.functional === null ? record(op, args) : recordInPlace(op, op.functional, args)
}

dispatchState.autograd = autogradHandler
