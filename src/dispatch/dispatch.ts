// The dispatcher. Every operator call on tensors goes through `dispatch`: composites decompose, autograd records, then the innermost mode
// or, without one, the kernel runs. The composition root installs autograd's handler here, so that this room does not depend on tapes.
import { checkArgument, checkCallable, isObject } from '../protocol/index.ts'
import { InternalError, UnsupportedError } from '../errors/index.ts'
import { allocating } from '../kernels/index.ts'
import type { ComplexDType } from '../kernels/index.ts'
import { anyComplex, anyRequiresGrad } from './args.ts'
import { decomposed } from './decomposed.ts'
import { devices, isOnDevice } from './devices.ts'
import { observed } from './observed.ts'
import type { OperatorObserver } from './observed.ts'
import { complexUse } from '../tensor/index.ts'
import type { ComplexNumber, Storage, Tensor } from '../tensor/index.ts'
import type { Arg, OpDef, Result } from './op.ts'

/** A layer that sees every operator call below autograd: fake tensors, tracing, compile's capture, profiling. PyTorch's TorchDispatchMode. */
export interface DispatchMode {
  readonly name: string
  /** Handles one call. Meanwhile this mode is inactive: `dispatch` and `dispatchBelowAutograd` reach the modes outside it. */
  handle(op: OpDef, args: readonly Arg[]): Result
  /** Set by a mode that stays active while it handles a call, and leaves itself where it has to (with `withoutModes`). It saves the dispatcher some bookkeeping. */
  readonly staysActive?: boolean
  /** Set by a mode that records where tensors are made. */
  readonly knowsDevices?: boolean
  /** Of a mode that computes later: computes what has been called so far, and from then on runs every operator at once. */
  abandon?(): void
  /** Of a mode that knows tensors: what it knows of `tensor` belongs to the tensor `to` from here on. */
  rename?(tensor: Tensor, to: Tensor): void
  /** Runs `change`, by which `self` becomes another view (see `becomeView`), or refuses it. Default: runs it. */
  changeView?(qualname: string, self: Tensor, change: () => Tensor, ofItself: boolean): Tensor
  /** Of a mode whose tensors have no data: what `item()`, or with `whole` `toArray()`, gives a program, such as a symbol. Undefined: nothing, so that they throw. */
  read?(tensor: Tensor, whole: boolean): unknown
  /** Of a mode that computes later: the memory of `storage` is about to be freed. True if the mode frees it later instead, which is allowed with `mayWait`. */
  beforeFree?(storage: Storage, mayWait: boolean): boolean
}

export type AutogradHandler = (op: OpDef, args: readonly Arg[]) => Result

/** Calls an operator that autocast has a rule for, with its arguments cast. */
export type AutocastHandler = (op: OpDef, args: readonly Arg[]) => Result

/** Calls an operator that has complex numbers, or the name of their dtype, among its arguments. */
export type ComplexHandler = (op: OpDef, args: readonly Arg[]) => Result

/** The dispatcher's state. One object, because the hot path reads fields faster than module bindings. */
export const dispatchState: {
  mode: DispatchMode | null
  modes: DispatchMode[]
  gradEnabled: boolean
  /** Below autograd: whether the current call gets a gradient node. */
  recording: boolean
  /** Whether numbers among arguments are known to differ from call to call (see {@link withChangingNumbers}). */
  changingNumbers: boolean
  /** Whether the library itself computes (an optimizer's update, a backward): the program does not see the values in between. */
  internal: boolean
  autograd: AutogradHandler | null
  /** Null outside of autocast, and within an operator that it has cast for. */
  autocast: AutocastHandler | null
  /** Calls an operator on complex tensors, or for a complex dtype; null where no operator takes them. */
  complex: ComplexHandler | null
  /** Makes a tensor without dimensions of a complex number among arguments; null where no operator takes them. */
  complexNumber: ((value: ComplexNumber, dtype: ComplexDType) => Tensor) | null
} = {
  mode: null,
  modes: [],
  gradEnabled: true,
  recording: false,
  changingNumbers: false,
  internal: false,
  autograd: null,
  autocast: null,
  complex: null,
  complexNumber: null,
}

/** Runs `fn` with `mode` innermost, and restores the modes even if `fn` throws. */
export function withMode<T>(mode: DispatchMode, fn: () => T): T {
  checkArgument(isObject(mode), 'withMode', 'mode', 'a DispatchMode', mode)
  checkCallable('withMode', 'fn', fn)
  const outer = dispatchState.mode
  dispatchState.modes.push(mode)
  dispatchState.mode = mode
  try {
    return fn()
  } finally {
    dispatchState.modes.pop()
    dispatchState.mode = outer
  }
}

/** Runs `fn` without any mode: operators run at once, on real tensors. PyTorch's `_disable_current_modes`. */
export function withoutModes<T>(fn: () => T): T {
  checkCallable('withoutModes', 'fn', fn)
  const { mode, modes } = dispatchState
  dispatchState.mode = null
  dispatchState.modes = []
  try {
    return fn()
  } finally {
    dispatchState.mode = mode
    dispatchState.modes = modes
  }
}

/** Runs `fn`, whose numbers (a count of steps, a learning rate) differ from call to call: a capture makes them inputs at once. */
export function withChangingNumbers<T>(fn: () => T): T {
  const outer = dispatchState.changingNumbers
  dispatchState.changingNumbers = true
  try {
    return fn()
  } finally {
    dispatchState.changingNumbers = outer
  }
}

/**
 * Whether anything but the caller hears of an operator on `args`: a mode, a backward pass, or a device. If not, a composite may run a kernel that leaves out what only a
 * backward reads.
 */
export const isWatched = (args: readonly Arg[]): boolean =>
  dispatchState.mode !== null || (dispatchState.gradEnabled && anyRequiresGrad(args)) || args.some(isOnDevice)

/**
 * Calls an operator with normalized arguments (one per schema argument); one that takes complex numbers as they are, such as a view, with `asIs`. One function does both,
 * since each frame more takes one of the user's from a stack trace.
 */
export function dispatch(op: OpDef, given: readonly Arg[], asIs = false): Result {
  if (devices.operators !== null && devices.operators.begins(given)) return devices.operators.within(op, given, asIs)
  if (complexUse.begun && !asIs && anyComplex(given)) return complexCall(op, given)
  if (dispatchState.autocast !== null && op.autocast !== 'as is') return dispatchState.autocast(op, given)
  const args = op.prepare === null ? given : op.prepare(given)
  if (op.derivative === null && op.decompose !== null) return decomposed(op.qualname, op.decompose, args)
  const state = dispatchState
  if (state.autograd !== null && ((state.gradEnabled && anyRequiresGrad(args)) || op.functional !== null)) return state.autograd(op, args)
  return dispatchBelowAutograd(op, args)
}

function complexCall(op: OpDef, args: readonly Arg[]): Result {
  const { complex } = dispatchState
  if (complex === null)
    throw new UnsupportedError(
      `${op.qualname}: there are complex numbers among the arguments, whose operators are not loaded: write import 'tensorfx/ops/complex'.`,
    )
  return complex(op, args)
}

/** The part of {@link dispatch} below autograd: the innermost mode, or the kernel. */
export function dispatchBelowAutograd(op: OpDef, args: readonly Arg[]): Result {
  const { mode } = dispatchState
  if (mode === null) return runKernel(op, args)
  if (mode.staysActive === true) return mode.handle(op, args)
  const { modes } = dispatchState
  modes.pop()
  dispatchState.mode = modes[modes.length - 1] ?? null
  try {
    return mode.handle(op, args)
  } finally {
    modes.push(mode)
    dispatchState.mode = mode
  }
}

/** Runs the eager implementation: the kernel, or the decomposition of an operator without a kernel of its own. */
export function runKernel(op: OpDef, args: readonly Arg[]): Result {
  const { kernel } = op
  const onDevice = devices.operators === null ? null : devices.operators.run(op, args)
  if (onDevice !== null) return onDevice
  if (kernel !== null) {
    const { observer } = observed
    return observer === null ? callKernel(op, kernel, args) : callObserved(observer, op, kernel, args)
  }
  if (op.decompose !== null) return decomposed(op.qualname, op.decompose, args)
  throw new InternalError(`operator ${op.qualname} has neither a kernel nor a decomposition`)
}

type EagerKernel = NonNullable<OpDef['kernel']>

function callObserved(observer: OperatorObserver, op: OpDef, kernel: EagerKernel, args: readonly Arg[]): Result {
  let result: Result | null = null
  observer.begin(op, args)
  try {
    return (result = callKernel(op, kernel, args))
  } finally {
    observer.end(op, args, result)
  }
}

function callKernel(op: OpDef, kernel: EagerKernel, args: readonly Arg[]): Result {
  const outer = allocating.operator
  allocating.operator = op
  const result = kernel(...args)
  // A kernel that calls another makes its result afterwards. After an error the next call sets it.
  allocating.operator = outer
  return result
}
