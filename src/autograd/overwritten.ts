// Saved tensors that were overwritten after the call. A derivative that computes with one throws; one that needs its shape only does not.
import { dispatchBelowAutograd, dispatchState, isArgList, withMode } from '../dispatch/index.ts'
import type { Arg, DerivativeContext, DispatchMode, OpDef, Result } from '../dispatch/index.ts'
import { Storage, Tensor, awayFromCpu, formatShape, hasNoElements, makeFake } from '../tensor/index.ts'
import { AutogradError } from './errors.ts'
import { layoutAt } from './versions.ts'

/** The stand-ins for what was overwritten of one call. */
export class Overwritten implements DispatchMode {
  readonly name = 'overwritten values'
  readonly #op: OpDef
  readonly #savedAt: number
  /** The memory of the stand-ins; null: there is none. */
  #memory: Set<Storage> | null = null
  /** The mode outside. What concerns the innermost one is its affair. */
  readonly #outer = dispatchState.mode

  constructor(op: OpDef, savedAt: number) {
    this.#op = op
    this.#savedAt = savedAt
  }

  /** A stand-in for a saved tensor: its shape may be read, its data may not. */
  standInFor(tensor: Tensor, what: string): Tensor {
    const { dtype, symSizes: shape, symSteps: strides, symOffset: offset } = tensor
    const standIn = makeFake({ ...(layoutAt(tensor, this.#savedAt) ?? { shape, dtype, strides, offset }), ...awayFromCpu(tensor) })
    const { qualname } = this.#op
    const settle = (): never => {
      throw new AutogradError(
        `backward of ${qualname}: a tensor needed for its gradient has been modified in place after the call: ${what}, of shape ${formatShape(standIn.symSizes)}. ` +
          'Use the operator without the trailing underscore, or call clone() before you modify the tensor.',
      )
    }
    const storage = Storage.deferred(0, { settle }, tensor.device)
    standIn.storage = storage
    ;(this.#memory ??= new Set()).add(storage)
    return standIn
  }

  /** The gradients of a derivative, some of whose values may be stand-ins. */
  watching<T>(
    derivative: (grads: readonly (Tensor | null)[], context: DerivativeContext) => T,
    grads: readonly (Tensor | null)[],
    context: DerivativeContext,
  ): T {
    return this.#memory === null ? derivative(grads, context) : withMode(this, () => derivative(grads, context))
  }

  /** Kernels do not read what they are given where their results have no elements: whether a program is refused would depend on sizes. */
  handle(op: OpDef, args: readonly Arg[]): Result {
    const result = dispatchBelowAutograd(op, args)
    const isUnread = (result instanceof Tensor ? [result] : result).some(({ symSizes }) => hasNoElements(symSizes))
    if (isUnread && !op.tags.has('view') && !op.tags.has('creation')) this.#read(args)
    return result
  }

  changeView(qualname: string, self: Tensor, change: () => Tensor, ofItself: boolean): Tensor {
    return this.#outer?.changeView === undefined ? change() : this.#outer.changeView(qualname, self, change, ofItself)
  }

  read(tensor: Tensor, whole: boolean): unknown {
    return this.#outer?.read?.(tensor, whole)
  }

  #read(args: readonly Arg[]): void {
    for (const arg of args) {
      if (isArgList(arg)) this.#read(arg)
      else if (arg instanceof Tensor && arg.storage !== null && this.#memory?.has(arg.storage) === true) arg.realize()
    }
  }
}
