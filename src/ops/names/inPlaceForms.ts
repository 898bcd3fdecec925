// In-place forms, `x.mul_(y)` for `mul(x, y)`: one rule makes them from the operators whose declarations say `inPlace`. The list of them is generated.
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { InternalError } from '../../errors/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { makeOp } from '../define/defineOp.ts'
import { checkFits } from '../eager/inPlace.ts'
import { copy_ } from '../pointwise/fill.ts'

/** The arguments after the first. */
type RestOf<F> = F extends (self: never, ...rest: infer R) => unknown ? R : never

/** The in-place form of an operator: the same arguments, and `self` as the result. */
export type InPlaceForm<F> = OpFunction<(self: Tensor, ...rest: RestOf<F>) => Tensor>

/** `mul.Tensor(Tensor self, …) -> Tensor` gives `mul_.Tensor(Tensor(a!) self, …) -> Tensor`. */
function inPlaceSchema({ schema, qualname }: OpDef): string {
  const text = schema.text.replace(/^(\w+)((?:\.\w+)?)\(Tensor (.*) -> .*$/, '$1_$2(Tensor(a!) $3 -> Tensor')
  if (!text.includes('(a!)')) throw new InternalError(`operator ${qualname}: its first argument is not a tensor, so that it has no in-place form`)
  return text
}

/**
 * The operator that writes the result of `fn` into its first argument. An operator with a derivative or a kernel becomes one that modes and autograd see as its
 * in-place form; one that only decomposes is a copy of its result into `self`.
 */
export function inPlaceOf<F extends OpFunction>(fn: F, namespace: string, method: boolean): InPlaceForm<F>
export function inPlaceOf(fn: OpFunction, namespace: string, method: boolean): OpFunction {
  const { op } = fn
  const { decompose } = op
  const form = { schema: inPlaceSchema(op), namespace, method }
  if (decompose === null || op.derivative !== null) return makeOp({ ...form, functional: fn })
  const qualname = `${namespace}.${op.name}_`
  return makeOp({
    ...form,
    tags: ['mutates', ...(op.tags.has('random') ? (['random'] as const) : [])],
    decompose: (...args: readonly Arg[]) => {
      const [self] = args
      const result = decompose(...args)
      if (!(self instanceof Tensor) || !(result instanceof Tensor)) throw new InternalError(`${qualname}: not a function from tensor to tensor`)
      checkFits(qualname, { shape: result.symSizes, dtype: result.dtype }, self)
      return copy_(self, result)
    },
  })
}
