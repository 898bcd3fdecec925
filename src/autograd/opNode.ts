// The tape node of one operator call: keeps the arguments and results of the call, and asks the operator's derivative for gradients.
import { anyTensor, isArgList } from '../dispatch/index.ts'
import type { Arg, DerivativeContext, OpDef, Result } from '../dispatch/index.ts'
import { UnsupportedError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { sumToSize, to } from '../ops/index.ts'
import type { Size } from '../protocol/index.ts'
import { remembered } from '../protocol/remembered.ts'
import { sameShape, Tensor } from '../tensor/index.ts'
import { anomaly, notePlace } from './anomaly.ts'
import { GradNode } from './node.ts'
import type { EdgeList } from './node.ts'
import { Overwritten } from './overwritten.ts'
import { isAsSaved, layoutAt } from './versions.ts'

const NO_ARGS: readonly Arg[] = []
const NO_TENSORS: readonly Tensor[] = []

const names = new Map<string, string>()
const backwardName = (name: string): string => `${name.replace(/(^|_+)([a-z0-9])/g, (_, _sep: string, c: string) => c.toUpperCase())}Backward0`

export class OpNode extends GradNode {
  readonly op: OpDef
  args: readonly Arg[]
  result: Result
  /** Versions of the tensors among args, then of the results; null if all were 0 (that saves an allocation per operator). */
  readonly versions: readonly number[] | null
  /** The number of the node that saw the arguments: its own, or that of the node for which it stands. */
  readonly savedAt: number
  released = false

  constructor(op: OpDef, args: readonly Arg[], result: Result, edges: EdgeList, versions: readonly number[] | null, savedAt?: number) {
    super(edges, result instanceof Tensor ? 1 : result.length)
    this.savedAt = savedAt ?? this.seq
    this.op = op
    this.args = args
    this.result = result
    this.versions = versions
    if (anomaly.notesPlaces) notePlace(this)
  }

  get outputs(): readonly Tensor[] {
    return this.result instanceof Tensor ? [this.result] : this.result
  }

  override get isView(): boolean {
    return this.op.tags.has('view')
  }

  override onTopOf(edges: EdgeList): OpNode {
    return new OpNode(this.op, this.args, this.result, edges, this.versions, this.savedAt)
  }

  override get lastGradientFirst(): boolean {
    return this.op.tags.has('lastGradientFirst')
  }

  /** Whether an argument or a result has been written to since the call. */
  get isOverwritten(): boolean {
    const { args, result, versions, savedAt } = this
    let at = 0
    for (let i = 0; i < args.length; i++) {
      const arg = args[i]
      if (arg instanceof Tensor) {
        if (!isAsSaved(arg, versions?.[at++] ?? 0, savedAt)) return true
      } else if (isArgList(arg)) {
        for (const item of arg) if (item instanceof Tensor && !isAsSaved(item, versions?.[at++] ?? 0, savedAt)) return true
      }
    }
    if (result instanceof Tensor) return !isAsSaved(result, versions?.[at] ?? 0, savedAt)
    return result.some((output) => !isAsSaved(output, versions?.[at++] ?? 0, savedAt))
  }

  /** PyTorch's spelling: AddBackward0. */
  get name(): string {
    return remembered(names, this.op.schema.name, backwardName)
  }

  release(): null {
    this.args = NO_ARGS
    this.result = NO_TENSORS
    this.released = true
    return null
  }

  apply(grads: readonly (Tensor | null)[], needs: readonly boolean[]): readonly (Tensor | null)[] {
    const { op, args } = this
    if (op.derivative === null) {
      throw new UnsupportedError(
        `backward of ${op.qualname}: this operator has no derivative. Call detach() on its result if no gradient should flow through it.`,
      )
    }
    const overwritten = new Overwritten(op, this.savedAt)
    const results = overwritten.watching(op.derivative, grads, this.#context(needs, overwritten))
    // One gradient per edge: lists are flattened.
    const flat: (Tensor | null)[] = []
    const add = (grad: Tensor | null, arg: Tensor): void => {
      flat.push(needs[flat.length] === true && grad !== null ? fit(grad, layoutAt(arg, this.savedAt)?.shape ?? arg.symSizes, arg.dtype) : null)
    }
    for (let i = 0; i < args.length; i++) {
      const arg = args[i]
      const result = results[i] ?? null
      if (arg instanceof Tensor) add(result instanceof Tensor ? result : null, arg)
      else if (isArgList(arg)) {
        const list = result === null || result instanceof Tensor ? NO_TENSORS : result
        for (let j = 0; j < arg.length; j++) {
          const item = arg[j]
          if (item instanceof Tensor) add(list[j] ?? null, item)
        }
      }
    }
    return flat
  }

  /** The call as its derivative sees it: tensors that were overwritten since then are replaced by stand-ins without data. `needs` is per edge. */
  #context(needs: readonly boolean[], overwritten: Overwritten): DerivativeContext {
    const { op, versions, savedAt } = this
    let slot = 0
    const check = (tensor: Tensor, what: () => string): Tensor => {
      const saved = versions?.[slot++] ?? 0
      return isAsSaved(tensor, saved, savedAt) ? tensor : overwritten.standInFor(tensor, what())
    }
    const nameOf = (i: number): string => op.schema.args[i]?.name ?? `#${i}`
    const args: Arg[] = []
    const argNeeds: boolean[] = []
    let edge = 0
    for (let i = 0; i < this.args.length; i++) {
      const arg = this.args[i] ?? null
      const first = edge
      if (arg instanceof Tensor) {
        edge++
        args.push(check(arg, () => `argument '${nameOf(i)}'`))
      } else if (isArgList(arg) && anyTensor(arg)) {
        const checked = arg.map((item, j) => {
          if (!(item instanceof Tensor)) return item
          edge++
          return check(item, () => `argument '${nameOf(i)}[${j}]'`)
        })
        args.push(checked)
      } else args.push(arg)
      let wanted = false
      for (let e = first; e < edge; e++) wanted ||= needs[e] === true
      argNeeds.push(wanted)
    }
    return { args, outputs: this.outputs.map((output, i) => check(output, () => `result ${i}`)), needs: argNeeds }
  }
}

/** Undoes broadcasting and promotion: the gradient gets the shape and dtype of the argument. */
function fit(grad: Tensor, sizes: readonly Size[], dtype: DType): Tensor {
  const summed = sameShape(grad.symSizes, sizes) ? grad : sumToSize(grad, sizes)
  return summed.dtype === dtype ? summed : to(summed, dtype)
}
