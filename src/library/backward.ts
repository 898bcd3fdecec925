// From a backward with named inputs and gradients to the derivative that the operator table keeps.
import type { Arg, Derivative } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { zerosLike } from '../ops/index.ts'
import { isPlainObject } from '../protocol/index.ts'
import type { FunctionSchema } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'

/** A backward whose types are those of a schema known only at run time. */
export interface UntypedBackward {
  (ctx: UntypedContext, ...grads: readonly Tensor[]): unknown
}

interface UntypedContext {
  readonly inputs: Readonly<Record<string, Arg>>
  readonly outputs: readonly Tensor[]
  readonly needsInputGrad: Readonly<Record<string, boolean>>
}

type Gradient = Tensor | null | readonly (Tensor | null)[]

const isGradient = (value: unknown): value is Tensor | null => value === null || value instanceof Tensor

/** The derivative that calls `backward`. It throws ArgumentError for gradients that have no argument, or are no tensors. */
export function derivativeOf(qualname: string, schema: FunctionSchema, backward: UntypedBackward): Derivative {
  const names = schema.args.map((arg) => arg.name)
  const isTensor = new Map(schema.args.map((arg) => [arg.name, arg.type.base === 'Tensor']))
  const byName = <T>(values: readonly T[]): Record<string, T> =>
    Object.fromEntries(names.flatMap((name, i): [string, T][] => (values[i] === undefined ? [] : [[name, values[i]]])))
  const gradient = (name: string, value: unknown, isList: boolean): Gradient => {
    if (value === undefined || value === null) return null
    if (isList ? Array.isArray(value) && value.every(isGradient) : value instanceof Tensor) return value as Gradient
    throw new ArgumentError(
      `backward of ${qualname}: the gradient of '${name}' must be ${isList ? 'a list of Tensors' : 'a Tensor'} or null, got ${typeof value}.`,
    )
  }
  return (grads, { args, outputs, needs }) => {
    const full = outputs.map((output, i) => grads[i] ?? zerosLike(output))
    const returned: unknown = backward({ inputs: byName(args), outputs, needsInputGrad: byName(needs) }, ...full)
    if (!isPlainObject(returned))
      throw new ArgumentError(
        `backward of ${qualname}: it must return an object of gradients by the names of the arguments, such as { ${names[0] ?? 'x'}: … }, got ${Array.isArray(returned) ? 'an array' : returned instanceof Tensor ? 'a Tensor' : typeof returned}.`,
      )
    for (const [name, value] of Object.entries(returned)) {
      if (value === null || value === undefined || isTensor.get(name) === true) continue
      throw new ArgumentError(
        `backward of ${qualname}: it returned a gradient for '${name}', which is not a tensor argument; those are ${names.filter((n) => isTensor.get(n)).join(', ')}.`,
      )
    }
    return schema.args.map((arg) => gradient(arg.name, returned[arg.name], arg.type.list))
  }
}
