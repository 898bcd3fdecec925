// The dispatcher: every operator call on tensors goes through `dispatch`: composites decompose, autograd records, then the innermost mode
// or, without one, the kernel. Autograd registers itself here, so that this room knows nothing of tapes.
import { InternalError } from '../errors/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { Arg, OpDef, Result } from './op.ts'

/** A layer that sees every operator call below autograd: fake tensors, tracing, compile's capture, profiling. PyTorch's TorchDispatchMode. */
export interface DispatchMode {
  readonly name: string
  /** Handles one call. Inside, this mode is inactive: `dispatch` and `dispatchBelowAutograd` reach the modes outside it. */
  handle(op: OpDef, args: readonly Arg[]): Result
  /** The mode leaves itself where it must (with `withoutModes`), and stays active while it handles a call: the dispatcher saves the bookkeeping. */
  readonly staysActive?: boolean
}

export type AutogradHandler = (op: OpDef, args: readonly Arg[]) => Result

/** Per-thread dispatch state. One object, so that the hot path reads fields instead of module bindings. */
export const dispatchState: {
  mode: DispatchMode | null
  modes: DispatchMode[]
  gradEnabled: boolean
  recording: boolean
  autograd: AutogradHandler | null
} = {
  mode: null,
  modes: [],
  gradEnabled: true,
  /** Below autograd: whether the call at hand gets a gradient node. */
  recording: false,
  autograd: null,
}

/** Runs `fn` with `mode` innermost; restored also when `fn` throws. */
export function withMode<T>(mode: DispatchMode, fn: () => T): T {
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

/** Runs `fn` without any mode: on real tensors, now. PyTorch's `_disable_current_modes`. */
export function withoutModes<T>(fn: () => T): T {
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

function anyRequiresGrad(args: readonly Arg[]): boolean {
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (arg instanceof Tensor) {
      if (arg.requiresGrad) return true
    } else if (Array.isArray(arg) && anyRequiresGrad(arg as readonly Arg[])) return true
  }
  return false
}

/** Calls an operator with normalized arguments (one per schema argument). */
export function dispatch(op: OpDef, args: readonly Arg[]): Result {
  if (op.derivative === null && op.decompose !== null) return (op.decompose as (...a: readonly Arg[]) => Result)(...args)
  const state = dispatchState
  if (state.autograd !== null && ((state.gradEnabled && anyRequiresGrad(args)) || op.functional !== null)) return state.autograd(op, args)
  return dispatchBelowAutograd(op, args)
}

/** The part of {@link dispatch} below autograd: the innermost mode, or the kernel. */
export function dispatchBelowAutograd(op: OpDef, args: readonly Arg[]): Result {
  const { mode } = dispatchState
  if (mode === null) return runKernel(op, args)
  if (mode.staysActive === true) return mode.handle(op, args)
  const { modes } = dispatchState
  // The mode is inactive while it handles a call.
  modes.pop()
  dispatchState.mode = modes[modes.length - 1] ?? null
  try {
    return mode.handle(op, args)
  } finally {
    modes.push(mode)
    dispatchState.mode = mode
  }
}

/** Runs the eager implementation: the kernel, or the decomposition where an operator has no kernel of its own. */
export function runKernel(op: OpDef, args: readonly Arg[]): Result {
  if (op.kernel !== null) return (op.kernel as (...a: readonly Arg[]) => Result)(...args)
  if (op.decompose !== null) return (op.decompose as (...a: readonly Arg[]) => Result)(...args)
  throw new InternalError(`operator ${op.qualname} has neither a kernel nor a decomposition`)
}
