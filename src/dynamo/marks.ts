// markDynamic and markStatic: what a program says of the sizes of a tensor that compile will meet.
import { ArgumentError, ShapeError } from '../errors/index.ts'
import { checkCount, valueText } from '../protocol/index.ts'
import { Tensor, formatShape } from '../tensor/index.ts'

type Mark = 'dynamic' | 'static'

const marks = new WeakMap<Tensor, Map<number, Mark>>()
let isAny = false

/** The marks of the dimensions of a tensor. */
export const markOf = (tensor: Tensor): ReadonlyMap<number, Mark> | undefined => (isAny ? marks.get(tensor) : undefined)

/** Whether some dimension of one of these values was marked as dynamic. */
export const hasDynamicMarks = (values: readonly unknown[]): boolean =>
  isAny && values.some((value) => value instanceof Tensor && [...(marks.get(value)?.values() ?? [])].includes('dynamic'))

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
    return at
  })
  const known = marks.get(tensor) ?? new Map<number, Mark>()
  marks.set(tensor, known)
  for (const at of positions) known.set(at, as)
  isAny = true
}

/**
 * Says that sizes of a tensor change from call to call. A compiled function that gets the tensor takes these dimensions (`dim`: one or several) as sizes of its graph from the first call on, if they are at
 * least 2, as `compile(fn, { dynamic: true })` does with all. PyTorch's torch._dynamo.mark_dynamic.
 *
 * @throws ArgumentError if `tensor` is not a Tensor or `dim` not an integer; ShapeError if `dim` is out of range.
 */
export function markDynamic(tensor: Tensor, dim: number | readonly number[]): void {
  checkCount('markDynamic', arguments, 2)
  mark('markDynamic', tensor, dim, 'dynamic')
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
