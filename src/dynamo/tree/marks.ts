// markDynamic and markStatic: what a program says of the sizes of a tensor that compile will meet.
import { ArgumentError, ShapeError, UnsupportedError } from '../../errors/index.ts'
import { checkCount, checkOptions, valueText } from '../../protocol/index.ts'
import { Tensor, formatShape } from '../../tensor/index.ts'

/** The values that a size of a graph may have. */
export interface SizeRange {
  readonly min: number
  readonly max: number
}

/** 0 and 1 are constants of a graph, since broadcasting and emptiness depend on them. */
export const anySize: SizeRange = { min: 2, max: Infinity }

/** What was said of a dimension: its size is a constant, or differs from call to call within a range. */
type Mark = 'static' | SizeRange

const marks = new WeakMap<Tensor, Map<number, Mark>>()
let isAny = false

/** The marks of the dimensions of a tensor. */
export const markOf = (tensor: Tensor): ReadonlyMap<number, Mark> | undefined => (isAny ? marks.get(tensor) : undefined)

/** Whether some dimension of one of these values was marked as dynamic. */
export const hasDynamicMarks = (values: readonly unknown[]): boolean =>
  isAny && values.some((value) => value instanceof Tensor && [...(marks.get(value)?.values() ?? [])].some((mark) => mark !== 'static'))

function mark(name: string, tensor: Tensor, dim: unknown, as: Mark): void {
  if (!(tensor instanceof Tensor)) throw new ArgumentError(`${name}: argument 'tensor' must be a Tensor, got ${valueText(tensor)}.`)
  const dims: readonly unknown[] = Array.isArray(dim) ? dim : [dim]
  const positions = dims.map((given) => {
    if (typeof given !== 'number' || !Number.isInteger(given))
      throw new ArgumentError(`${name}: argument 'dim' must be an integer or a list of them, got ${valueText(given)}.`)
    const at = given < 0 ? given + tensor.ndim : given
    if (at < 0 || at >= tensor.ndim)
      throw new ShapeError(
        `${name}: dim ${given} is out of range for a tensor of shape ${formatShape(tensor.sizes)}; give one from ${-tensor.ndim} to ${tensor.ndim - 1}.`,
      )
    const size = tensor.sizes[at] ?? 0
    if (as !== 'static' && size >= anySize.min && (size < as.min || size > as.max))
      throw new ShapeError(`${name}: size ${size} of dim ${given} is not from ${as.min} to ${as.max}; give a range that holds the sizes to come.`)
    return at
  })
  const known = marks.get(tensor) ?? new Map<number, Mark>()
  marks.set(tensor, known)
  for (const at of positions) known.set(at, as)
  isAny = true
}

/** Options of {@link markDynamic}. */
export interface DynamicRange {
  /** The smallest size of the graph. Default 2, which is also the least: sizes 0 and 1 have graphs of their own. */
  readonly min?: number
  /** The largest size of the graph. Default: there is none. */
  readonly max?: number
}

function rangeOf(options: DynamicRange): SizeRange {
  checkOptions('markDynamic', options, { min: 'number', max: 'number' })
  const { min = anySize.min, max = anySize.max } = options
  for (const [name, value] of [
    ['min', min],
    ['max', max],
  ] as const)
    if (!(Number.isInteger(value) && value >= 0) && value !== Infinity)
      throw new ArgumentError(`markDynamic: option '${name}' must be an integer of at least 0, got ${valueText(value)}.`)
  const range = { min: Math.max(min, anySize.min), max }
  if (range.max < range.min)
    throw new ArgumentError(
      `markDynamic: option 'max' must be at least ${range.min}, got ${max}: a size of a graph is at least 2 and at least 'min'.`,
    )
  return range
}

/**
 * Says that sizes of a tensor change from call to call. A compiled function that gets the tensor takes these dimensions (`dim`: one or several) as sizes of its graph from the first call on, if they are at
 * least 2, as `compile(fn, { dynamic: true })` does with all. With `{ min, max }` the graph is for sizes from `min` to `max`; a call with another one records another path. PyTorch's torch._dynamo.mark_dynamic.
 *
 * @throws ArgumentError if `tensor` is not a Tensor, `dim` not an integer or the range empty; ShapeError if `dim` is out of range, or the present size is not in the range.
 */
export function markDynamic(tensor: Tensor, dim: number | readonly number[], options: DynamicRange = {}): void {
  checkCount('markDynamic', arguments, 3)
  mark('markDynamic', tensor, dim, rangeOf(options))
}

/**
 * As {@link markDynamic} without a range. In PyTorch, markDynamic fails if the program makes the size a constant, and this does not; here the program may do that in any case, since it runs at every call.
 * PyTorch's torch._dynamo.maybe_mark_dynamic.
 *
 * @throws ArgumentError if `tensor` is not a Tensor or `dim` not an integer; ShapeError if `dim` is out of range.
 */
export function maybeMarkDynamic(tensor: Tensor, dim: number | readonly number[]): void {
  checkCount('maybeMarkDynamic', arguments, 2)
  mark('maybeMarkDynamic', tensor, dim, anySize)
}

/**
 * Says that sizes of a tensor are constants of the graph: a compiled function records another path for each value. Without `dim` all are. PyTorch's torch._dynamo.mark_static.
 *
 * @throws ArgumentError if `tensor` is not a Tensor or `dim` not an integer; ShapeError if `dim` is out of range.
 */
export function markStatic(tensor: Tensor, dim?: number | readonly number[]): void {
  checkCount('markStatic', arguments, 2)
  mark('markStatic', tensor, dim ?? (tensor instanceof Tensor ? tensor.sizes.map((_, i) => i) : []), 'static')
}

/**
 * Refused. In PyTorch an unbacked size is one of which the compiler must not know the value. Here a program runs at every call and sees its sizes as numbers, so there is no such size. PyTorch's
 * torch._dynamo.decorators.mark_unbacked.
 *
 * @throws UnsupportedError in every case
 */
export function markUnbacked(_tensor: Tensor, _dim: number | readonly number[]): never {
  checkCount('markUnbacked', arguments, 2)
  throw new UnsupportedError(
    'markUnbacked: a compiled program runs at every call and sees its sizes as numbers, so there are no unbacked sizes. Use markDynamic: one graph is for all sizes of at least 2.',
  )
}
