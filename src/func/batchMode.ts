// The mode of vmap. Inside of it a batched tensor looks like one example: a tensor of the example's shape without data. The mode keeps what stands behind it, the
// tensor of the whole batch (the batch is its first dimension), and computes operators on that, by rules that say how each operator treats the batch.
import { enableGrad, noGrad } from '../autograd/index.ts'
import { decomposed, dispatch, dispatchBelowAutograd, dispatchState, isArgList, markView, withMode } from '../dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, Result } from '../dispatch/index.ts'
import { InternalError, UnsupportedError } from '../errors/index.ts'
import { argsort, expand, philoxUniform, select, stack, to } from '../ops/index.ts'
import { Tensor, formatShape, numbersOf, sameShape } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import type { Batch } from './batch.ts'
import { ruleOf } from './batchRules.ts'

/** What random operators do under vmap. */
export type Randomness = 'error' | 'same' | 'different'

const noticed = new Set<string>()

export class BatchMode implements DispatchMode, Batch {
  readonly name = 'vmap'
  readonly size: number
  readonly #behind = new WeakMap<Tensor, Tensor>()
  readonly #randomness: Randomness
  /** Whether the program around vmap records: derivatives inside of it are computed without, but what is behind belongs to the program. */
  readonly #records = dispatchState.gradEnabled

  constructor(size: number, randomness: Randomness) {
    this.size = size
    this.#randomness = randomness
  }

  behind(tensor: Tensor): Tensor | null {
    return this.#behind.get(tensor) ?? null
  }

  rename(tensor: Tensor, to: Tensor): void {
    const behind = this.#behind.get(tensor)
    if (behind === undefined) return
    this.#behind.delete(tensor)
    this.#behind.set(to, behind)
  }

  whole(tensor: Tensor): Tensor {
    return this.behind(tensor) ?? expand(tensor, [this.size, ...tensor.shape])
  }

  /** One example of a batch; `layout` is that of one example by itself, by default without gaps. */
  wrap(whole: Tensor, layout: Partial<TensorSpec> = {}): Tensor {
    const { strides, offset } = layout
    const example = Tensor.fake({
      shape: whole.sizes.slice(1),
      dtype: whole.dtype,
      device: whole.device,
      ...(strides === undefined ? {} : { strides }),
      ...(offset === undefined ? {} : { offset }),
    })
    this.#behind.set(example, whole)
    return example
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    if (!this.#isBatched(args)) {
      // Random operators compute from numbers of the generator, which differ from call to call.
      const random = op.dynamicScalars.length > 0
      if (random && this.#randomness === 'error')
        throw new UnsupportedError(
          `vmap: ${op.qualname} draws random numbers. Pass { randomness: 'different' } to draw others for each example, or { randomness: 'same' }.`,
        )
      if (random && this.#randomness === 'different') return this.wrap(this.#drawEach(op, args))
      return dispatchBelowAutograd(op, args)
    }
    return (this.#records ? enableGrad : noGrad)(() => this.#compute(op, args))
  }

  /** Random numbers for the whole batch, in place of those for one example: the primitives take a size, a permutation the number of its elements. */
  #drawEach(op: OpDef, [size = 0, ...rest]: readonly Arg[]): Tensor {
    if (isArgList(size)) {
      const drawn = dispatchBelowAutograd(op, [[this.size, ...size], ...rest])
      if (drawn instanceof Tensor) return drawn
    }
    const [seedLo = 0, seedHi = 0, offsetLo = 0, offsetHi = 0] = rest.map(Number)
    return to(argsort(philoxUniform([this.size, Number(size)], seedLo, seedHi, offsetLo, offsetHi)), 'int32')
  }

  #isBatched(args: readonly Arg[]): boolean {
    return args.some((arg) => (arg instanceof Tensor ? this.#behind.has(arg) : isArgList(arg) && this.#isBatched(arg)))
  }

  #compute(op: OpDef, args: readonly Arg[]): Result {
    const [self] = args
    if (op.tags.has('mutates')) {
      if (!(self instanceof Tensor) || this.behind(self) === null)
        throw new UnsupportedError(
          `vmap: ${op.qualname} would write the values of every example into a tensor that all examples share. Use the operator without the trailing underscore.`,
        )
    }
    const rule = ruleOf(op, args, this)
    if (rule === null && op.decompose !== null) {
      const { decompose } = op
      return withMode(this, () => decomposed(op.qualname, decompose, args))
    }
    // For its errors, which then speak of one example, and for the dtypes of results: a number behind is a tensor, which counts when dtypes are promoted.
    const meta = op.meta(...args)
    const specs = ('shape' in meta ? [meta] : meta).map(numbersOf)
    const result = rule === null ? this.#oneByOne(op, args) : rule()
    if (op.tags.has('mutates') && self instanceof Tensor) return self
    const results = (result instanceof Tensor ? [result] : result).map((whole, i) => {
      const spec = specs[i]
      if (spec === undefined || !sameShape(whole.sizes.slice(1), spec.shape))
        throw new InternalError(
          `vmap: ${op.qualname} gave a batch of shape ${formatShape(whole.shape)} for results of shape ${formatShape(spec?.shape ?? [])}`,
        )
      const example = this.wrap(whole.dtype === spec.dtype ? whole : to(whole, spec.dtype), spec)
      // A write to it is one to what it is a view of.
      if (op.tags.has('view') && self instanceof Tensor && whole.storage !== null && whole.storage === this.behind(self)?.storage)
        markView(example, self, op)
      return example
    })
    const [only] = results
    return result instanceof Tensor && only !== undefined ? only : results
  }

  /** The operator on each example, one after the other, because it has no rule. */
  #oneByOne(op: OpDef, args: readonly Arg[]): Result {
    if (!noticed.has(op.qualname)) {
      noticed.add(op.qualname)
      console.warn(`vmap: there is no batching rule for ${op.qualname}; it is computed for one example after the other, which is slow.`)
    }
    const at = (arg: Arg, i: number): Arg => {
      if (arg instanceof Tensor) {
        const whole = this.behind(arg)
        return whole === null ? arg : select(whole, 0, i)
      }
      return isArgList(arg) ? arg.map((item) => at(item, i)) : arg
    }
    const each = Array.from({ length: this.size }, (_, i) =>
      dispatch(
        op,
        args.map((arg) => at(arg, i)),
      ),
    )
    const [first] = each
    if (first === undefined) throw new InternalError('vmap of an empty batch')
    if (first instanceof Tensor) return stack(each.flatMap((result) => (result instanceof Tensor ? [result] : [])))
    return first.map((_, k) => stack(each.flatMap((result) => (result instanceof Tensor ? [] : result.slice(k, k + 1)))))
  }
}
