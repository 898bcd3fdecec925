// The norm of gradients that are spread over ranks.
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { abs, amax, maximum, pow, sum, zeros } from '../../ops/index.ts'
import { checkOptions, valueText } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { allReduce } from '../inPlace.ts'
import type { FlatHandle } from './handle.ts'
import type { Unit } from './unit.ts'

/** Options of `clipGradNorm_`. */
export interface ClipOptions {
  /** p of the p-norm, or Infinity. Default 2. */
  readonly normType?: number
}

/** The sum of p-th powers, or the largest, of this rank's gradients. */
function powers(grads: readonly Tensor[], p: number): Tensor {
  return grads
    .filter(({ numel }) => numel > 0)
    .map((grad) => (p === Infinity ? amax(abs(grad)) : sum(pow(abs(grad), p))).to('float32'))
    .reduce((a, b) => (p === Infinity ? maximum(a, b) : a.add(b)), zeros([]))
}

const gradsOf = (tensors: readonly Tensor[]): Tensor[] => tensors.flatMap(({ grad }) => (grad === null ? [] : [grad]))

/** Scales the gradients of a root. Throws ArgumentError for another unit. */
export function clipGradNorm(unit: Unit, maxNorm: number, options: ClipOptions): Tensor {
  const where = 'clipGradNorm_'
  checkOptions(where, options, { normType: 'number' })
  const { normType: p = 2 } = options
  if (typeof maxNorm !== 'number' || Number.isNaN(maxNorm)) throw new ArgumentError(`${where}: maxNorm must be a number, got ${valueText(maxNorm)}.`)
  if (!(p > 0)) throw new ArgumentError(`${where}: normType must be a positive number, got ${valueText(p)}.`)
  const { root, settings } = unit
  if (root?.unit !== unit) throw new ArgumentError('`clip_grad_norm_()` should only be called on the root FSDP instance')
  const handles = root.units.flatMap(({ handle }) => handle ?? [])
  const isSharded = ({ layout }: FlatHandle): boolean => layout.shards > 1
  const sharded = gradsOf(handles.filter(isSharded).flatMap(({ trained }) => trained))
  const trained = new Set<unknown>(handles.filter(isSharded).flatMap((handle) => handle.trained))
  const rest: Tensor[] = []
  for (const parameter of unit.wrapper.parameters()) if (parameter instanceof Tensor && !trained.has(parameter)) rest.push(parameter)
  const whole = gradsOf(rest)
  return noGrad(() => {
    const local = powers(sharded, p)
    if (handles.some(isSharded)) allReduce(local, { op: p === Infinity ? 'max' : 'sum', group: settings.shardGroup })
    const own = powers(whole, p)
    const total = p === Infinity ? maximum(local, own) : pow(local.add(own), 1 / p)
    const factor = Math.min(1, maxNorm / (Number(total.item()) + 1e-6))
    if (factor < 1) for (const grad of [...sharded, ...whole]) grad.mul_(factor)
    return total
  })
}
