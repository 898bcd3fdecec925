// The tape node of one operator call: keeps the call's arguments and results, and asks the operator's derivative for gradients.
import { UnsupportedError } from '../errors/index.ts'
import type { Arg, OpDef } from '../dispatch/index.ts'
import { sumToSize, to } from '../ops/index.ts'
import { formatShape, sameShape, Tensor } from '../tensor/index.ts'
import { AutogradError } from './errors.ts'
import { GradNode } from './node.ts'
import type { EdgeList } from './node.ts'
import { versionOf } from './versions.ts'

const NO_ARGS: readonly Arg[] = []
const NO_TENSORS: readonly Tensor[] = []

/** A stand-in for a saved tensor that was overwritten: its shape may be read, its data may not. Many derivatives need only the shape. */
function overwritten(tensor: Tensor, what: string, op: OpDef): Tensor {
  const stand = new Tensor(tensor.shape, tensor.dtype, null, tensor.strides, tensor.offset)
  stand.pending = {
    materialize(): never {
      throw new AutogradError(
        `backward of ${op.qualname}: a tensor needed for its gradient has been modified in place after the call: ${what}, of shape ${formatShape(tensor.shape)}. ` +
          'Use the operator without the trailing underscore, or call clone() before you modify the tensor.',
      )
    },
  }
  return stand
}

export class OpNode extends GradNode {
  readonly op: OpDef
  args: readonly Arg[]
  result: Tensor | readonly Tensor[]
  /** Versions of the tensors among args, then of the results; null = all were 0 (an allocation less per operator). */
  readonly versions: readonly number[] | null
  released = false

  constructor(op: OpDef, args: readonly Arg[], result: Tensor | readonly Tensor[], edges: EdgeList, versions: readonly number[] | null) {
    super(edges, result instanceof Tensor ? 1 : result.length)
    this.op = op
    this.args = args
    this.result = result
    this.versions = versions
  }

  get outputs(): readonly Tensor[] {
    return this.result instanceof Tensor ? [this.result] : this.result
  }

  /** PyTorch's spelling: AddBackward0. */
  get name(): string {
    const { name } = this.op.schema
    return `${name.replace(/(^|_+)([a-z0-9])/g, (_, _sep: string, c: string) => c.toUpperCase())}Backward0`
  }

  release(): void {
    this.args = NO_ARGS
    this.result = NO_TENSORS
    this.released = true
  }

  apply(grads: readonly (Tensor | null)[], needs: readonly boolean[]): readonly (Tensor | null)[] {
    const { op, args } = this
    if (op.derivative === null) {
      throw new UnsupportedError(
        `backward of ${op.qualname}: this operator has no derivative. Call detach() on its result if no gradient should flow through it.`,
      )
    }
    const saved = this.checked()
    const argNeeds = new Array<boolean>(args.length)
    let slot = 0
    for (let i = 0; i < args.length; i++) {
      const arg = args[i] as Arg
      if (arg instanceof Tensor) argNeeds[i] = needs[slot++] === true
      else if (isTensorList(arg)) {
        let any = false
        for (const item of arg) if (item instanceof Tensor && needs[slot++] === true) any = true
        argNeeds[i] = any
      } else argNeeds[i] = false
    }
    const results = op.derivative(grads, { args: saved.args, outputs: saved.outputs, needs: argNeeds })
    const flat: (Tensor | null)[] = []
    for (let i = 0; i < args.length; i++) {
      const arg = args[i] as Arg
      const result = results[i] ?? null
      if (arg instanceof Tensor) flat.push(needs[flat.length] === true ? this.fit(result as Tensor | null, arg) : null)
      else if (isTensorList(arg)) {
        for (let j = 0; j < arg.length; j++) {
          const item = arg[j]
          if (!(item instanceof Tensor)) continue
          const grad = (result as readonly (Tensor | null)[] | null)?.[j] ?? null
          flat.push(needs[flat.length] === true ? this.fit(grad, item) : null)
        }
      }
    }
    return flat
  }

  /** Undoes broadcasting and promotion: the gradient has the argument's shape and dtype. */
  private fit(grad: Tensor | null, arg: Tensor): Tensor | null {
    if (grad === null) return null
    let fitted = grad
    if (!sameShape(fitted.shape, arg.shape)) fitted = sumToSize(fitted, arg.shape)
    if (fitted.dtype !== arg.dtype) fitted = to(fitted, arg.dtype)
    return fitted
  }

  /** Arguments and results as saved; those overwritten since then are replaced by stand-ins without data. */
  private checked(): { args: readonly Arg[]; outputs: readonly Tensor[] } {
    const { op, versions } = this
    const results = this.outputs
    let { args } = this
    let outputs = results
    let slot = 0
    const check = (tensor: Tensor, what: string): Tensor => (versionOf(tensor) === (versions?.[slot++] ?? 0) ? tensor : overwritten(tensor, what, op))
    for (let i = 0; i < args.length; i++) {
      const arg = args[i] as Arg
      const argName = op.schema.args[i]?.name ?? `#${i}`
      let fresh: Arg = arg
      if (arg instanceof Tensor) fresh = check(arg, `argument '${argName}'`)
      else if (isTensorList(arg)) {
        const items = arg.map((item, j) => (item instanceof Tensor ? check(item, `argument '${argName}[${j}]'`) : item))
        fresh = items.some((item, j) => item !== arg[j]) ? items : arg
      }
      if (fresh !== arg) {
        if (args === this.args) args = args.slice()
        ;(args as Arg[])[i] = fresh
      }
    }
    for (let i = 0; i < outputs.length; i++) {
      const output = outputs[i] as Tensor
      const fresh = check(output, `result ${i}`)
      if (fresh !== output) {
        if (outputs === results) outputs = outputs.slice()
        ;(outputs as Tensor[])[i] = fresh
      }
    }
    return { args, outputs }
  }
}

/** A list argument that may hold tensors (Tensor[], Tensor?[]), not one of sizes. */
export function isTensorList(arg: Arg): arg is readonly Arg[] {
  return Array.isArray(arg) && arg.some((item) => item instanceof Tensor)
}
