// Fake tensors whose sizes are symbols. Rules of operators that hold for symbols read `symSizes`, `symSteps`, `symOffset` and `symNumel`, which any tensor has; a rule that reads numbers of
// such a tensor is none for symbols, and is refused. Programs read symbols by the names that tensors have: `x.shape[0]`.
import { InternalError, UnsupportedError } from '../errors/index.ts'
import { allocating } from '../kernels/index.ts'
import type { Size } from '../protocol/index.ts'
import { checkedSizes, contiguousStrides, isContiguous } from './shape.ts'
import { sizeProduct } from './size.ts'
import { Tensor, layAs, placeFake } from './tensor.ts'
import type { LayoutSpec, TensorSpec } from './tensor.ts'

let relay: (tensor: SymbolicTensor, other: Tensor) => void

/** A fake tensor with symbolic sizes, strides or offset. */
export class SymbolicTensor extends Tensor {
  static {
    relay = (tensor, other) => {
      tensor.#layout = { shape: other.symSizes, dtype: other.dtype, strides: other.symSteps, offset: other.symOffset }
      tensor.#numel = null
      tensor.storage = other.storage
    }
  }

  #layout: LayoutSpec<Size>
  #numel: Size | null = null

  /** Throws ShapeError if a size is negative. */
  constructor(spec: TensorSpec<Size>) {
    // The numbers of the base class are never read.
    super(
      spec.shape.map(() => 1),
      spec.dtype,
      null,
    )
    checkedSizes(spec.shape)
    if (spec.device !== undefined) placeFake(this, spec.device)
    this.#layout = { shape: spec.shape, dtype: spec.dtype, strides: spec.strides ?? contiguousStrides(spec.shape), offset: spec.offset ?? 0 }
  }

  override get symSizes(): readonly Size[] {
    return this.#layout.shape
  }
  override get symSteps(): readonly Size[] {
    return this.#layout.strides
  }
  override get symOffset(): Size {
    return this.#layout.offset
  }
  override get symNumel(): Size {
    return (this.#numel ??= sizeProduct(this.#layout.shape))
  }
  override get contiguousLayout(): boolean {
    return isContiguous(this.#layout.shape, this.#layout.strides)
  }

  override get sizes(): readonly number[] {
    throw needsNumbers('sizes')
  }
  override get steps(): readonly number[] {
    throw needsNumbers('strides')
  }
  // What programs read of a tensor has the types of numbers, so that one program serves for both.
  override get shape(): readonly number[] {
    return seenByPrograms(this.symSizes, 'sizes')
  }
  override get strides(): readonly number[] {
    return seenByPrograms(this.symSteps, 'strides')
  }
  override get offset(): number {
    return seenByPrograms([this.symOffset], 'offset')[0] ?? 0
  }
  override get numel(): number {
    return seenByPrograms([this.symNumel], 'numel')[0] ?? 0
  }
}

/** How many shape rules are running: they, and operators that are composed of others, get numbers or are refused by name. */
let rules = 0

/** Runs a shape rule: what it reads of symbolic tensors by their names for numbers is refused. */
export function asRule<T>(rule: () => T): T {
  rules++
  try {
    return rule()
  } finally {
    rules--
  }
}

function seenByPrograms(list: readonly Size[], what: string): readonly number[] {
  if (rules > 0 || allocating.composite !== null) throw needsNumbers(what)
  return frozen(list)
}

const frozen = (list: readonly Size[]): readonly number[] => Object.freeze([...list]) as readonly number[]

/** A size where an operator takes a scalar: a symbol has the type of a number there, as for programs. */
export const scalarOf = (size: Size): number => (typeof size === 'number' ? size : (frozen([size])[0] ?? 0))

/** What programs see of a tensor's layout, wherever it is asked for: symbols with the types of numbers, if it has any. The device is named if it is not the CPU. */
export function layoutSeen(tensor: Tensor): TensorSpec & { readonly strides: readonly number[] } {
  const { dtype } = tensor
  const where = awayFromCpu(tensor)
  if (!(tensor instanceof SymbolicTensor)) return { shape: tensor.shape, dtype, strides: tensor.strides, ...where }
  return { shape: frozen(tensor.symSizes), dtype, strides: frozen(tensor.symSteps), ...where }
}

/** The device of a tensor as a part of its {@link TensorSpec}: none for the CPU. */
export const awayFromCpu = ({ device }: Tensor): Pick<TensorSpec, 'device'> => (device === 'cpu' ? {} : { device })

/** A rule read numbers of a tensor whose sizes are symbols. */
export class NumbersNeeded extends UnsupportedError {}

const needsNumbers = (what: string): NumbersNeeded =>
  new NumbersNeeded(`the ${what} of a tensor are symbols, and numbers are needed here: there is no rule for symbolic sizes yet.`)

/** Whether all sizes, strides and the offset are numbers. */
export function hasNumbers(spec: TensorSpec<Size>): spec is TensorSpec {
  const { shape, strides, offset } = spec
  for (let i = 0; i < shape.length; i++) if (typeof shape[i] !== 'number' || (strides !== undefined && typeof strides[i] !== 'number')) return false
  return offset === undefined || typeof offset === 'number'
}

/** `spec`, which a rule has made of tensors whose sizes are numbers. Throws InternalError if there is a symbol in it. */
export function numbersOf(spec: TensorSpec<Size>): TensorSpec {
  if (hasNumbers(spec)) return spec
  throw new InternalError('a rule returned a symbolic size for tensors whose sizes are numbers')
}

/** A fake tensor, symbolic if there is a symbol in its layout. */
export const makeFake = (spec: TensorSpec<Size>): Tensor => (hasNumbers(spec) ? Tensor.fake(spec) : new SymbolicTensor(spec))

/** A tensor with the same layout on the same memory. */
export const twinOf = (tensor: Tensor): Tensor =>
  tensor instanceof SymbolicTensor
    ? new SymbolicTensor({ shape: tensor.symSizes, dtype: tensor.dtype, strides: tensor.symSteps, offset: tensor.symOffset, ...awayFromCpu(tensor) })
    : new Tensor(tensor.sizes, tensor.dtype, tensor.storage, undefined, undefined, tensor)

/** Gives `tensor` the layout and the memory of `other`, see `layAs`. Throws NumbersNeeded where a tensor whose sizes are numbers would get symbols. */
export function becomeLaidAs(tensor: Tensor, other: Tensor): void {
  if (tensor instanceof SymbolicTensor) relay(tensor, other)
  else if (other instanceof SymbolicTensor) throw needsNumbers('sizes')
  else layAs(tensor, other)
}
