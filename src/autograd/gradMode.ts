// Grad mode: whether operators on tensors that require grad are recorded.
/// <reference lib="esnext.disposable" preserve="true" />
import { checkArgument, checkCount, isCallable } from '../protocol/index.ts'
import { dispatchState } from '../dispatch/index.ts'

/** Restores the previous grad mode when disposed: `using _ = noGrad()`. */
class GradModeGuard implements Disposable {
  readonly #previous: boolean
  #done = false

  constructor(enabled: boolean) {
    this.#previous = dispatchState.gradEnabled
    dispatchState.gradEnabled = enabled
  }

  [Symbol.dispose](): void {
    if (this.#done) return
    this.#done = true
    dispatchState.gradEnabled = this.#previous
  }
}

/**
 * What `noGrad()` returns. The mode begins where `using` asks for the method that ends it, so a bare `noGrad()`, which could never be ended, changes nothing, as in PyTorch.
 */
class GradModeScope implements Disposable {
  readonly #enabled: boolean
  #end: (() => void) | null = null

  constructor(enabled: boolean) {
    this.#enabled = enabled
  }

  get [Symbol.dispose](): () => void {
    if (this.#end === null) {
      const guard = new GradModeGuard(this.#enabled)
      this.#end = () => guard[Symbol.dispose]()
    }
    return this.#end
  }
}

function withGradMode<T>(where: string, enabled: boolean, fn: (() => T) | undefined): T | Disposable {
  if (fn === undefined) return new GradModeScope(enabled)
  checkArgument(isCallable(fn), where, 'fn', 'a function, such as () => model(x)', fn)
  // No helper with a frame of its own: it would take the place of a frame of the program in stacks.
  const outer = dispatchState.gradEnabled
  dispatchState.gradEnabled = enabled
  try {
    return fn()
  } finally {
    dispatchState.gradEnabled = outer
  }
}

/**
 * Runs `fn` without recording gradients and returns its result; without an argument, the scope of a block: `using _ = noGrad()`.
 * Without `using` that call does nothing; `setGradEnabled(false)` turns recording off from now on.
 * The mode ends when `fn` returns, so for an async function it covers the part before the first `await`. PyTorch's `torch.no_grad`.
 */
export function noGrad(): Disposable
export function noGrad<T>(fn: () => T): T
export function noGrad<T>(fn?: () => T): T | Disposable {
  checkCount('noGrad', arguments, 1)
  return withGradMode('noGrad', false, fn)
}

/** Records gradients, also inside {@link noGrad}. PyTorch's `torch.enable_grad`. */
export function enableGrad(): Disposable
export function enableGrad<T>(fn: () => T): T
export function enableGrad<T>(fn?: () => T): T | Disposable {
  checkCount('enableGrad', arguments, 1)
  return withGradMode('enableGrad', true, fn)
}

/** The same as {@link noGrad}; PyTorch's `torch.inference_mode`. */
export function inferenceMode(): Disposable
export function inferenceMode<T>(fn: () => T): T
export function inferenceMode<T>(fn?: () => T): T | Disposable {
  checkCount('inferenceMode', arguments, 1)
  return withGradMode('inferenceMode', false, fn)
}

/** Turns recording on or off from now on; disposing the result restores the previous mode. PyTorch's `torch.set_grad_enabled`. */
export function setGradEnabled(enabled: boolean): Disposable {
  checkCount('setGradEnabled', arguments, 1)
  checkArgument(typeof enabled === 'boolean', 'setGradEnabled', 'enabled', 'true or false', enabled)
  return new GradModeGuard(enabled)
}

/** Whether operators are recorded at the moment. PyTorch's `torch.is_grad_enabled`. */
export function isGradEnabled(): boolean {
  return dispatchState.gradEnabled
}
