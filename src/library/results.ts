// What a program's forward and fake functions return, checked against the schema.
import { FakeTensorMode, fakeLike, isArgList, withMode, withoutModes } from '../dispatch/index.ts'
import type { Arg } from '../dispatch/index.ts'
import { noGrad } from '../autograd/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { clone } from '../ops/index.ts'
import type { FunctionSchema } from '../protocol/index.ts'
import { Tensor, areTensors } from '../tensor/index.ts'

/** A forward or fake function: it takes one value per argument of the schema. */
export type Implementation = (...args: readonly Arg[]) => unknown

/** Whether the schema promises one tensor, as opposed to a list or a tuple. */
const returnsOne = (schema: FunctionSchema): boolean => schema.returns.length === 1 && schema.returns[0]?.list === false

const describe = (value: unknown): string => {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (value instanceof Promise) return 'a Promise'
  return value instanceof Tensor ? 'a Tensor' : typeof value
}

/** The results as a list. Throws ArgumentError if they are not what the schema promises; `what` is 'forward' or 'fake'. */
function resultList(qualname: string, schema: FunctionSchema, what: string, result: unknown): readonly Tensor[] {
  const { returns } = schema
  const wrong = (expected: string): ArgumentError =>
    new ArgumentError(`${qualname}: its ${what} must return ${expected}, as its schema says (${schema.text}), got ${describe(result)}.`)
  if (returnsOne(schema)) {
    if (result instanceof Tensor) return [result]
    throw wrong('a Tensor')
  }
  if (returns.length === 0) {
    if (result === undefined || result === null || (Array.isArray(result) && result.length === 0)) return []
    throw wrong('nothing')
  }
  const isList = returns.length === 1
  if (Array.isArray(result) && (isList || result.length === returns.length) && areTensors(result)) return result
  throw wrong(isList ? 'an array of Tensors' : `an array of ${returns.length} Tensors`)
}

/** Results in the form that the dispatcher takes. */
export function asResult<T>(schema: FunctionSchema, results: readonly T[]): T | readonly T[] {
  const [first] = results
  return returnsOne(schema) && first !== undefined ? first : results
}

/** All tensors among arguments. */
export const tensorsOf = (args: readonly Arg[]): Tensor[] =>
  args.flatMap((arg) => (arg instanceof Tensor ? [arg] : isArgList(arg) ? tensorsOf(arg) : []))

/** Runs `forward` on real tensors, without gradients. The results are contiguous and share no memory with arguments or each other. Throws ArgumentError. */
export function runForward(qualname: string, schema: FunctionSchema, forward: Implementation, args: readonly Arg[]): readonly Tensor[] {
  return noGrad(() => {
    const results = resultList(qualname, schema, 'forward', forward(...args))
    const taken = new Set<unknown>(tensorsOf(args).map((tensor) => tensor.realize()))
    return results.map((result) => {
      const storage = result.realize()
      if (result.numel > 0 && taken.has(storage)) throw aliasError(qualname)
      taken.add(storage)
      // A parameter, or a tensor that another tape knows, must not become a result of this call.
      return result.requiresGrad ? clone(result) : result.contiguous()
    })
  })
}

const aliasError = (qualname: string): ArgumentError =>
  new ArgumentError(
    `${qualname}: The output of this custom operator (1) must not also be an input to this custom operator and (2) may not alias any inputs to this custom operator or other returns. ` +
      'The most common way to trigger this error is y = op(x) where y and x are the same Tensor. Return a clone of the offending output (x.clone()), or do not return it.',
  )

const toFake = (arg: Arg): Arg => (arg instanceof Tensor ? fakeLike(arg) : isArgList(arg) ? arg.map(toFake) : arg)

/** Shapes and dtypes of the results, from `fake` on fake tensors. Throws ArgumentError. */
export function runFake(qualname: string, schema: FunctionSchema, fake: Implementation | null, args: readonly Arg[]): readonly Tensor[] {
  if (schema.returns.length === 0 && fake === null) return []
  if (fake === null)
    throw new ArgumentError(
      `There was no fake impl registered for ${qualname}. This is necessary for compile and makeFx to work. Please use torch.library.registerFake to add a fake impl.`,
    )
  const fakes = args.map(toFake)
  return withoutModes(() => withMode(new FakeTensorMode(), () => noGrad(() => resultList(qualname, schema, 'fake', fake(...fakes)))))
}

/** The results of {@link runFake} as specs. Results are contiguous. */
export const specsOf = (results: readonly Tensor[]): { readonly shape: readonly number[]; readonly dtype: Tensor['dtype'] }[] =>
  results.map(({ shape, dtype }) => ({ shape, dtype }))
