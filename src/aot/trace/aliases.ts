// Functionalization: which tensors of a trace share memory, and what each holds after writes to any of them. A trace has no writes: a written tensor stands for
// another value from then on, and a write to a view becomes, view by view, a scatter into what it is a view of. Other views are made again when they are next read.
//
// Values are tensors too, which are never written. It is independent of what records the operators: they are called while the trace is active.
import { dispatch } from '../../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import { UnsupportedError } from '../../errors/index.ts'
import { isSize } from '../../protocol/index.ts'
import type { Size } from '../../protocol/index.ts'
import { asStrided, asStridedScatter, clone, contiguous, expand, permute, reshape, view } from '../../ops/index.ts'
import { isApart, sameStrides } from '../meta/layout.ts'
import { asTensor, hasNoElements, sameShape, sizeAdd, sizeLess, sizeProduct, sizeSub } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** A view operator with its arguments but the first; `index`: which of its results, if it has several. */
interface Step {
  readonly op: OpDef
  readonly args: readonly Arg[]
  readonly index: number | null
}

/** Memory that several tensors may share. */
export interface Memory {
  /** The tensor that covers it. */
  base: Tensor
  /** The program's tensor for which `base` stands, if that has got another shape since, or other memory. */
  owner: Tensor | null
  /** What `base` holds. */
  value: Tensor
  /** The number of writes. */
  version: number
}

/** A tensor as a part of a memory: the base, seen through views. */
interface Alias {
  readonly memory: Memory
  readonly steps: readonly Step[]
  /** What the tensor held at `version`. */
  value: Tensor
  version: number
}

/** The tensors of one trace. */
export class Aliases {
  readonly #aliases = new Map<Tensor, Alias>()

  /** Records that `result` is the result of a view operator, or the one at `index`. Its value is `result` itself, if nothing has been written yet. */
  addView(result: Tensor, op: OpDef, args: readonly Arg[], index: number | null = null): void {
    const { memory, steps } = this.#aliasOf(asTensor(args[0], `the first argument of ${op.qualname}`))
    const [, size = null, stride = null] = args
    // A window is one on the whole memory, wherever its tensor lies in it.
    const all =
      op === asStrided.op
        ? [{ op, args: [size, stride, sizeSub(result.symOffset, memory.base.symOffset)], index }]
        : [...steps, { op, args: args.slice(1), index }]
    this.#aliases.set(result, { memory, steps: all, value: result, version: 0 })
  }

  /** Records that `tensor` is `other` under another name: the same elements of the same memory. */
  addTwin(tensor: Tensor, other: Tensor): void {
    this.#aliases.set(tensor, { ...this.#aliasOf(other) })
  }

  /** What is known of a tensor belongs to `to`, of the same shape, from here on. */
  rename(tensor: Tensor, to: Tensor): void {
    const alias = this.#aliases.get(tensor)
    if (alias === undefined) return
    this.#aliases.delete(tensor)
    if (alias.memory.base === tensor) {
      alias.memory.base = to
      alias.memory.owner = tensor
    }
    if (alias.memory.value === tensor) alias.memory.value = to
    this.#aliases.set(to, alias.value === tensor ? { ...alias, value: to } : alias)
  }

  /** The memory of a tensor. */
  memoryOf(tensor: Tensor): Memory {
    return this.#aliasOf(tensor).memory
  }

  /** The tensor that covers the memory of a tensor. */
  baseOf(tensor: Tensor): Tensor {
    return this.#aliases.get(tensor)?.memory.base ?? tensor
  }

  /** Whether the tensor's memory has been written. */
  isWritten(tensor: Tensor): boolean {
    return (this.#aliases.get(tensor)?.memory.version ?? 0) > 0
  }

  /** How `tensor` is made of the tensor that covers its memory, or of another one in that one's place. Calls operators. */
  viewOf(tensor: Tensor): (whole: Tensor) => Tensor {
    const { steps } = this.#aliasOf(tensor)
    return (whole) =>
      steps.reduce((part, { op, args, index }) => {
        const [size = null, stride = null, offset] = args
        const rest = op === asStrided.op && isSize(offset) ? [size, stride, sizeAdd(whole.symOffset, offset)] : args
        return pick(dispatch(op, [part, ...rest]), index, op)
      }, whole)
  }

  /** What a tensor holds at this point of the trace. Calls operators if it is a view of what has been written since it was last read. */
  valueOf(tensor: Tensor): Tensor {
    const alias = this.#aliases.get(tensor)
    if (alias === undefined) return tensor
    const { memory, steps } = alias
    if (alias.version !== memory.version) {
      alias.value = steps.reduce((whole, step) => replay(memory.base, whole, step), memory.value)
      alias.version = memory.version
    }
    return alias.value
  }

  /** Makes what these tensors hold views of one value, where they share memory that was written: whoever writes to one of them later writes to the others, too. */
  join(tensors: readonly Tensor[]): void {
    const counts = new Map<Memory, number>()
    const aliases = [...new Set(tensors)].flatMap((tensor) => this.#aliases.get(tensor) ?? [])
    for (const { memory } of aliases) counts.set(memory, (counts.get(memory) ?? 0) + 1)
    for (const alias of aliases) if (alias.memory.version > 0 && (counts.get(alias.memory) ?? 0) > 1) alias.version = -1
  }

  /** Records that `value`, of the shape and dtype of `tensor`, has been written to it. Throws UnsupportedError for a view that has no scatter. */
  write(tensor: Tensor, value: Tensor): void {
    if (hasNoElements(tensor.symSizes)) return
    const alias = this.#aliasOf(tensor)
    const { memory } = alias
    memory.value = withLayoutOf(memory.base, this.#scatter(alias, tensor, value))
    memory.version++
    if (!sameShape(value.symSteps, tensor.symSteps)) return
    alias.value = value
    alias.version = memory.version
  }

  /** Records that the tensor, which covers its memory, has got its value: `value` stands for the tensor itself. */
  settle(base: Tensor, value: Tensor): void {
    const { memory } = this.#aliasOf(base)
    memory.value = value
    memory.version++
  }

  /** The tensors that cover a memory that was written. */
  written(): Tensor[] {
    const memories = new Set([...this.#aliases.values()].map((alias) => alias.memory))
    return [...memories].filter((memory) => memory.version > 0).map((memory) => memory.base)
  }

  #aliasOf(tensor: Tensor): Alias {
    const known = this.#aliases.get(tensor)
    if (known !== undefined) return known
    const alias: Alias = { memory: { base: tensor, owner: null, value: tensor, version: 0 }, steps: [], value: tensor, version: 0 }
    this.#aliases.set(tensor, alias)
    return alias
  }

  /** The memory with `value` in the place of the tensor. */
  #scatter({ memory, steps }: Alias, tensor: Tensor, value: Tensor): Tensor {
    const { base } = memory
    const wholes = [memory.value]
    for (const [i, step] of steps.entries()) {
      const whole = asTensor(wholes[i], 'what is viewed')
      // Elements that the view repeats: only the layout says which one the value belongs to.
      const [size, stride] = step.args
      const repeats =
        step.op === expand.op
          ? sizeLess(whole.symNumel, sizeProduct(sizesOf(size)))
          : step.op === asStrided.op && !isApart(sizesOf(size), sizesOf(stride))
      if (repeats) return scatterWindow(memory, tensor, value)
      wholes.push(i + 1 < steps.length ? replay(base, whole, step) : whole)
    }
    return steps.reduceRight((part, { op, args, index }, i) => {
      if (op.scatter === null || index !== null)
        throw new UnsupportedError(
          `a write to a view made by ${op.qualname} cannot be traced, since that operator has no scatter: clone() the view, or write to the tensor itself.`,
        )
      const whole = asTensor(wholes[i], 'what is viewed')
      return op.scatter(part, op === asStrided.op ? dense(base, whole) : whole, ...args)
    }, value)
  }
}

/** The view of another value. What is a view of the tensor may have to be a copy here, since values can be laid out differently. */
function replay(base: Tensor, whole: Tensor, { op, args, index }: Step): Tensor {
  if (op === view.op) return reshape(whole, sizesOf(args[0]))
  return pick(dispatch(op, [op === asStrided.op ? dense(base, whole) : whole, ...args]), index, op)
}

const pick = (result: Result, index: number | null, op: OpDef): Tensor =>
  asTensor(index === null || !Array.isArray(result) ? result : result[index], `the result of ${op.qualname}`)

const scatterWindow = ({ base, value: whole }: Memory, tensor: Tensor, value: Tensor): Tensor =>
  asStridedScatter(dense(base, whole), value, tensor.symSizes, tensor.symSteps, sizeSub(tensor.symOffset, base.symOffset))

/** The value of a whole memory, without gaps: windows of any strides are windows on that. */
function dense(base: Tensor, whole: Tensor): Tensor {
  if (!base.contiguousLayout)
    throw new UnsupportedError(
      'a tensor that is not contiguous was modified, and is seen through asStrided, or through an expanded view. This cannot be traced: call contiguous() first.',
    )
  return contiguous(whole)
}

/** A new value of a memory, laid out as its tensor is, so that the same views of it are possible. */
function withLayoutOf(base: Tensor, value: Tensor): Tensor {
  if (sameStrides(base, value)) return value
  if (base.contiguousLayout) return contiguous(value)
  const order = [...base.symSteps.keys()].toSorted((a, b) => Number(base.strides[b] ?? 0) - Number(base.strides[a] ?? 0))
  const inner = clone(permute(value, order))
  const laidOut = permute(
    inner,
    order.map((_, i) => order.indexOf(i)),
  )
  return sameStrides(base, laidOut) ? laidOut : value
}

const isSizes = (arg: Arg | undefined): arg is readonly Size[] => Array.isArray(arg) && arg.every(isSize)
const sizesOf = (arg: Arg | undefined): readonly Size[] => (isSizes(arg) ? arg : [])
