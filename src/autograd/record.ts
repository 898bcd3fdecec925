// Recording: what happens above the modes when an operator is called on tensors that require grad.
import {
  anyRequiresGrad,
  dispatchBelowAutograd,
  dispatchState,
  isArgList,
  isDetached,
  isViewOfDetached,
  tensorAt,
  viewChanges,
} from '../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../dispatch/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { asStrided, opOf } from '../ops/index.ts'
import { historyOfViews, memoryOrder, Tensor } from '../tensor/index.ts'
import { CopySlices } from './copySlices.ts'
import { AutogradError } from './errors.ts'
import { enableGrad } from './gradMode.ts'
import { producerOf, pushEdge, setGradFn } from './node.ts'
import type { EdgeList } from './node.ts'
import { OpNode } from './opNode.ts'
import { keptArguments } from './overwrittenSelf.ts'
import { noteLayout, raiseVersion, versionOf } from './versions.ts'

/** Whether an operator without derivative has results that do not depend differentiably on its arguments. Any other one fails in backward, not silently. */
function cutsGradient(op: OpDef): boolean {
  return op.derivative === null && (op.tags.has('creation') || op.tags.has('random') || op.name === 'detach')
}

function pushEdges(args: readonly Arg[], edges: EdgeList): void {
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (arg instanceof Tensor) {
      pushEdge(edges, arg)
    } else if (isArgList(arg)) pushEdges(arg, edges)
  }
}

/** Whether no tensor has been written to since it was created. */
function allUntouched(args: readonly Arg[]): boolean {
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (arg instanceof Tensor) {
      if (versionOf(arg) !== 0) return false
    } else if (isArgList(arg) && !allUntouched(arg)) return false
  }
  return true
}

function pushVersions(args: readonly Arg[], versions: number[]): number[] {
  for (const arg of args) {
    if (arg instanceof Tensor) versions.push(versionOf(arg))
    else if (isArgList(arg)) pushVersions(arg, versions)
  }
  return versions
}

const argVersions = (args: readonly Arg[]): number[] | null => (allUntouched(args) ? null : pushVersions(args, []))

/** Versions of the arguments and then of the results; null if all are 0. */
function withResults(before: number[] | null, args: readonly Arg[], result: Result): readonly number[] | null {
  const results = result instanceof Tensor ? [result] : result
  if (before === null && (result instanceof Tensor ? versionOf(result) === 0 : allUntouched(result))) return null
  const versions = before ?? pushVersions(args, []).map(() => 0)
  return pushVersions(results, versions)
}

function below(op: OpDef, args: readonly Arg[], recording: boolean): Result {
  // A kernel that is written with operators must not record a second tape.
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
  pushEdges(args, edges)
  const before = argVersions(args)
  const result = below(op, args, true)
  if (result instanceof Tensor) {
    // An operator such as `contiguous` may return its argument itself, which has its history already.
    if (dtypeInfo[result.dtype].differentiable && !args.includes(result))
      setGradFn(result, new OpNode(op, args, result, edges, withResults(before, args, result)), 0)
    return result
  }
  const outputs = result
  if (!outputs.some((t) => dtypeInfo[t.dtype].differentiable)) return outputs
  const node = new OpNode(op, args, outputs, edges, withResults(before, args, outputs))
  outputs.forEach((output, i) => {
    if (dtypeInfo[output.dtype].differentiable) setGradFn(output, node, i)
  })
  return outputs
}

/**
 * The tensor behind a view that is modified in place while gradients are recorded; null if it is not a view. Throws AutogradError if it may not be: a leaf, a view of one, and views of which it is not
 * clear what they shall get.
 */
function checkModified(qualname: string, self: Tensor): Tensor | null {
  const base = self.viewBase
  if (base === null || isDetached(self)) {
    if (self.requiresGrad && self.gradFn === null)
      throw new AutogradError(
        `${qualname}: self is a leaf that requires grad, and cannot be modified in place while gradients are recorded. ` +
          'Do it inside noGrad(() => …) (as optimizers do), or use the operator without the trailing underscore.',
      )
    return null
  }
  if (self.ownHistory === null || isViewOfDetached(self))
    throw new AutogradError(
      `${qualname}: self is a view that was made inside noGrad, or of a detached tensor, and is modified in place while gradients are recorded: it is not clear whether the tensor ` +
        'behind it shall get a history. Make the view and write to it both inside noGrad(() => …), or both outside.',
    )
  // A leaf may be a view itself: its own views lead to what it is a view of, and past it.
  if (self.requiresGrad && (base.gradFn === null || self.gradFn === null))
    throw new AutogradError(
      `${qualname}: self is a view of a leaf that requires grad, and cannot be modified in place while gradients are recorded. ` +
        'Do it inside noGrad(() => …) (as optimizers do), or write to a clone() of the leaf.',
    )
  return base
}

/** The tensor that a write to `self` gives a new history: what it is a view of, or itself. Throws AutogradError if that cannot have one. */
function historyOwner(op: OpDef, self: Tensor): { readonly base: Tensor; readonly order: readonly number[] } | null {
  const base = checkModified(op.qualname, self)
  if (base === null) return null
  const order = memoryOrder(base.sizes, base.steps)
  if (self.dtype !== base.dtype || order === null)
    throw new AutogradError(
      `${op.qualname}: self is a view of a tensor ${order === null ? 'with gaps in its memory' : `of another dtype, ${base.dtype}`}, and writing a value that requires grad into it is not supported. ` +
        'Compute the pieces and join them with torch.cat or torch.stack.',
    )
  return { base, order }
}

function recordInPlace(op: OpDef, functional: OpDef, args: readonly Arg[]): Result {
  const self = tensorAt(args, 0)
  if (!(dispatchState.gradEnabled && anyRequiresGrad(args))) return write(op, args, self, false)
  const owner = historyOwner(op, self)
  if (!dtypeInfo[self.dtype].differentiable) {
    throw new AutogradError(
      `${op.qualname}: a result that requires grad cannot be written into a tensor of dtype ${self.dtype}; only floating-point and complex tensors have gradients.`,
    )
  }
  const edges: EdgeList = { targets: [], outputNrs: null }
  pushEdges(args, edges)
  const kept = keptArguments(functional, args)
  const before = argVersions(kept)
  const result = write(op, args, self, true)
  const node = new OpNode(functional, kept, self, edges, withResults(before, kept, self))
  if (owner === null) setGradFn(self, node, 0)
  else {
    setGradFn(owner.base, new CopySlices(owner.base, self, node, owner.order), 0)
    joinBase(self)
  }
  return result
}

function write(op: OpDef, args: readonly Arg[], self: Tensor, recording: boolean): Result {
  const before = versionOf(self)
  const result = below(op, args, recording)
  // If a mode has recorded the write to perform it later, what was saved of self is stale from now on all the same.
  if (versionOf(self) === before) raiseVersion(self)
  return result
}

/**
 * Autograd's part of `becomeView`: the tensor gets the history of the view that it becomes; nodes that have seen it go on from the shape that it had. As in PyTorch this counts as a write: derivatives
 * that need its data are refused.
 */
function recordViewChange(qualname: string, self: Tensor, view: (self: Tensor) => Tensor, take: (becomes: Tensor) => void): void {
  if (dispatchState.gradEnabled && self.requiresGrad) checkModified(qualname, self)
  // What has a history gets a right one also under noGrad. A leaf stays a leaf there.
  const becomes = self.requiresGrad && self.gradFn !== null ? enableGrad(() => view(self)) : view(self)
  if (becomes === self) return
  self.storage?.announceWrite()
  noteLayout(self)
  take(becomes)
  raiseVersion(self)
  const node = isDetached(becomes) || !becomes.requiresGrad ? null : producerOf(becomes)
  if (node !== null) setGradFn(self, node, becomes.outputNr)
}

/** Autograd's part of `dispatch`. */
function autogradHandler(op: OpDef, args: readonly Arg[]): Result {
  return op.functional === null ? record(op, args) : recordInPlace(op, op.functional, args)
}

/**
 * Gives a view that was made when its base had no history the one that in-place writes have given the base since: it is a window on what the base is now. PyTorch
 * makes the same AsStridedBackward0.
 */
function joinBase(view: Tensor): void {
  const base = view.viewBase
  const op = opOf(asStrided)
  // The base may lie on other memory by now (set_).
  if (base === null || op === undefined || base.storage !== view.storage) return
  if (view.dtype !== base.dtype) {
    view.ownHistory = null
    if (!dtypeInfo[view.dtype].differentiable) return
    throw new AutogradError(
      `this view of dtype ${view.dtype} was made before a value that requires grad was written into its base of dtype ${base.dtype}, and has no history. Make the view after the write.`,
    )
  }
  const args = [base, view.sizes, view.steps, view.offset]
  const edges: EdgeList = { targets: [], outputNrs: null }
  pushEdge(edges, base)
  setGradFn(view, new OpNode(op, args, view, edges, withResults(argVersions(args), args, view)), 0)
}

/** Makes the dispatcher record operators on the tape. */
export function installAutograd(): void {
  historyOfViews.join = joinBase
  viewChanges.record = recordViewChange
  dispatchState.autograd = autogradHandler
}
